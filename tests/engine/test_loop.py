"""The loop over sources of a test: what it takes, what it does about failures, and what a crash leaves."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings, strategies as st
from tests.archive.support import temporary
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, COLUMNS, OPTIONS, STREAM, SUMS, as_rows, rows_of, table_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import wait_until

from windrow import session
from windrow.engine import loop
from windrow.engine.loop import Loop
from windrow.engine.output import dispatch
from windrow.errors import DataError, SourceError, StateError, WindrowError
from windrow.session import Windrow
from windrow.spark.sources.source import Absent, Offsets, Position, Source


class Script(Source):
    """Batches that a test has written; a position counts them."""

    fingerprint = "script"

    def __init__(self, *batches: Any, per: int = 1, is_slow: bool = False) -> None:
        self.batches, self.per, self.is_slow = list(batches), per, is_slow
        self.trouble: list[BaseException] = []
        self.changes, self.taken = 0, list[int]()

    def latest(self) -> int:
        if self.trouble:
            raise self.trouble.pop(0)
        return len(self.batches)

    def upto(self, start: Position, latest: int) -> Offsets | None:
        first = start.get("batch", 0)
        last = min(latest, first + self.per)
        return None if first >= latest else Offsets({"batch": last}, has_more=last < latest)

    def frame(self, start: Position, end: Offsets) -> Any:
        batches = self.batches[start.get("batch", 0) : end.at["batch"]]
        return table_of([row for batch in batches for row in batch])

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        first, last = start.get("batch", 0), end.at["batch"]
        return None if last - first < 2 else Offsets({"batch": (first + last) // 2}, has_more=True)

    def piece(self, start: Position, end: Offsets) -> str:
        return f"batch {start.get('batch', 0)}"

    def check(self, end: Offsets) -> bool:
        self.changes -= 1
        return self.changes < 0

    def committed(self, end: Offsets, commit: int) -> None:
        self.taken.append(end.at["batch"])


def made(folder: Path, source: Source, sink: Any = None, stream: str = STREAM) -> Life:
    w = Life(folder / "state")
    w.sql(stream)
    w.query("q", SUMS, sink=sink)
    w._sources["s"] = source
    return w


def test_a_run_takes_what_is_there_and_another_goes_on(tmp_path: Path) -> None:
    script = Script(*BATCHES[:3])
    with made(tmp_path, script) as w:
        w.run(once=True)
        assert script.taken == [1, 2, 3]
        before = w.rows("q")
    later = Script(*BATCHES, per=2)
    with made(tmp_path, later) as w:
        w.run(once=True, flush=True)
        assert later.taken == [5, 7]
        assert sorted(before + w.rows("q")) == as_rows(oracle(SUMS))


def test_rows_that_come_while_it_runs_are_taken(tmp_path: Path) -> None:
    script = Script(BATCHES[0])
    with made(tmp_path, script) as w:
        w.start()
        for batch in BATCHES[1:]:
            script.batches.append(batch)
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        w.stop()
        w.end()
        assert Counter(w.rows("q")) == oracle(SUMS)


# ------------------------------------------------------------ failures

STEPS = ("ingest", "close", "commit", "files")


def broken(w: Life, step: str, error: BaseException, passage: int) -> None:
    """One step of the engine fails once, after so many times."""
    owner, name = {
        "ingest": (w.engine.jobs, "ingest"),
        "close": (w.engine.jobs, "close"),
        "commit": (w.engine.log, "commit"),
        "files": (w.engine, "draft"),
    }[step]
    real, left = getattr(owner, name), [passage]

    def act(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise error
        return real(*arguments)

    setattr(owner, name, act)


@pytest.mark.part(2)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("passage", [1, 3])
def test_an_epoch_that_fails_is_told_of_and_made_again(
    tmp_path: Path, step: str, passage: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    with made(tmp_path, Script(*BATCHES)) as w:
        broken(w, step, WindrowError("a worker is gone", code="job-failed"), passage)
        told: list[Any] = []
        tell = w.engine.tell

        def noted(kind: str, name: str, error: WindrowError | None) -> None:
            told.extend([kind] if error is not None else [])
            tell(kind, name, error)

        w.engine.tell = noted
        w.run(once=True, flush=True)
        assert w.rows("q") == as_rows(oracle(SUMS))
        assert told == ["retried"]
        assert not w.problems


def test_a_failure_that_does_not_pass_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    with made(tmp_path, Script(*BATCHES)) as w:
        tries: list[int] = []

        def fail(*_: Any) -> Any:
            tries.append(1)
            raise WindrowError("no worker comes", code="worker-late")

        w.engine.jobs.ingest = fail
        with pytest.raises(WindrowError, match="no worker comes"):
            w.run(once=True)
        assert len(tries) == loop.ATTEMPTS


def test_rows_at_fault_are_not_read_again(tmp_path: Path) -> None:
    with made(tmp_path, Script(*BATCHES)) as w:
        tries: list[int] = []

        def fail(*_: Any) -> Any:
            tries.append(1)
            raise DataError("what a row", code="malformed-row")

        w.engine.jobs.ingest = fail
        with pytest.raises(DataError, match="what a row"):
            w.run(once=True)
        assert len(tries) == 1


def dying(w: Life, is_deadly: Callable[[Any], bool]) -> list[int]:
    """Workers die of some rows; the batches of rows that they were given."""
    real, given = w.engine.jobs.ingest, list[int]()

    def ingest(batches: Any, *rest: Any) -> Any:
        given.append(sum(len(batch.frame) for batch in batches))
        if any(is_deadly(batch.frame) for batch in batches):
            raise WindrowError("a worker has died", code="worker-died")
        return real(batches, *rest)

    w.engine.jobs.ingest = ingest
    return given


@pytest.mark.part(4)
@pytest.mark.parametrize("deadly", [0, 1, 5, len(BATCHES) - 1])
@pytest.mark.parametrize("streams", [1, 3])
def test_a_row_that_workers_die_of_is_found_and_named(
    tmp_path: Path, deadly: int, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    batches = [
        [(*row[:1], 666 if number == deadly else row[1], *row[2:]) for row in batch[:1]]
        for number, batch in enumerate(BATCHES)
    ]
    script = Script(*batches, per=100)
    others = [Script(*BATCHES, per=100) for _ in range(1, streams)]
    with made(tmp_path, script) as w:
        for number, other in enumerate(others):
            w.sql(f"CREATE STREAM r{number} ({COLUMNS}) {OPTIONS}")
            w._sources = {f"r{number}": other, **w._sources}
        tries = dying(w, lambda rows: 666 in rows["v"].to_pylist())
        with pytest.raises(DataError, match=f"workers die of batch {deadly} of stream `s`") as refused:
            w.run(once=True)
        assert refused.value.code == "poison-row"
        assert w.engine.streams["s"].read.offsets.get("batch", 0) == deadly
        assert len(tries) < 30
        batches[deadly][0] = BATCHES[deadly][0]  # it is mended
        w.run(once=True)
        assert script.taken[-1] == len(batches)
        assert all(other.taken == [len(BATCHES)] for other in others)


@pytest.mark.parametrize("deadly", [0, 5, 41, 99])
@pytest.mark.parametrize("is_bounded", [False, True])
def test_a_row_of_a_piece_is_found_and_nothing_is_committed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadly: int, is_bounded: bool
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    script = Script([(1, 666 if number == deadly else number, number) for number in range(100)])
    script.is_bounded = is_bounded
    with made(tmp_path, script) as w:
        tries = dying(w, lambda rows: 666 in rows["v"].to_pylist())
        before, files = w.engine.last, sorted((tmp_path / "state").rglob("*"))
        with pytest.raises(DataError, match=f"workers die of batch 0 of stream `s` at row {deadly + 1}: a"):
            w.run(once=True)
        assert len(tries) <= loop.DEATHS + 8
        assert (w.engine.last, script.taken) == (before, [])
        assert sorted((tmp_path / "state").rglob("*")) == files
        script.batches[0][deadly] = (1, deadly, deadly)
        w.run(once=True, flush=True)
        assert w.rows("q") == as_rows(oracle(SUMS, [[(1, number, number) for number in range(100)]]))


def test_of_a_piece_that_is_too_much_no_row_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its rows is taken by itself; nor is one of a job that fails in another way."""
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    with made(tmp_path, Script([(1, number, number) for number in range(100)])) as w:
        dying(w, lambda rows: len(rows) > 7)
        with pytest.raises(DataError, match="workers die of batch 0 of stream `s`: a worker has died"):
            w.run(once=True)

        def fail(batches: Any, *_: Any) -> Any:
            raise WindrowError("no", code="worker-died" if len(batches[0].frame) > 50 else "job-failed")

        w.engine.jobs.ingest = fail
        with pytest.raises(DataError, match="workers die of batch 0 of stream `s`: no"):
            w.run(once=True)


