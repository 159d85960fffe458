"""Sinks that take time: they are delivered to while epochs are made, and hold up themselves only."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.test_loop import Script
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, COUNTS, STREAM, SUMS, as_rows, rows_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import wait_until

from windrow.engine import loop
from windrow.engine.loop import Loop
from windrow.engine.output import dispatch
from windrow.engine.output.outbox import READERS
from windrow.errors import SinkError, StateError
from windrow.language.catalog import StandingQuery
from windrow.language.compile import compile_query
from windrow.sinks.delivery import Sink

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windrow.sinks import Delivery


class Slow(Sink):
    """Takes what it is given when it may; each delivery first does what the test says."""

    guarantee = "none"
    is_slow = True

    def __init__(self, first: Callable[[int], None] = lambda _: None) -> None:
        self.first = first
        self.commits: list[int] = []
        self.rows: list[Any] = []
        self.threads: set[str] = set()

    def deliver(self, delivery: Delivery) -> None:
        self.threads.add(threading.current_thread().name)
        rows = [row for piece in delivery.pieces() for row in rows_of(piece)]
        self.first(len(self.commits))
        self.commits.append(delivery.commit)
        self.rows += rows

    def close(self) -> None:
        pass


def made(folder: Path, sink: Sink, *batches: Any) -> tuple[Life, Script]:
    w, source = Life(folder / "state"), Script(*(batches or BATCHES))
    w.sql(STREAM)
    w.engine.add_query(StandingQuery("slow", compile_query(SUMS, w._catalog)), sink)
    w.query("quick", COUNTS)
    w._sources["s"] = source
    return w, source


def test_epochs_are_made_while_a_sink_takes_its_time(tmp_path: Path) -> None:
    gate = threading.Event()
    sink = Slow(lambda _: gate.wait(60) and None)
    w, source = made(tmp_path, sink)
    with w:
        w.start()
        wait_until(lambda: source.taken[-1:] == [len(BATCHES)])
        assert sink.commits == []
        before = len(w.rows("quick"))
        gate.set()
        w.stop()
        assert before
        assert len(sink.commits) > 1
        assert sink.commits == sorted(set(sink.commits))
        assert sink.threads >= {"windrow delivers to slow"}
        w.end()
    assert sorted(sink.rows) == as_rows(oracle(SUMS))


def test_a_sink_that_fails_gets_everything_once_and_in_order(tmp_path: Path) -> None:
    failures = iter([True, True, False, True, False])

    def fail(_: int) -> None:
        if next(failures, False):
            raise OSError("away")

    sink = Slow(fail)
    w, source = made(tmp_path, sink)
    with w:
        w.start()
        wait_until(lambda: source.taken[-1:] == [len(BATCHES)])
        wait_until(lambda: len(sink.commits) > 2)  # also without new rows it is tried again
        w.stop()
        w.end()
    assert sink.commits == sorted(set(sink.commits))
    assert sorted(sink.rows) == as_rows(oracle(SUMS))


def test_more_than_may_wait_holds_the_run_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MOST_WAITING", 1)
    gate, asked = threading.Event(), threading.Event()

    def wait(_: int) -> None:
        asked.set()
        gate.wait(60)

    sink = Slow(wait)
    w, source = made(tmp_path, sink)
    with w:
        w.start()
        assert asked.wait(60)
        loop = w._loop
        assert loop is not None
        wait_until(lambda: loop._what_to_take() == [])
        taken = list(source.taken)
        assert len(taken) < len(BATCHES)
        loop.board.wake()
        wait_until(lambda: loop._what_to_take() == [])
        assert source.taken == taken
        gate.set()
        wait_until(lambda: source.taken[-1:] == [len(BATCHES)])
        w.stop()
        w.end()
    assert sorted(sink.rows) == as_rows(oracle(SUMS))


def test_a_run_that_takes_what_is_there_waits_for_a_slow_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has not come to its end, and does not seal streams that it has not read."""
    monkeypatch.setattr(dispatch, "MOST_WAITING", 1)
    held = threading.Event()
    looked = Loop._what_to_take

    def look(self: Loop) -> Any:
        found = looked(self)
        if self._is_held_up:
            held.set()
        return found

    monkeypatch.setattr(Loop, "_what_to_take", look)
    sink = Slow(lambda _: held.wait(60) and None)
    w, source = made(tmp_path, sink)
    with w:
        w.run(once=True, flush=True)
    assert held.is_set()
    assert source.taken == list(range(1, len(BATCHES) + 1))
    assert sorted(sink.rows) == as_rows(oracle(SUMS))


class Refusing(Slow):
    """Takes nothing until it is told to."""

    is_away = True

    def deliver(self, delivery: Delivery) -> None:
        if self.is_away:
            raise OSError("nobody answers")
        super().deliver(delivery)


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_run_ends_at_a_sink_for_which_too_much_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    """Whether it has a worker or not; what waits is not lost, and the next run goes on."""
    monkeypatch.setattr(dispatch, "MOST_WAITING", 1)
    monkeypatch.setattr(loop, "TICK", 0.01)
    sink = Refusing()
    sink.is_slow = is_slow
    w, source = made(tmp_path, sink)
    with w:
        with pytest.raises(SinkError, match="nobody answers"):
            w.run(once=True, flush=True)
        assert source.taken
        assert len(source.taken) < len(BATCHES)
        assert not w.engine.streams["s"].known.sealed
        sink.is_away = False
        w.run(once=True, flush=True)
        assert source.taken[-1] == len(BATCHES)
    assert sorted(sink.rows) == as_rows(oracle(SUMS))


def test_what_waits_in_the_section_of_another_query_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose answers are another's, which reads what that one has written."""
    monkeypatch.setattr(dispatch, "MOST_WAITING", 1)
    monkeypatch.setattr(loop, "TICK", 0.01)
    w, source = made(tmp_path, Slow())
    late = Refusing()
    for name, sink in (("first", Slow()), ("same", late)):
        w.engine.add_query(StandingQuery(name, compile_query(COUNTS, w._catalog)), sink)
    with w:
        with pytest.raises(SinkError, match="nobody answers"):
            w.run(once=True)
        assert any(entry.ref.metadata.get(READERS) for entry in w.engine.last.outbox)
        assert len(source.taken) < len(BATCHES)
        late.is_away = False
        w.run(once=True, flush=True)
        assert source.taken[-1] == len(BATCHES)
    assert sorted(late.rows) == as_rows(oracle(COUNTS))


def test_what_was_delivered_and_not_committed_comes_again_with_its_number(tmp_path: Path) -> None:
    sink = Slow()
    w, _ = made(tmp_path, sink)
    with pytest.raises(Crash), crashing_at("sink-delivered", 2):
        w.run(once=True)
    w.vanish()
    again = Slow()
    w, _ = made(tmp_path, again)
    with w:
        w.run(once=True)
        w.end()
    assert set(again.commits) & set(sink.commits) == {sink.commits[-1]}
    both = dict(zip(sink.commits, (None for _ in sink.commits), strict=True)) | dict.fromkeys(again.commits)
    assert list(both) == sorted(both)


def test_an_outbox_that_cannot_be_read_is_no_failure_of_the_sink(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "outbox"
    removed = threading.Event()

    class Removing(Slow):
        def deliver(self, delivery: Delivery) -> None:
            for file in folder.iterdir():
                file.unlink()
            removed.set()
            super().deliver(delivery)

    w, _ = made(tmp_path, Removing())
    with pytest.raises(StateError, match="outbox"):
        w.run(once=True)
    assert removed.is_set()
    w.vanish()
