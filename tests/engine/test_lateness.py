"""Late rows, idle sources and promises about single groups, across restarts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.history import COLUMNS, SUMS, as_rows, rows_in
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.errors import DataError
from windrow.testing import Harness

if TYPE_CHECKING:
    from pathlib import Path

#: in each batch but the first, rows that are late by what the one before has promised
BATCHES = (
    ((1, 10, 0), (2, 20, 14)),
    ((1, 1, 5), (2, 2, 12), (1, 3, 33)),
    ((3, 4, 2), (3, 5, 29), (1, 6, 31), (2, 7, 58)),
)
LATE = [(1, 1, 5), (3, 4, 2), (3, 5, 29)]


def declared(w: Life, options: str, query: str = SUMS) -> None:
    w.sql(f"CREATE STREAM s ({COLUMNS}) {options}")
    w.query("q", query)


def live(state: Path, options: str, collected: list[Any], *, restarts: bool) -> int:
    """All batches, in one life or in one life each; how many rows were late."""
    lives = [[batch] for batch in BATCHES] if restarts else [list(BATCHES)]
    for number, batches in enumerate(lives):
        w = Life(state)
        declared(w, options)
        for batch in batches:
            w.push(*batch)
        late = w.streams["s"].progress.late
        if number == len(lives) - 1:
            w.end()
        collected += w.rows("q")
        w.close()
    return late


def test_another_attribute_knows_how_far_it_is_after_a_restart(tmp_path: Path) -> None:
    """ALSO: its policy goes on from what the manifest says, and late rows stay late."""
    options = "WATTR t SLACK 30 ALSO v ORDERED"
    query = "SELECT k, COUNT(*) AS n FROM s [RANGE 4 SLIDE 2 WATTR v] GROUP BY k"
    found: list[Any] = []
    batches = (((1, 1, 0), (2, 5, 1)), ((1, 3, 2), (2, 8, 3)), ((1, 7, 4), (1, 12, 5)))
    for batch in batches:
        w = Life(tmp_path)
        declared(w, options, query)
        w.push(*batch)
        found += w.rows("q")
        w.close()
    assert sorted(found) == as_rows(oracle(query, batches, {"s": (COLUMNS, options)}, ended=False))
    assert found


@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "three lives"])
@pytest.mark.parametrize("late", ["", " LATE DROP", " LATE KEEP"])
def test_late_rows_are_counted_and_treated_as_declared(tmp_path: Path, late: str, restarts: bool) -> None:
    options = f"WATTR t SLACK 3{late}"
    answers: list[Any] = []
    assert live(tmp_path / "state", options, answers, restarts=restarts) == len(LATE)
    assert sorted(answers) == as_rows(oracle(SUMS, BATCHES, {"s": (COLUMNS, options)}))


@pytest.mark.parametrize("restarts", [False, True], ids=["one life", "three lives"])
def test_late_rows_go_to_their_sink_once(tmp_path: Path, restarts: bool) -> None:
    options = f"WATTR t SLACK 3 LATE TO 'files://{tmp_path}/late'"
    answers: list[Any] = []
    assert live(tmp_path / "state", options, answers, restarts=restarts) == len(LATE)
    assert sorted(answers) == as_rows(oracle(SUMS, BATCHES))
    assert rows_in(tmp_path / "late", "*") == Counter(LATE)


def test_late_rows_that_were_not_delivered_come_after_the_restart(tmp_path: Path) -> None:
    options = f"WATTR t SLACK 3 LATE TO 'files://{tmp_path}/late'"
    w = Life(tmp_path / "state")
    declared(w, options)
    w.engine.deliver = lambda **_: None  # as if it died before
    for batch in BATCHES:
        w.push(*batch)
    w.vanish()
    with Life(tmp_path / "state") as w:
        declared(w, options)
        w.engine.deliver()
    assert rows_in(tmp_path / "late", "*") == Counter(LATE)


def test_lateness_is_counted_by_stream(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        for name in ("s", "other"):
            w.sql(f"CREATE STREAM {name} ({COLUMNS}) WATTR t SLACK 3")
        for batch in BATCHES:
            w.push(*batch)
        w.push(*BATCHES[0], stream="other")
    with Life(tmp_path / "state") as w:
        for name in ("s", "other"):
            w.sql(f"CREATE STREAM {name} ({COLUMNS}) WATTR t SLACK 3")
        assert (w.streams["s"].progress.late, w.streams["other"].progress.late) == (3, 0)
        assert (w.streams["s"].progress.accepted, w.streams["other"].progress.accepted) == (6, 2)


# ------------------------------------------------------------ sources that fall silent

SECOND = 1_000_000
IDLE = "WATTR t ORDERED PER k IDLE 10 SECONDS"
BY_GROUP = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k"


def test_a_source_that_falls_silent_holds_the_others_only_so_long(tmp_path: Path) -> None:
    harness = Harness("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]", streams={"s": (COLUMNS, IDLE)})
    with Life(tmp_path / "state") as w:
        declared(w, IDLE, "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
        expected: list[Any] = []

        def same() -> None:
            expected.extend((change.at, *change.row) for change in harness.take())
            assert w.rows("q") == sorted(expected)

        for rows, wait in ([(1, 1, 3), (2, 1, 4)], 6), ([(1, 1, 25)], 6), ([(1, 1, 38)], 1):
            w.push(*rows)
            harness.push("s", rows)
            same()
            w.pass_time(wait * SECOND)
            harness.advance(wait * SECOND)
            same()
        assert expected  # source 2 was left out


def test_when_a_source_was_last_heard_is_known_after_a_restart(tmp_path: Path) -> None:
    query = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    harness = Harness(query, streams={"s": (COLUMNS, IDLE)})
    harness.push("s", [(1, 1, 3), (2, 1, 4)])
    harness.advance(6 * SECOND)
    harness.push("s", [(1, 1, 25)])
    w = Life(tmp_path / "state")
    declared(w, IDLE, query)
    w.push((1, 1, 3), (2, 1, 4))
    w.pass_time(6 * SECOND)
    w.push((1, 1, 25))
    w.vanish()
    with Life(tmp_path / "state") as w:
        w.time = 6 * SECOND
        declared(w, IDLE, query)
        w.engine.epoch()
        assert w.rows("q") == [] == harness.take()
        w.pass_time(5 * SECOND)
        harness.advance(5 * SECOND)
        expected = [(change.at, *change.row) for change in harness.take()]
        assert expected
        assert w.rows("q") == expected


# ------------------------------------------------------------ promises about single groups


def test_a_finished_group_is_answered_while_others_wait(tmp_path: Path) -> None:
    options = "WATTR t ORDERED PER k"
    harness = Harness(BY_GROUP, streams={"s": (COLUMNS, options)})
    with Life(tmp_path / "state") as w:
        declared(w, options, BY_GROUP)
        rows = [(1, 5, 2), (2, 6, 3), (1, 7, 4)]
        w.push(*rows)
        harness.push("s", rows)
        w.promise(30, {"k": 1})
        harness.punctuate("s", 30, where={"k": 1})
        expected = [(change.at, *change.row) for change in harness.take()]
        assert expected == [(10, 1, 12)]
        assert w.rows("q") == expected


def test_what_was_answered_of_a_group_is_not_answered_again_after_a_restart(tmp_path: Path) -> None:
    options = "WATTR t ORDERED PER k"
    w = Life(tmp_path / "state")
    declared(w, options, BY_GROUP)
    w.push((1, 5, 2), (2, 6, 3), (1, 7, 4))
    w.promise(30, {"k": 1})
    first = w.rows("q")
    w.close()
    with Life(tmp_path / "state") as w:
        declared(w, options, BY_GROUP)
        w.promise(30, {"k": 2})
        w.end()
        assert sorted(first + w.rows("q")) == [(10, 1, 12), (10, 2, 6)]


#: an aggregate that is answered from panes, and one that is not
BY_GROUPS = (BY_GROUP, "SELECT ISTREAM(k, SUM(v) AS total) FROM s [RANGE 10] GROUP BY k")


@pytest.mark.parametrize("query", BY_GROUPS)
def test_promises_about_single_groups_need_a_stream_that_has_them(tmp_path: Path, query: str) -> None:
    with Life(tmp_path / "one") as w:
        declared(w, "WATTR t SLACK 3", query)
        w.push((1, 5, 2), (2, 6, 3))
        with pytest.raises(DataError, match="`s` is not punctuated PER `k`"):
            w.punctuate("s", 30, {"k": 1})
        w.end()
        assert w.rows("q") == as_rows(oracle(query, [[(1, 5, 2), (2, 6, 3)]]))
    for options in ("WATTR t ORDERED PER k", "WATTR t"):
        with Life(tmp_path / options) as w:
            declared(w, options, query)
            w.push((1, 5, 2), (2, 6, 3))
            w.punctuate("s", 30, {"k": 1})
            assert {row[-2] for row in w.rows("q")} == {1}
