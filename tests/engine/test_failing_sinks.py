"""Whatever a sink raises is its own failure: the run and the other sinks go on, and it catches up."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.crashes import Crash
from tests.support.history import BATCHES, COUNTS, STREAM, SUMS, as_rows, rows_of
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.errors import DataError, SinkError, StateError
from windrow.language.catalog import StandingQuery
from windrow.language.compile import compile_query
from windrow.sinks.delivery import Sink

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.sinks import Delivery


class OwnError(Exception):
    """An exception that nobody but the user has heard of."""

    def __str__(self) -> str:
        return ""


class PanicException(BaseException):
    """As libraries in Rust raise it: no `Exception`, and still nothing but a failure."""


ERRORS = (
    KeyError("at"), OSError(errno.EIO, "no"), ValueError("closed"), RuntimeError("?"), AssertionError(),
    pa.ArrowInvalid("bad"), pa.ArrowNotImplementedError("bad"), UnicodeEncodeError("ascii", "é", 0, 1, "no"),
    TypeError("none"), MemoryError(), RecursionError(), StopIteration(), NotImplementedError(), EOFError(),
    ConnectionResetError(), TimeoutError(), ExceptionGroup("two", [ValueError()]), OwnError(),
    PanicException("at 7"), SinkError("said so", code="mine"), DataError("of mine"), StateError("not ours"),
)  # fmt: skip


class Failing(Sink):
    """Fails while it is told to, before, in the middle of or after reading its rows."""

    guarantee = "none"

    def __init__(self, error: BaseException, after: int) -> None:
        self.error: BaseException | None = error
        self.after = after
        self.rows: list[Any] = []

    def deliver(self, delivery: Delivery) -> None:
        pieces = delivery.pieces()
        rows = [row for _, piece in zip(range(self.after), pieces, strict=False) for row in rows_of(piece)]
        if self.error is not None:
            raise self.error
        self.rows += [*rows, *(row for piece in pieces for row in rows_of(piece))]

    def close(self) -> None:
        if self.error is not None:
            raise self.error


def begun(state: Path, *sinks: Sink) -> Life:
    """Two queries that are answered, and between them one for each sink."""
    w = Life(state)
    w.sql(STREAM)
    w.query("first", COUNTS)
    for number, sink in enumerate(sinks):
        w.engine.add_query(StandingQuery(f"failing{number}", compile_query(SUMS, w._catalog)), sink)
    w.query("last", COUNTS)
    return w


def test_failing_sinks_fail_alone_and_catch_up(tmp_path: Path) -> None:
    sinks = [Failing(error, after=number % 2) for number, error in enumerate(ERRORS)]
    names = [f"failing{number}" for number in range(len(sinks))]
    with begun(tmp_path / "state", *sinks) as w:
        for batch in BATCHES[:4]:
            w.push(*batch)
        assert [(event.kind, event.name) for event in w.engine.events] == [
            ("sink-failed", name) for name in names
        ]
        for name, error, problem in zip(names, ERRORS, w.problems, strict=True):
            assert isinstance(problem, SinkError)
            if problem is not error:
                assert problem.message.startswith(f"the sink of `{name}` failed: ")
                assert problem.__cause__ is error
        assert w.rows("first") == w.rows("last")
        assert w.rows("first")
        for sink in sinks[::2]:
            sink.error = None
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        assert len(w.problems) == len(sinks) // 2
        for sink in sinks[1::2]:
            sink.error = None
        w.engine.deliver()
        assert not w.problems
        assert w.rows("first") == w.rows("last") == as_rows(oracle(COUNTS))
        expected = oracle(SUMS)
        assert all(Counter(sink.rows) == expected for sink in sinks)


def test_what_a_failing_sink_did_not_get_is_delivered_after_a_restart(tmp_path: Path) -> None:
    w = begun(tmp_path / "state", Failing(OwnError(), after=0))
    for batch in BATCHES:
        w.push(*batch)
    w.end()
    w.close()  # the sink does not even close
    sink = Failing(OwnError(), after=1)
    sink.error = None
    with begun(tmp_path / "state", sink) as w:
        w.engine.deliver()
        assert Counter(sink.rows) == oracle(SUMS)


def test_a_dropped_query_whose_sink_does_not_close_is_gone(tmp_path: Path) -> None:
    with begun(tmp_path / "state", Failing(OwnError(), after=0)) as w:
        w.push(*BATCHES[0])
        w.engine.drop("QUERY", "failing0")
        w.engine.commit()
        assert sorted(w.engine.queries) == ["first", "last"]


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SystemExit(3), Crash()])
def test_who_wants_the_process_to_end_is_heard(tmp_path: Path, end: BaseException) -> None:
    sink = Failing(end, after=1)
    with begun(tmp_path / "state", sink) as w:
        w.push(*BATCHES[0])
        with pytest.raises(type(end)):
            w.end()
        sink.error = None


class Wrapping(Sink):
    """Makes an error of its own of everything."""

    guarantee = "none"

    def deliver(self, delivery: Delivery) -> None:
        try:
            list(delivery.pieces())
        except Exception as error:
            raise SinkError("something is wrong", code="mine") from error

    def close(self) -> None:
        """Nothing is held open."""


def test_an_outbox_that_cannot_be_read_is_no_failure_of_the_sink(tmp_path: Path) -> None:
    w = begun(tmp_path / "state", Failing(OwnError(), after=0))
    for batch in BATCHES[:4]:
        w.push(*batch)
    w.vanish()
    for path in (tmp_path / "state" / "outbox").iterdir():
        data = bytearray(path.read_bytes())
        data[200] ^= 1
        path.write_bytes(data)
    w = begun(tmp_path / "state", Wrapping())
    with pytest.raises(StateError, match=r"outbox.* is damaged"):
        w.engine.deliver()
    w.vanish()