def test_rows_that_are_too_many_for_workers_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    script = Script(*BATCHES, per=100)
    with made(tmp_path, script) as w:
        tries = dying(w, lambda rows: len(rows) > 7)
        w.run(once=True, flush=True)
        assert max(tries) > 7
        assert w.rows("q") == as_rows(oracle(SUMS))
        assert not w.problems


def test_what_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    script = Script(*BATCHES)
    script.changes = 3
    with made(tmp_path, script) as w:
        w.run(once=True, flush=True)
        assert w.rows("q") == as_rows(oracle(SUMS))
        assert script.taken == list(range(1, len(BATCHES) + 1))


def test_a_source_that_is_away_holds_up_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "AWAY", 0.01)
    away, script = Script(*BATCHES, is_slow=True), Script(*BATCHES, is_slow=True)
    away.trouble = [SourceError("nobody answers", code="source-away") for _ in range(200)]
    with made(tmp_path, script) as w:
        w.sql(f"CREATE STREAM r ({COLUMNS}) {OPTIONS}")
        w.query("other", SUMS.replace("FROM s", "FROM r"))
        w._sources["r"] = away
        w.start()
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        assert [error.code for error in w.problems] == ["source-away"]
        away.trouble.clear()
        wait_until(lambda: away.taken[-1:] == [len(BATCHES)])
        assert not w.problems
        w.stop()
        assert w.rows("other") == w.rows("q")


