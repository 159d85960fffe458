"""A run in the background that fails, wherever that happens, is heard of: in every place a user may look."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.history import BATCHES, STREAM, SUMS, table_of
from tests.support.life import Life
from tests.support.patience import PATIENCE

from windrow.cli.session import ShellSession
from windrow.errors import QueryError, SourceError, StateError, WindrowError
from windrow.spark import failures
from windrow.spark.failures import Cause
from windrow.spark.sources import Bounded
from windrow.spark.sources.streaming_frame import StreamingFrame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OURS = SourceError("the disk is on fire", code="fire", hint="put it out")
RAW = RuntimeError("a mistake of ours")


class FakeFrame:
    """A streaming frame whose query starts, or does not, and then ends as it is told."""

    def __init__(self, *ends: str | None) -> None:
        self.ends, self.starts, self.names = list(ends), 0, list[str]()
        self.refusal: BaseException | None = None

    @property
    def writeStream(self) -> FakeFrame:  # noqa: N802  as Spark calls it
        return self

    def foreachBatch(self, _: object) -> FakeFrame:  # noqa: N802
        return self

    def option(self, *_: object) -> FakeFrame:
        return self

    def queryName(self, name: str) -> FakeFrame:  # noqa: N802
        self.names.append(name)
        return self

    def trigger(self, **_: object) -> FakeFrame:
        return self

    def start(self) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.starts += 1
        end = self.ends.pop(0) if self.ends else None
        return SimpleNamespace(isActive=False, exception=lambda: end, stop=lambda: None, lastProgress=None)


def raising(error: BaseException, after: int = 0, do: Callable[..., Any] = lambda *_: None) -> Any:
    """A function that raises, after so many calls that are done as before."""
    left = [after]

    def act(*arguments: Any, **how: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise error
        return do(*arguments, **how)

    return act


def deliver_first(w: Life, error: BaseException) -> None:
    w.engine.deliver = raising(error)


def look_at_tables(w: Life, error: BaseException) -> None:
    w._refreshing.is_due = raising(error)  # type: ignore[method-assign]


def read_rows(w: Life, error: BaseException) -> None:
    w.engine.jobs.ingest = raising(error)


def close_windows(w: Life, error: BaseException) -> None:
    w.engine.jobs.close = raising(error)


def commit(w: Life, error: BaseException) -> None:
    w.engine.commit_draft = raising(error)


def start_a_feed(w: Life, error: BaseException) -> None:
    frame = FakeFrame()
    frame.refusal = error
    unbounded(w, frame)


def deliver_last(w: Life, error: BaseException) -> None:
    w.engine.deliver = raising(error, after=2, do=w.engine.deliver)


def unbounded(w: Life, frame: FakeFrame) -> None:
    source: Any = StreamingFrame(frame, "script")  # type: ignore[arg-type]
    w._sources["s"] = source


STEPS = (
    deliver_first,
    look_at_tables,
    read_rows,
    close_windows,
    commit,
    start_a_feed,
    deliver_last,
)


def begun(folder: Path) -> Life:
    w = Life(folder / "state")
    w.sql(STREAM)
    w.query("q", SUMS)
    table: Any = table_of([row for batch in BATCHES for row in batch])
    w._sources["s"] = Bounded(table, "script")
    return w


def failed(folder: Path, step: Callable[[Life, BaseException], None], error: BaseException) -> Life:
    """An engine whose run in the background has failed at a step, and nobody has been told yet."""
    w = begun(folder)
    before = w.engine.deliver, w.engine.commit_draft
    step(w, error)
    w.start()
    assert w._thread is not None
    w._thread.join(PATIENCE)
    assert not w.is_running
    w.engine.deliver, w.engine.commit_draft = before  # it can be closed
    return w


def leave(w: Life) -> None:
    with w:
        pass


@pytest.mark.parametrize("error", [OURS, RAW], ids=["ours", "raw"])
@pytest.mark.parametrize("outlet", [Life.wait, Life.stop, leave], ids=lambda outlet: outlet.__name__)
def test_it_is_raised_once(outlet: Callable[[Life], Any], error: BaseException, tmp_path: Path) -> None:
    w = failed(tmp_path, read_rows, error)
    with pytest.raises(type(error)) as raised:
        outlet(w)
    assert raised.value is error
    assert w.wait()
    w.close()
    w.close()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_it_is_shown_and_raised(step: Callable[[Life, BaseException], None], tmp_path: Path) -> None:
    w = failed(tmp_path, step, OURS)
    progress = w.queries["q"].progress
    assert (progress.status, progress.error) == (
        "stopped",
        {"message": "the disk is on fire", "code": "fire", "hint": "put it out"},
    )
    assert repr(w.queries["q"]).startswith("<query q: stopped")
    assert w.sql("SHOW QUERIES")[0]["status"].to_pylist() == ["stopped"]
    assert w.problems == [OURS]
    assert w.exception is OURS
    with pytest.raises(SourceError) as raised:
        w.close()
    assert raised.value is OURS
    assert w.problems == [OURS]  # raised, it is not forgotten


def test_a_raw_error_is_shown_as_one_of_ours(tmp_path: Path) -> None:
    w = failed(tmp_path, read_rows, RAW)
    (problem,) = w.problems
    assert isinstance(problem, WindrowError)
    assert problem.render() == (
        "error[run-failed]: the run has ended: RuntimeError: a mistake of ours\n"
        "  = nothing that was committed is lost; start again to go on from there"
    )
    with pytest.raises(RuntimeError):
        w.close()


def test_another_start_begins_with_a_clean_sheet(tmp_path: Path) -> None:
    w = failed(tmp_path, read_rows, OURS)
    del w.engine.jobs.ingest  # mended
    w.start()
    assert w.wait(PATIENCE)
    assert (w.problems, w.exception, w.queries["q"].progress.status) == ([], None, "running")
    w.close()


def test_an_error_in_the_block_is_the_one_that_is_seen(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as raised, failed(tmp_path, read_rows, OURS):
        1 / 0  # noqa: B018
    assert raised.value.__notes__ == ["and then, at the end of `with`: the disk is on fire (put it out)"]


def test_a_query_that_fails_in_the_background_is_told_at_the_end(tmp_path: Path) -> None:
    w = begun(tmp_path)
    w.query("bad", "SELECT k, SUM(CAST(CONCAT('x', k) AS INT)) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k")
    w.start()
    with pytest.raises(WindrowError, match="query `bad` was stopped"):
        w.wait(PATIENCE)
    assert [w.queries[name].progress.status for name in ("q", "bad")] == ["running", "failed"]
    w.close()


def test_waiting_for_a_run_that_goes_on(tmp_path: Path) -> None:
    w, go_on = begun(tmp_path), threading.Event()
    ingest = w.engine.jobs.ingest
    w.engine.jobs.ingest = lambda *arguments: (go_on.wait(PATIENCE), ingest(*arguments))[1]
    assert w.wait()  # there is none
    w.start()
    assert not w.wait(timeout=0.01)
    go_on.set()
    assert w.wait(PATIENCE)
    assert w.rows("q")
    w.close()


def test_the_run_cannot_wait_for_itself(tmp_path: Path) -> None:
    w = begun(tmp_path)
    w._refreshing.is_due = w.wait  # type: ignore[method-assign, assignment]
    w.start()
    with pytest.raises(StateError, match="cannot wait for its own end"):
        w.wait(PATIENCE)
    w.close()


# ------------------------------------------------------------ the shell


def shell(folder: Path, monkeypatch: pytest.MonkeyPatch, w: Life) -> ShellSession:
    monkeypatch.setattr("windrow.session.Windrow", lambda *_, **__: w)
    session = ShellSession(folder / "state", is_typed=False)
    session.take(STREAM)
    session.take(f"CREATE QUERY q AS {SUMS}")
    session._declared.check_sources = lambda text: None  # type: ignore[method-assign]
    return session


@pytest.mark.parametrize("command", [".stop", ".watch q", "SHOW QUERIES;", ".quit"])
def test_the_shell_tells_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    w = Life(tmp_path / "state")
    session = shell(tmp_path, monkeypatch, w)
    table: Any = table_of(BATCHES[0])
    w._sources["s"] = Bounded(table, "script")
    w.engine.jobs.ingest = raising(OURS)
    session.take(".start")
    assert w._thread is not None
    w._thread.join(PATIENCE)
    if session.take(command):
        session.take(".tables")
    session.close()
    told = capsys.readouterr()
    assert told.err.count("error[fire]: the disk is on fire\n  = put it out\n") == 1
    if command in (".stop", ".watch q"):
        assert "nothing is running: the run has failed\n  = .start goes on from the last commit" in told.err
    if command == "SHOW QUERIES;":
        assert "q     stopped" in told.out


def test_the_shell_tells_again_what_fails_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    w = Life(tmp_path / "state")
    session = shell(tmp_path, monkeypatch, w)
    w._sources["s"] = Bounded(table_of(BATCHES[0]), "script")  # type: ignore[arg-type]
    w.engine.jobs.ingest = raising(OURS)
    for _ in range(2):
        session.take(".start")
        assert w._thread is not None
        w._thread.join(PATIENCE)
        session.take(".tables")
    session.close()
    assert capsys.readouterr().err.count("error[fire]") == 2


# ------------------------------------------------------------ feeds

LATE = "org.apache.spark.SparkException: Python worker failed to connect back."


@pytest.fixture
def late_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the JVM says why a query has ended so."""
    late = Cause("java.net.SocketTimeoutException", thrower="org.apache.spark.api.python.PythonWorkerFactory")
    monkeypatch.setattr(failures, "causes", lambda error: [late] if str(error) == LATE else [])


