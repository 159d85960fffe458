"""Tables whose source does not answer: who waits for them, and what of them is known meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engine.test_loop import Script
from tests.support.history import BATCHES, COLUMNS, OPTIONS, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import wait_until

from windrow.engine import loop, tables
from windrow.errors import SourceError, WindrowError
from windrow.spark.sources.table_source import Content
from windrow.state.manifest import SourceState

NAMES = "CREATE TABLE names (k BIGINT, name STRING) RELATION"
JOINED = "SELECT name, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10], names WHERE s.k = names.k GROUP BY name"
ROWS = [(1, "one"), (2, "two"), (3, "three")]


class Shelf:
    """A source of a table, which a test takes away and gives back."""

    is_master, is_slow = True, True

    def __init__(self, *rows: tuple[int, str]) -> None:
        self.rows = list(rows)
        self.trouble: WindrowError | None = None
        self.asked = 0

    def news(self, before: SourceState) -> Content | None:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        fingerprint = repr(self.rows)
        return None if before.fingerprint == fingerprint else Content(self.rows, SourceState(fingerprint))


def away(code: str = "source-away") -> SourceError:
    return SourceError("nobody answers", code=code)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in ((loop, "AWAY"), (loop, "PAUSE"), (tables, "PERIOD")):
        monkeypatch.setattr(owner, name, 0.01)


def made(folder: Path, shelf: Shelf, script: Script, **others: Script) -> Life:
    """A query that joins stream `s` and the table, and one over each other stream."""
    w = Life(folder / "state")
    w.sql(STREAM)
    w.sql(NAMES)
    w.query("joined", JOINED)
    w._sources["s"] = script
    w._table_sources["names"] = shelf
    for name, source in others.items():
        w.sql(f"CREATE STREAM {name} ({COLUMNS}) {OPTIONS}")
        w.query(f"of_{name}", SUMS.replace("FROM s", f"FROM {name}"))
        w._sources[name] = source
    return w


def answers(folder: Path) -> list[Any]:
    """What is right, where the table is there from the beginning."""
    with made(folder / "right", Shelf(*ROWS), Script(*BATCHES)) as w:
        w.run(once=True, flush=True)
        found: list[Any] = w.rows("joined")
    assert len(found) > 10
    return found


def codes(w: Life) -> list[str]:
    return [error.code for error in w.problems]


def test_a_table_that_was_never_read_holds_up_the_streams_that_are_read_with_it(tmp_path: Path) -> None:
    shelf, script, other = Shelf(*ROWS), Script(*BATCHES), Script(*BATCHES)
    shelf.trouble = away()
    with made(tmp_path, shelf, script, r=other) as w:
        w.start()
        wait_until(lambda: other.taken[-1:] == [len(BATCHES)] and shelf.asked > 3)
        assert script.taken == []
        assert codes(w) == ["source-away"]
        shelf.trouble = None
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        assert not w.problems
        w.stop()
        w.end()
        assert w.rows("joined") == answers(tmp_path)
        assert w.rows("of_r") == as_rows(oracle(SUMS))


def test_a_bounded_run_waits_for_it(tmp_path: Path) -> None:
    shelf, script = Shelf(*ROWS), Script(sum(BATCHES, ()))
    shelf.trouble, script.is_bounded = away(), True
    with made(tmp_path, shelf, script) as w:
        w.start()
        wait_until(lambda: shelf.asked > 3)
        assert w.is_running
        shelf.trouble = None
        assert w.wait(30)
        assert w.rows("joined")


def test_a_table_that_was_read_before_stays_as_it_was(tmp_path: Path) -> None:
    shelf, script = Shelf(*ROWS), Script(*BATCHES[:3])
    with made(tmp_path, shelf, script) as w:
        w.run(once=True)
    later = Script(*BATCHES)
    shelf.trouble = away()
    with made(tmp_path, shelf, later) as w:
        w.start()
        wait_until(lambda: later.taken[-1:] == [len(BATCHES)])
        assert codes(w) == ["source-away"]
        shelf.rows, shelf.trouble = [*ROWS, (4, "four")], None
        wait_until(lambda: len(w.tables["names"]) == len(shelf.rows))
        assert not w.problems
        w.stop()


def test_it_may_go_away_and_come_back_during_a_run(tmp_path: Path) -> None:
    shelf, script = Shelf(*ROWS), Script(BATCHES[0])
    with made(tmp_path, shelf, script) as w:
        w.start()
        wait_until(lambda: script.taken == [1])
        for number in range(2):
            shelf.trouble = away()
            wait_until(lambda: codes(w) == ["source-away"])
            script.batches.append(BATCHES[number + 1])
            wait_until(lambda: script.taken[-1:] == [number + 2])  # noqa: B023  it is called here and now
            shelf.rows, shelf.trouble = [*shelf.rows, (number + 7, "another")], None
            wait_until(lambda: len(w.tables["names"]) == len(shelf.rows))
            assert not w.problems
        w.stop()


def test_a_run_that_takes_what_is_there_ends_with_it(tmp_path: Path) -> None:
    shelf = Shelf(*ROWS)
    shelf.trouble = away()
    with made(tmp_path, shelf, Script(*BATCHES)) as w:
        with pytest.raises(SourceError, match="nobody answers"):
            w.run(once=True, flush=True)
        assert shelf.asked == loop.ASKED_ONCE
        assert w.rows("joined") == []
        shelf.trouble = None
        w.run(once=True, flush=True)
        assert w.rows("joined") == answers(tmp_path)


@pytest.mark.parametrize("is_away_before", [False, True])
def test_what_does_not_pass_ends_the_run(tmp_path: Path, is_away_before: bool) -> None:
    shelf = Shelf(*ROWS)
    shelf.trouble = away("source-away" if is_away_before else "file-missing")
    with made(tmp_path, shelf, Script(*BATCHES)) as w:
        w.start()
        if is_away_before:
            wait_until(lambda: codes(w) == ["source-away"])
            shelf.trouble = away("file-missing")
        with pytest.raises(SourceError) as told:
            w.wait(30)
        assert told.value.code == "file-missing"


def test_a_table_that_is_dropped_is_not_asked_any_more(tmp_path: Path) -> None:
    shelf, script = Shelf(*ROWS), Script(*BATCHES)
    shelf.trouble = away()
    with made(tmp_path, shelf, script) as w:
        w.query("sums", SUMS)
        w.start()
        wait_until(lambda: codes(w) == ["source-away"])
        w.sql("DROP QUERY joined; DROP TABLE names")
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        wait_until(lambda: not w.problems)
        w.stop()