@pytest.mark.parametrize("once", [False, True])
def test_a_source_that_is_away_when_its_new_rows_are_looked_at(tmp_path: Path, once: bool) -> None:
    """It is left out until it answers again; a run that ends asks a few times."""

    class Looking(Script):
        def __init__(self) -> None:
            super().__init__(*BATCHES, is_slow=True)
            self.is_away, self.asked = True, 0

        def upto(self, start: Position, latest: int) -> Offsets | None:
            self.asked += 1
            if self.is_away:
                raise SourceError("the store does not answer", code="source-away")
            return super().upto(start, latest)

    away, script = Looking(), Script(*BATCHES, is_slow=True)
    with made(tmp_path, script) as w:
        w.sql(STREAM.replace("STREAM s ", "STREAM r "))
        w.query("p", SUMS.replace("FROM s", "FROM r"))
        w._sources["r"] = away
        if once:
            with pytest.raises(SourceError, match="the store does not answer"):
                w.run(once=True)
            assert away.asked == loop.ASKED_ONCE
            away.is_away = False
            w.run(once=True)
        else:
            w.start()
            wait_until(lambda: script.taken[-1:] == [len(BATCHES)] and away.asked > 1)
            assert away.taken == []
            away.is_away = False
            wait_until(lambda: away.taken[-1:] == [len(BATCHES)])
            w.stop()
        w.run(once=True, flush=True)
        assert Counter(w.rows("p")) == Counter(w.rows("q")) == oracle(SUMS)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_source_that_is_away_in_a_job_of_several_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """By the job's error, or else by asking the sources that it has read; the others go on without it."""
    monkeypatch.setattr(loop, "AWAY", 0.01)
    monkeypatch.setattr(loop, "PAUSE", 0.001)

    class Absent(Script):
        is_away = True

        def check(self, end: Offsets) -> bool:
            if self.is_away:
                raise SourceError("the store does not answer", code="source-away")
            return True

    away, script = Absent(*BATCHES, is_slow=True), Script(*BATCHES, is_slow=True)
    with made(tmp_path, script) as w:
        w.sql(f"CREATE STREAM r ({COLUMNS}) {OPTIONS}")
        w.query("other", SUMS.replace("FROM s", "FROM r"))
        w._sources = {"r": away, **w._sources}
        real = w.engine.jobs.ingest

        def ingest(batches: Any, *rest: Any) -> Any:
            if away.is_away and any(batch.stream.name == "r" for batch in batches):
                error = SourceError("a file cannot be read", code="source-away")
                error.stream = "r" if is_known else None
                raise error
            return real(batches, *rest)

        w.engine.jobs.ingest = ingest
        w.start()
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        assert away.taken == []
        away.is_away = False
        wait_until(lambda: away.taken[-1:] == [len(BATCHES)])
        w.stop()
        assert w.rows("other") == w.rows("q")


def test_a_source_that_is_away_before_the_commit_is_left_out(tmp_path: Path) -> None:
    """Nobody can tell whether what was read is still so."""

    class Absent(Script):
        def check(self, end: Offsets) -> bool:
            if self.trouble:
                raise self.trouble.pop()
            return True

    script = Absent(*BATCHES)
    script.trouble = []
    with made(tmp_path, script) as w:
        script.latest = lambda: len(script.batches)  # type: ignore[method-assign]
        script.trouble = [SourceError("the store does not answer", code="source-away")]
        w.start()
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        w.stop()
        w.end()
        assert w.rows("q") == as_rows(oracle(SUMS))


def test_a_source_that_is_not_what_it_was_ends_the_run(tmp_path: Path) -> None:
    script = Script(*BATCHES, is_slow=True)
    script.trouble = [SourceError("it was changed", code="file-changed")]
    w = made(tmp_path, script)
    w.start()
    with pytest.raises(SourceError, match="it was changed"):
        w.wait(60)
    w.close()


def test_of_two_that_are_behind_the_one_furthest_back_is_read(tmp_path: Path) -> None:
    order: list[tuple[str, int]] = []

    class Noted(Script):
        def __init__(self, name: str, moments: list[int]) -> None:
            super().__init__(*([(1, 1, t)] for t in moments))
            self.name, self.moments = name, moments

        def committed(self, end: Offsets, commit: int) -> None:
            order.append((self.name, self.moments[end.at["batch"] - 1]))

    with Life(tmp_path / "state") as w:
        for name in ("a", "b"):
            w.sql(f"CREATE STREAM {name} ({COLUMNS}) WATTR t ORDERED")
        w.query("q", "SELECT ISTREAM(x.k) FROM a [RANGE 5] x, b [RANGE 5] y WHERE x.k = y.k")
        w._sources["a"] = Noted("a", [10, 20, 30, 40, 50])
        w._sources["b"] = Noted("b", [100, 110, 120])
        w.run(once=True)
    behind = [moment for name, moment in order if name == "b"][1:]
    assert order.index(("b", 110)) > order.index(("a", 40))
    assert len(order) == 8
    assert behind == [110, 120]