@pytest.mark.usefixtures("late_causes")
def test_a_source_whose_python_process_came_too_late_is_begun_again(tmp_path: Path) -> None:
    w, frame = begun(tmp_path), FakeFrame(LATE, LATE)
    unbounded(w, frame)
    w.run(once=True)
    assert frame.starts == 3
    assert len(set(frame.names)) == 3
    w.close()


@pytest.mark.usefixtures("late_causes")
def test_a_source_whose_python_process_never_comes_is_given_up(tmp_path: Path) -> None:
    w, frame = begun(tmp_path), FakeFrame(*[LATE] * 100)
    unbounded(w, frame)
    with pytest.raises(WindrowError, match="not there within ten seconds") as told:
        w.run(once=True)
    assert told.value.code == "worker-late"
    assert 3 < frame.starts < 20
    w.close()


def test_other_failures_of_a_source_are_told_at_once(tmp_path: Path) -> None:
    w, frame = begun(tmp_path), FakeFrame("java.lang.IllegalStateException: no such topic")
    unbounded(w, frame)
    with pytest.raises(WindrowError, match="no such topic"):
        w.run(once=True)
    assert frame.starts == 1
    w.close()


def test_a_name_that_is_not_known_is_told_with_those_that_are(tmp_path: Path) -> None:
    with begun(tmp_path) as w:
        for views, known in ((w.queries, "q"), (w.streams, "s")):
            with pytest.raises(QueryError) as told:
                views[known * 2]
            assert f"`{known}`" in str(told.value.hint)
            assert views.get(known * 2) is None
            assert known * 2 not in views
