"""Runs one query on kernels: the same interface as the oracle's, micro-batch by micro-batch.

Each event (rows, a promise, the passing of time, the end) moves the clock at once, and what is due is
computed before the next event: a late row that is kept then meets only windows that are not yet answered.

>>> from windrow.algebra.aggregates import make
>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Aggregate, AggregateCall
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> traffic = Stream("s", Schema((Field("v", BIGINT), Field("ts", BIGINT))), "ts")
>>> rows = Window(Scan(traffic, "s"), RangeWindow(10, 5))
>>> total = AggregateCall("sum", (rows.schema.column("s.v"),), BIGINT)
>>> query = KernelExecutor(Emit(Aggregate(rows, (), (("total", total),))))
>>> query.push("s", [(1, 3), (2, 7)])
>>> query.punctuate("s", 10)
>>> query.take()
[Change(op='+', row=(1,), at=5), Change(op='+', row=(3,), at=10)]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from windrow.algebra.changes import Change, not_final
from windrow.algebra.plan import Emit
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, nearest
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import frame_of, rows_of, to_frame
from windrow.kernels.intake import Intake, Known
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.state import Delta, State
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.kernels.panes.program import Level

Values: TypeAlias = tuple[Any, ...]


class KernelExecutor:
    """One standing query over pushed rows. `stacked` chooses between the two kernels for RANGE windows."""

    def __init__(self, emit: Emit, *, stacked: bool | None = None, by_group: bool = True) -> None:
        self.emit = emit
        self.program = PaneProgram(emit, stacked=stacked, by_group=by_group)
        self.stream = self.program.stream
        self.intake = Intake(self.stream)
        self.known = self.intake.start()
        self.now = 0
        self._states = [State() for _ in self.program.levels]
        self._answered: dict[int, list[Values]] = {}
        self._late: list[Values] = []
        self._ready: list[Change] = []
        self._error: DataError | None = None

    # Events.

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        self._check(stream)
        schema, where = self.stream.schema, f"stream `{stream}`"
        batch = frame_of(schema, canonical_rows(schema, rows, where))
        known, accepted, late = self.intake.accept(self.known, batch, self.now)
        self._late += rows_of(late, schema)
        self._move(known, accepted)

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of the stream below `progress`."""
        self._check(name)
        self._move(self.intake.promise(self.known, progress, where, self.now))

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """There are no tables in queries of this class."""
        raise DataError(f"no table `{table}` in this query")

    def advance(self, micros: int) -> None:
        """Let wall-clock time pass: idle sources may be left out."""
        if micros < 0:
            raise DataError(f"time does not go back by {-micros} microseconds", code="bad-value")
        self.now += micros
        self._move(self.intake.tick(self.known, self.now))

    def finish(self) -> None:
        """The end of all inputs."""
        self._move(replace(self.known, sealed=True))

    # Answers.

    def take(self) -> list[Change]:
        """What became final since the last time, in order of delivery."""
        if self._error is not None:
            raise self._error
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda change: change.place)

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        if at > self.clock:
            raise not_final(at, self.clock)
        grid = self.program.query.cut.grid
        return Counter(self._rows_at(grid.end(grid.last_ending(at))))

    def late(self, stream: str) -> list[Values]:
        """The rows that came too late and were not kept."""
        self._check(stream)
        return list(self._late)

    @property
    def clock(self) -> Instant:
        """P of the stream, for the window's attribute."""
        return self.known.progress_on(self.stream, self.program.query.attribute)

    # The machine.

    def _check(self, stream: str) -> None:
        if stream != self.stream.name:
            raise DataError(f"no stream `{stream}` in this query", hint=nearest(stream, [self.stream.name]))

    def _move(self, known: Known, accepted: pl.DataFrame | None = None) -> None:
        """Compute what is due. An error is kept for `take`, as the answers are."""
        before, self.known = self.known, known
        if self._error is not None:
            return
        try:
            for end, row in self._answers(before, accepted):
                self._answered.setdefault(end, []).append(row)
                self._ready.append(Change("+", row, end))
        except DataError as error:
            self._error = error

    def _answers(self, before: Known, accepted: pl.DataFrame | None) -> Iterator[tuple[int, Values]]:
        bottom, *above = self.program.levels
        clock = self.program.clock(before, self.known)
        delta = Delta(latest=self.program.reached(before) if self.known.sealed else None)
        if accepted is not None:
            rows = bottom.scanned(accepted, self.program.column(self.known))
            delta = _delta(bottom, rows, clock)
        answers = self._advance(0, delta, clock)
        for place, level in enumerate(above, start=1):
            answers = self._advance(
                place, _from_below(level, answers, clock), PaneClock(clock.before, clock.now)
            )
        return self._read(answers)

    def _advance(self, place: int, delta: Delta, clock: PaneClock) -> Iterator[pa.Table]:
        kernel = self.program.levels[place].kernel
        self._states[place], answers = kernel.advance(self._states[place], delta, clock)
        return answers

    def _read(self, tables: Iterable[pa.Table]) -> Iterator[tuple[int, Values]]:
        for table in tables:
            frame = to_frame(table)
            yield from zip(frame["#at"].to_list(), rows_of(frame, self.emit.schema), strict=True)

    def _rows_at(self, end: int) -> Iterable[Values]:
        """What was answered, or, of a landmark window after the end of input, would still be answered."""
        cut = self.program.query.cut
        if end in self._answered or cut.range is not None:
            return self._answered.get(end, [])
        if not self._answered or end < max(self._answered):
            return ()
        kernel = self.program.levels[-1].kernel
        _, tables = kernel.advance(self._states[-1], Delta(), PaneClock(end - cut.slide, end))
        return [row for _, row in self._read(tables)]


def _from_below(level: Level, answers: Iterable[pa.Table], clock: PaneClock) -> Delta:
    """What the answers of the level below are to this one."""
    rows = [level.nested(table) for table in answers]
    if rows:
        return _delta(level, pl.concat(rows), PaneClock(clock.before, clock.now))
    reached = level.query.cut.due(clock.before)
    return Delta(latest=int(reached) if abs(reached) != INFINITY else None)


def _delta(level: Level, rows: pl.DataFrame, clock: PaneClock) -> Delta:
    tables = {name: frame.to_arrow() for name, frame in level.tables(rows).items()}
    return Delta(tables, level.latest(rows, clock))