def test_stop_is_heard_while_an_epoch_waits_to_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 3600.0)
    w = made(tmp_path, Script(*BATCHES))
    failed = threading.Event()

    def fail(*_: Any) -> Any:
        failed.set()
        raise WindrowError("no worker comes", code="worker-late")

    w.engine.jobs.ingest = fail
    w.start()
    assert failed.wait(60)
    with suppress(WindrowError):
        w.stop()
    assert not w.is_running
    w.close()


# ------------------------------------------------------------ away when a run begins

AT_BROKERS = f"CREATE STREAM {{}} ({COLUMNS}) {OPTIONS} FROM 'kafka://nowhere:9092/{{}}'"
NO_ANSWER = SourceError("nobody answers", code="kafka")


class Openings:
    """What is behind the URLs of streams: a source, or why it cannot be opened, by the stream's name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **behind: Source | WindrowError) -> None:
        self.behind, self.tries = behind, Counter[str]()
        monkeypatch.setattr(session, "open_url", self)
        monkeypatch.setattr(loop, "AWAY", 0.01)
        monkeypatch.setattr(loop, "PAUSE", 0.001)
        monkeypatch.setattr(loop, "LONGEST_PAUSE", 0.05)

    def __call__(self, _: Any, stream: Any) -> Source:
        self.tries[stream.name] += 1
        found = self.behind[stream.name]
        if isinstance(found, WindrowError):
            raise found
        return found


def both(folder: Path) -> Life:
    """Streams s and r of topics, and the same query over each."""
    w = Life(folder / "state")
    for name, query in (("s", "q"), ("r", "other")):
        w.sql(AT_BROKERS.format(name, name))
        w.query(query, SUMS.replace("FROM s", f"FROM {name}"))
    return w


def test_a_source_that_is_away_when_a_run_begins_holds_up_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, away = Script(*BATCHES), Script(*BATCHES, is_slow=True)
    openings = Openings(monkeypatch, s=script, r=NO_ANSWER)
    with both(tmp_path) as w:
        w.start()
        wait_until(lambda: script.taken[-1:] == [len(BATCHES)])
        wait_until(lambda: openings.tries["r"] > 2)
        assert w.problems == [NO_ANSWER]
        assert w.engine.streams["r"].known.accepted == 0
        openings.behind["r"] = away
        wait_until(lambda: away.taken[-1:] == [len(BATCHES)])
        assert not w.problems
        w.stop()
        assert openings.tries["s"] == 1
        before = openings.tries["r"]
        w.run(once=True, flush=True)  # it stays open
        assert openings.tries["r"] == before
        assert w.rows("other") == w.rows("q") == as_rows(oracle(SUMS))


def test_pauses_before_a_source_is_opened_again_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    class Ended:
        is_set = staticmethod(lambda: len(pauses) == 9)
        wait = staticmethod(pauses.append)

    def opens() -> Source:
        raise NO_ANSWER

    look = loop.Look("s", Absent(opens, NO_ANSWER).latest, loop.Board(), lambda: 0)
    look._ended = Ended()  # type: ignore[assignment]
    look.run()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]


@pytest.mark.parametrize("is_away", [False, True])
def test_a_crash_while_a_source_is_away_or_after_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_away: bool
) -> None:
    """Of three lives the source is away when the second begins; in its middle it answers, or never does."""
    openings = Openings(monkeypatch, s=Script(*BATCHES[:3]), r=Script(*BATCHES[:3]))
    heard: dict[str, dict[int, Any]] = {"q": {}, "other": {}}

    def hear(query: str) -> Callable[[Any, int], None]:
        return lambda table, commit: heard[query].update({commit: rows_of(table)})

    def live() -> Life:
        w = Life(tmp_path / "state")
        for name, query in (("s", "q"), ("r", "other")):
            w.sql(AT_BROKERS.format(name, name))
            w.query(query, SUMS.replace("FROM s", f"FROM {name}"), sink=hear(query))
        return w

    with live() as w:
        w.run(once=True)
    script, away = Script(*BATCHES[:5]), Script(*BATCHES[:5], is_slow=True)
    openings.behind = {"s": script, "r": NO_ANSWER}
    w = live()
    w.start()
    wait_until(lambda: script.taken[-1:] == [5])
    if not is_away:
        openings.behind["r"] = away
        wait_until(lambda: away.taken[-1:] == [5])
    w.stop()
    w.vanish()
    openings.behind = {"s": Script(*BATCHES), "r": Script(*BATCHES)}
    with live() as w:
        w.run(once=True, flush=True)
    for commits in heard.values():
        assert Counter(row for rows in commits.values() for row in rows) == oracle(SUMS)


def test_a_run_that_ends_asks_a_source_a_few_times_before_it_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = Openings(monkeypatch, s=Script(*BATCHES), r=NO_ANSWER)
    with both(tmp_path) as w:
        with pytest.raises(SourceError, match="nobody answers"):
            w.run(once=True, flush=True)
        assert openings.tries["r"] == loop.ASKED_ONCE
        assert not w.engine.streams["s"].known.sealed
        openings.behind["r"] = NO_ANSWER
        left = [2]

        def open_url(spark: Any, stream: Any) -> Source:
            left[0] -= stream.name == "r"
            return Script(*BATCHES) if not left[0] else openings(spark, stream)

        monkeypatch.setattr(session, "open_url", open_url)
        w.run(once=True, flush=True)
        assert w.rows("other") == w.rows("q") == as_rows(oracle(SUMS))


@pytest.mark.parametrize(
    "error",
    [
        SourceError("there is no topic", code="no-topic"),
        SourceError("no such property", code="bad-option"),
        SourceError("there is no directory", code="no-files"),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_what_will_not_pass_ends_the_run_also_after_a_source_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: WindrowError, is_late: bool
) -> None:
    openings = Openings(monkeypatch, s=Script(*BATCHES), r=NO_ANSWER if is_late else error)
    w = both(tmp_path)
    if is_late:
        w.start()
        wait_until(lambda: bool(w.problems))
        openings.behind["r"] = error
        with pytest.raises(SourceError) as told:
            w.wait(60)
    else:
        with pytest.raises(SourceError) as told:
            w.start()
    assert told.value is error
    w.close()


@pytest.mark.parametrize("once", [False, True])
def test_a_source_that_was_away_is_refused_if_it_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: bool
) -> None:
    openings = Openings(monkeypatch, s=Script(*BATCHES[:3]), r=Script(*BATCHES[:3]))
    with both(tmp_path) as w:
        w.run(once=True)
    other, left = Script(*BATCHES), [2]
    other.fingerprint = "another script"

    def open_url(spark: Any, stream: Any) -> Source:
        left[0] -= stream.name == "r"
        return other if not left[0] else openings(spark, stream)

    openings.behind = {"s": Script(*BATCHES), "r": NO_ANSWER}
    monkeypatch.setattr(session, "open_url", open_url)
    w = both(tmp_path)
    with pytest.raises(StateError, match="stream `r` comes from another source than before") as told:  # noqa: PT012
        if once:
            w.run(once=True)
        else:
            w.start()
            w.wait(60)
    assert told.value.code == "source-changed"
    assert other.taken == []
    w.close()


def test_a_bounded_source_that_goes_away_before_it_is_read_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only then the run is over, and what the other had is answered to its end."""

    class Whole(Script):
        is_bounded = True

    openings = Openings(monkeypatch)
    whole = Whole(*BATCHES, per=len(BATCHES), is_slow=True)
    whole.trouble = [NO_ANSWER] * (loop.ASKED_ONCE + 5)
    openings.behind = {"s": Whole(*BATCHES, per=len(BATCHES)), "r": whole}
    with both(tmp_path) as w:
        w.run(flush=True)
        assert whole.taken == [len(BATCHES)]
        assert w.rows("other") == w.rows("q") == as_rows(oracle(SUMS, [sum(BATCHES, ())]))


