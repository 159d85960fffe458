"""What a view shows: the state of an engine right after an epoch, as plain values.

Snapshots are taken by the thread that runs the epochs and drawn by another one, so that drawing never holds
up an epoch.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from windrow.algebra.explain.warnings import Warned
    from windrow.cli.answers import Answers, LastAnswers
    from windrow.errors import WindrowError
    from windrow.server.watch import Meter
    from windrow.session import Windrow
    from windrow.windows.domain import Instant

_TIMES = ("TIMESTAMP", "DATE")


@dataclass(frozen=True)
class StreamNow:
    name: str
    rows: int
    rate: float
    late: int
    clock: Instant
    greatest: int | None
    is_time: bool = True
    #: rows that no query needed under overload
    shed: int = 0

    @property
    def lag(self) -> Instant | None:
        return None if self.greatest is None else max(0, self.greatest - self.clock)


@dataclass(frozen=True)
class QueryNow:
    name: str
    status: str
    rows: int
    sink: str | None = None
    answers: Answers | None = None


@dataclass(frozen=True)
class RunSnapshot:
    commit: int
    streams: tuple[StreamNow, ...]
    queries: tuple[QueryNow, ...]
    problems: tuple[WindrowError, ...] = ()
    #: what the rows of streams have shown of their declarations
    warnings: tuple[Warned, ...] = ()

    @property
    def rows_in(self) -> int:
        return sum(stream.rows for stream in self.streams)

    @property
    def rows_out(self) -> int:
        return sum(query.rows for query in self.queries)

    @property
    def late(self) -> int:
        return sum(stream.late for stream in self.streams)


class Watcher:
    """Takes a snapshot whenever it is called; `newest` is the last one."""

    def __init__(self, engine: Windrow, kept: Mapping[str, LastAnswers]) -> None:
        from windrow.server.watch import Meter

        self._engine, self._kept = engine, kept
        self._meters: defaultdict[str, Meter] = defaultdict(Meter)
        self.newest = self._snapshot()

    def __call__(self) -> None:
        self.newest = self._snapshot()

    def _snapshot(self) -> RunSnapshot:
        engine = self._engine
        streams = tuple(self._stream(name) for name in engine.streams)
        queries = tuple(self._query(name) for name in engine.queries)
        warnings = tuple(each for stream in engine.streams.values() for each in stream.warnings)
        return RunSnapshot(engine.commit, streams, queries, tuple(engine.problems), warnings)

    def _stream(self, name: str) -> StreamNow:
        stream = self._engine.streams[name]
        progress = stream.progress
        rows = progress.accepted + progress.late
        rate = self._meters[name].rate(rows, time.monotonic())
        is_time = stream.columns.get(stream.wattr, "TIMESTAMP") in _TIMES
        clock, shed = progress.progress, progress.shed
        return StreamNow(name, rows, rate, progress.late, clock, progress.greatest, is_time, shed)

    def _query(self, name: str) -> QueryNow:
        query = self._engine.queries[name]
        kept = self._kept.get(name)
        return QueryNow(
            name, query.progress.status, query.progress.rows, query.sink, kept.last if kept else None
        )


class View:
    """Shows a run while it goes on, as a context. All methods are called by one thread."""

    def show(self, snapshot: RunSnapshot, seconds: float) -> None:
        """The newest snapshot, `seconds` after the start. Called several times a second."""
        raise NotImplementedError

    def tell(self, problem: WindrowError | Warned) -> None:
        """Something failed, or is rarely meant, and the run goes on."""
        print(problem.render(), file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""