# ------------------------------------------------------------ idle

PER = f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED PER k IDLE 30 SECONDS"
MINUTE = 60_000_000


def test_sources_are_idle_only_while_it_is_known_that_they_are(tmp_path: Path) -> None:
    script = Script([(1, 1, 0), (2, 1, 0)], [(1, 1, 100)], [(1, 1, 200)], [(1, 1, 300)])
    with made(tmp_path, script, stream=PER) as w:
        heard: list[Any] = []

        def progress() -> Any:
            return w.engine.streams["s"].known.progress.progress

        def watch() -> None:
            heard.append(progress())
            w.time += MINUTE

        w.run(once=True, watch=watch)
        assert heard[:3] == [0, 0, 0]  # there was more to read: nobody can say that k = 2 has nothing
        w.start()
        for moment in (400, 500):
            script.batches.append([(1, 1, moment)])
            wait_until(lambda: script.taken[-1] == len(script.batches))
            w.time += MINUTE
        w.stop()
        assert progress() == 500


SECOND = 1_000_000


class Idle:
    """A run over sources 1, which is ahead, and 2, which has said nothing for 25 of the 30 seconds after
    which it is idle: then the stream is as far as source 1, and what source 2 says is too late."""

    def __init__(self, folder: Path, script: Script) -> None:
        self.script, script.batches = script, [[(1, 1, 0), (2, 1, 0)]]
        self.w = made(folder, script, stream=PER)

    def __enter__(self) -> Self:
        self.w.start()
        wait_until(lambda: self.script.taken[-1:] == [1])
        self.pass_time(25)
        self.say(1, 400)
        return self

    def __exit__(self, *_: object) -> None:
        self.w.stop()
        self.w.close()

    @property
    def progress(self) -> Any:
        return self.w.engine.streams["s"].known.progress.progress

    def pass_time(self, seconds: int = 10) -> None:
        """Time passes, in which the source is asked."""
        self.w.time += seconds * SECOND
        assert self.w._loop is not None
        board = self.w._loop.board
        wait_until(lambda: not self.script.is_slow or (board.latest("s")[1] or 0) >= self.w.time)

    def tick(self) -> None:
        """Epochs are made in which nothing comes."""
        before = self.w.engine.epochs[-1].number
        wait_until(lambda: self.w.engine.epochs[-1].number > before + 1)

    def say(self, source: int, moment: int) -> None:
        self.script.batches.append([(source, 1, moment)])
        self.taken()

    def taken(self) -> None:
        """All that was said is taken, and was not too late."""
        wait_until(lambda: self.script.taken[-1] == len(self.script.batches))
        assert self.w.engine.streams["s"].late == 0

    def check(self) -> None:
        """So far it was not idle; from here on it is."""
        self.tick()
        assert self.progress == 0
        self.pass_time()
        wait_until(lambda: self.progress == 400)


@pytest.fixture
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "TICK", 0.01)
    monkeypatch.setattr(loop, "AWAY", 0.01)
    monkeypatch.setattr(loop, "PAUSE", 0.001)


@pytest.mark.usefixtures("quick_ticks")
@pytest.mark.parametrize("is_slow", [False, True])
def test_a_source_that_has_nothing_is_idle(tmp_path: Path, is_slow: bool) -> None:
    with Idle(tmp_path, Script(is_slow=is_slow)) as run:
        run.tick()
        commit = run.w.engine.last.number
        run.tick()
        assert run.w.engine.last.number == commit  # that time passes is no news
        run.check()


@pytest.mark.usefixtures("quick_ticks")
def test_a_source_that_was_away_was_not_idle(tmp_path: Path) -> None:
    with Idle(tmp_path, Script(is_slow=True)) as run:
        run.script.trouble = [SourceError("nobody answers", code="source-away") for _ in range(10_000)]
        wait_until(lambda: bool(run.w.problems))
        run.w.time += 10 * SECOND
        run.tick()
        run.script.trouble.clear()
        wait_until(lambda: not run.w.problems)
        run.check()


def test_a_source_that_was_away_when_a_run_began_was_not_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that it has are no late rows, however long nobody could read them."""
    script = Script([(1, 1, 0), (2, 1, 0)], [(1, 1, 400)], is_slow=True)
    openings = Openings(monkeypatch, s=script)

    def life() -> Life:
        w = Life(tmp_path / "state")
        w.sql(f"{PER} FROM 'kafka://nowhere:9092/s'")
        w.query("q", SUMS)
        return w

    with life() as w:
        w.run(once=True)
    openings.behind["s"] = NO_ANSWER
    with life() as w:
        w.start()
        wait_until(lambda: w.problems == [NO_ANSWER])
        w.time += 10 * MINUTE
        assert w._loop is not None
        wait_until(lambda: w._loop._watched._missed["s"] >= 10 * MINUTE)
        script.batches.append([(2, 1, 5)])
        openings.behind["s"] = script
        wait_until(lambda: script.taken[-1] == 3)
        w.stop()
        assert w.engine.streams["s"].late == 0
        assert w.engine.streams["s"].known.progress.progress == 5


@pytest.mark.usefixtures("quick_ticks")
def test_a_source_that_takes_its_time_to_answer_is_not_idle_meanwhile(tmp_path: Path) -> None:
    """What it had when it was asked is all that is known."""
    gate, asked = threading.Event(), threading.Event()
    gate.set()

    class Hanging(Script):
        def latest(self) -> int:
            if not gate.is_set():
                asked.set()
                assert gate.wait(60)
            return super().latest()

    with Idle(tmp_path, Hanging(is_slow=True)) as run:
        gate.clear()
        assert asked.wait(60)
        run.w.time += 10 * SECOND
        run.tick()
        assert run.progress == 0
        run.script.batches.append([(2, 1, 300)])
        gate.set()
        run.taken()


@pytest.mark.usefixtures("quick_ticks")
def test_sources_are_not_idle_while_nothing_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since too much waits for a sink."""
    full: list[int] = []
    monkeypatch.setattr(dispatch.Delivering, "is_full", property(lambda _: bool(full)))
    with Idle(tmp_path, Script()) as run:
        full.append(1)
        run.tick()
        run.pass_time()
        run.tick()
        full.clear()
        run.check()


@pytest.mark.usefixtures("quick_ticks")
@pytest.mark.parametrize("fails", ["the job", "the source"])
def test_sources_are_not_idle_while_an_epoch_is_made_again(tmp_path: Path, fails: str) -> None:
    """With their rows or without: what has come since is not known."""
    failed: list[int] = []

    class Changing(Script):
        def check(self, end: Offsets) -> bool:
            if fails == "the job" or end.at["batch"] < 3 or failed:
                return True
            failed.append(1)
            run.pass_time()
            return False

    with Idle(tmp_path, Changing()) as run:
        real = run.w.engine.jobs.ingest

        def ingest(*arguments: Any) -> Any:
            if fails == "the source" or failed:
                return real(*arguments)
            failed.append(1)
            run.script.batches.append([(2, 1, 300)])
            run.pass_time()
            raise WindrowError("a worker is gone", code="job-failed")

        run.w.engine.jobs.ingest = ingest
        run.script.batches.append([(1, 1, 500)] if fails == "the job" else [(2, 1, 300)])
        run.taken()
        assert failed


# ------------------------------------------------------------ lives

POINTS = (
    "before-commit",
    "manifest-temp-written",
    "manifest-linked",
    "after-commit",
    "before-source-told",
    "sink-delivered",
)
PUSHED = f"CREATE STREAM p ({COLUMNS}) {OPTIONS} FROM 'push:'"


class Lives:
    """One state directory, and all that was heard of it; some of its processes die."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.heard: dict[str, dict[int, Any]] = {"q": {}, "pushed": {}}
        (folder / "now").mkdir()

    def open(self) -> Life:
        w = made(self.folder / "now", Script(*BATCHES), lambda t, c: self.hear("q", t, c))
        w.sql(PUSHED)
        w.query("pushed", SUMS.replace("FROM s", "FROM p"), sink=lambda t, c: self.hear("pushed", t, c))
        return w

    def hear(self, query: str, table: Any, commit: int) -> None:
        rows = rows_of(table)
        assert self.heard[query].setdefault(commit, rows) == rows

    def live(self) -> None:
        w = self.open()
        try:
            w.run(once=True)
            for number, batch in enumerate(BATCHES):
                Windrow.push(w, "p", list(batch), key=f"batch {number}")
            w.run(once=True, flush=True)
        finally:
            w.engine.log._lock.release()

    def die(self, point: str, passage: int) -> bool:
        def copy() -> None:
            shutil.copytree(self.folder / "now", self.folder / "then")

        with crashing_at(point, passage, copy) as crash, suppress(Crash, WindrowError):
            self.live()
        if crash.happened:
            shutil.rmtree(self.folder / "now")
            (self.folder / "then").rename(self.folder / "now")
        return crash.happened

    def check(self) -> None:
        for query in self.heard:
            rows = Counter(row for commit in self.heard[query].values() for row in commit)
            assert rows == oracle(SUMS), query


@pytest.mark.deep
@given(deaths=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(1, 12)), max_size=4))
@settings(max_examples=30)
def test_wherever_processes_die_nothing_is_lost_or_doubled(deaths: list[tuple[str, int]]) -> None:
    with temporary() as folder:
        lives = Lives(Path(folder))
        for point, passage in deaths:
            lives.die(point, passage)
        lives.live()
        lives.check()


@pytest.mark.part(24)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("passage", [1, 4, 9, 14])
def test_a_death_at_each_point(point: str, passage: int) -> None:
    with temporary() as folder:
        lives = Lives(Path(folder))
        lives.die(point, passage)
        lives.live()
        lives.check()


# ------------------------------------------------------------ pushes


def pushing(folder: Path, options: str = "") -> Life:
    w = Life(folder / "state")
    w.sql(PUSHED.replace("push:", f"push:{options}"))
    w.query("q", SUMS.replace("FROM s", "FROM p"))
    return w


def test_rows_are_pushed_with_and_without_a_run(tmp_path: Path) -> None:
    with pushing(tmp_path) as w:
        first = Windrow.push(w, "p", list(BATCHES[0]))
        assert first == w.commit
        w.start()
        names = ("k", "v", "t")
        as_dicts = [dict(zip(names, row, strict=True)) for row in BATCHES[1]]
        assert Windrow.push(w, "p", as_dicts) > first
        assert Windrow.push(w, "p", table_of(BATCHES[2]).to_pandas()) > first
        w.stop()
        for batch in BATCHES[3:]:
            Windrow.push(w, "p", table_of(batch))
        w._engine.epoch(seals=["p"])
        assert w.rows("q") == as_rows(oracle(SUMS))


def test_the_same_key_twice_is_one_push_also_after_a_restart(tmp_path: Path) -> None:
    with pushing(tmp_path) as w:
        first = Windrow.push(w, "p", list(BATCHES[0]), key="a")
        assert Windrow.push(w, "p", list(BATCHES[0]), key="a") == first
    with pushing(tmp_path) as w:
        assert Windrow.push(w, "p", list(BATCHES[0]), key="a") == 0
        w._engine.epoch(seals=["p"])
        assert w.rows("q") == as_rows(oracle(SUMS, BATCHES[:1]))


def test_more_than_may_wait_is_refused_and_can_be_pushed_later(tmp_path: Path) -> None:
    with pushing(tmp_path, "?rows_waiting=3") as w:
        source: Any = w._pushed("p")
        source.give(list(BATCHES[0]))
        with pytest.raises(StateError) as told:
            source.give(list(BATCHES[1]))
        assert told.value.code == "busy"
        w.run(once=True)
        Windrow.push(w, "p", list(BATCHES[1]))
        assert w.engine.streams["p"].known.accepted == 6


def test_a_push_that_is_not_waited_for_is_taken_back(tmp_path: Path) -> None:
    with pushing(tmp_path) as w:
        w.start()
        with w.engine.lock, pytest.raises(StateError, match="in no commit after"):
            Windrow.push(w, "p", [(1, 1, 5)], timeout=0.05)
        w.stop()


def test_a_push_that_a_run_leaves_behind_is_taken_after_it(tmp_path: Path) -> None:
    """Nobody waits for a run that has ended; and nobody for an engine that is closed."""
    told: list[Any] = []

    def push(moment: int) -> None:
        try:
            told.append(Windrow.push(w, "p", [(1, 1, moment)]))
        except StateError as error:
            told.append(error.code)

    with pushing(tmp_path) as w:
        source: Any = w._pushed("p")
        for closes, moment in ((False, 5), (True, 6)):
            w._loop = Loop(w.engine, {}, tmp_path)  # one that takes nothing
            waits = threading.Thread(target=push, args=(moment,))
            waits.start()
            wait_until(lambda: source.latest() != ())
            w._closed, w._loop = closes, None
            waits.join()
        w._closed = False
        assert told == [w.commit, "busy"]
        assert w.engine.streams["p"].known.accepted == 1


@pytest.mark.parametrize("deadly", [0, 3, 6])
def test_pushes_before_one_that_workers_die_of_are_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadly: int
) -> None:
    monkeypatch.setattr(loop, "PAUSE", 0.001)
    with pushing(tmp_path) as w:
        source: Any = w._pushed("p")
        given = [source.give(list(batch)) for batch in BATCHES]
        first = BATCHES[deadly][0]
        dying(w, lambda rows: first in rows_of(rows.select(["k", "v", "t"])))
        with pytest.raises(DataError, match=f"workers die of a push of {len(BATCHES[deadly])} rows") as told:
            w.run(once=True)
        assert told.value.code == "poison-row"
        assert [push.committed.done() for push in given] == [number < deadly for number in range(7)]
        source.withdraw(given[deadly])
        w.run(once=True)
        rows = sum(len(batch) for number, batch in enumerate(BATCHES) if number != deadly)
        assert w.engine.streams["p"].read.offsets == {"row": rows}
        assert w.engine.streams["p"].known.accepted + w.engine.streams["p"].late == rows


def test_of_two_who_push_the_same_each_is_told(tmp_path: Path) -> None:
    """Also if one of them does not wait any longer, and takes it back."""
    told: list[Any] = []
    with pushing(tmp_path) as w:
        source: Any = w._pushed("p")
        w._loop = Loop(w.engine, {}, tmp_path)  # one that takes nothing

        def push(timeout: float | None) -> None:
            try:
                Windrow.push(w, "p", list(BATCHES[0]), key="a", timeout=timeout)
            except StateError as error:
                told.append(error.code)

        patient = threading.Thread(target=push, args=(None,))
        patient.start()
        wait_until(lambda: source.latest() != ())
        push(0.01)
        patient.join()
        w._loop = None
    assert told == ["busy", "busy"]


def test_only_pushes_with_keys_are_remembered(tmp_path: Path) -> None:
    """The others cannot come again."""
    with pushing(tmp_path) as w:
        for number in range(3):
            Windrow.push(w, "p", list(BATCHES[number]))
        assert w.engine.keys_of("p") is None
        Windrow.push(w, "p", list(BATCHES[3]), key="a")
        keys = w.engine.keys_of("p")
        assert keys is not None
        assert keys.num_rows == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, 2)], "2 values, but there are 3 columns"),
        ([{"k": 1, "w": 2}], "has no column `w`"),
        ([(1, "x", 3)], "v is BIGINT"),
        ("text", "cannot be read from a str"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_they_wait(tmp_path: Path, rows: Any, message: str) -> None:
    with pushing(tmp_path) as w:
        with pytest.raises(WindrowError, match=message):
            Windrow.push(w, "p", rows)
        assert w.engine.streams["p"].known.accepted == 0


def test_only_streams_that_are_declared_so_take_pushes(tmp_path: Path) -> None:
    with made(tmp_path, Script()) as w:
        with pytest.raises(WindrowError, match="takes no pushes"):
            Windrow.push(w, "s", [(1, 2, 3)])
        with pytest.raises(WindrowError, match="no stream `nobody`"):
            Windrow.push(w, "nobody", [])
