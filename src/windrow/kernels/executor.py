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

`GeneralExecutor` runs any query, on relational kernels:

>>> query = GeneralExecutor(Emit(Window(Scan(traffic, "s"), RangeWindow(5))))
>>> query.push("s", [(7, 3), (8, 4)])
>>> query.punctuate("s", 9)
>>> [(change.op, change.row, change.at) for change in query.take()]
[('+', (7, 3), 3), ('+', (8, 4), 4), ('-', (7, 3), 8)]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa

from windrow.algebra import Emit, Stream, TableJoin
from windrow.algebra.values import Change, canonical_rows, not_final
from windrow.errors import DataError, nearest
from windrow.kernels.clock import PaneClock, Timing
from windrow.kernels.columnar.columns import frame_of, rows_of, to_frame
from windrow.kernels.intake import Intake, Known
from windrow.kernels.panes.program import Level, PaneProgram
from windrow.kernels.relational import build, emission, expiry_layouts as layouts, signed_rows
from windrow.kernels.relational.program import News, RelationalProgram, States
from windrow.kernels.relational.tables import TableIntake
from windrow.kernels.state import Delta, State
from windrow.windows.domain import INFINITY, Instant

Values: TypeAlias = tuple[Any, ...]


class _Executor(ABC):
    """Rows pushed, promises and time move what is known of streams; what became final is to be taken."""

    def __init__(self, emit: Emit, streams: Mapping[str, Stream]) -> None:
        self.emit = emit
        self.intakes = {name: Intake(stream) for name, stream in streams.items()}
        self.known = {name: intake.start() for name, intake in self.intakes.items()}
        self.now = 0
        self._late: dict[str, list[Values]] = {name: [] for name in streams}
        self._ready: list[Change] = []
        self._error: DataError | None = None

    # Events.

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        intake, before = self._intake(stream), dict(self.known)
        schema = intake.stream.schema
        batch = frame_of(schema, canonical_rows(schema, rows, f"stream `{stream}`"))
        known, accepted, late = intake.accept(self.known[stream], batch, self.now)
        self._late[stream] += rows_of(late, schema)
        self.known[stream] = known
        self._move(before, stream, accepted)

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream below `progress`."""
        before = dict(self.known)
        self.known[name] = self._intake(name).promise(self.known[name], progress, where, self.now)
        self._move(before)

    def advance(self, micros: int) -> None:
        """Let wall-clock time pass: idle sources may be left out."""
        if micros < 0:
            raise DataError(f"time does not go back by {-micros} microseconds", code="bad-value")
        self.now += micros
        before = dict(self.known)
        for name, intake in self.intakes.items():
            self.known[name] = intake.tick(self.known[name], self.now)
        self._move(before)

    def finish(self) -> None:
        """The end of all inputs."""
        before = dict(self.known)
        self.known = {name: replace(known, sealed=True) for name, known in before.items()}
        self._move(before)

    @abstractmethod
    def _move(
        self, before: Mapping[str, Known], stream: str = "", accepted: pl.DataFrame | None = None
    ) -> None:
        """Compute what is due, with the rows of a stream that came. An error is kept for `take`, as the
        answers are."""

    # Answers.

    def take(self) -> list[Change]:
        """What became final since the last time, in order of delivery."""
        if self._error is not None:
            raise self._error
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda change: change.place)

    def late(self, stream: str) -> list[Values]:
        """The late rows that were not kept."""
        self._intake(stream)
        return list(self._late[stream])

    def _intake(self, name: str) -> Intake:
        if name not in self.intakes:
            raise DataError(f"no stream `{name}` in this query", hint=nearest(name, self.intakes))
        return self.intakes[name]


class KernelExecutor(_Executor):
    """One standing query over pushed rows. `stacked` chooses between the two kernels for RANGE windows."""

    def __init__(self, emit: Emit, *, stacked: bool | None = None, by_group: bool = True) -> None:
        self.program = PaneProgram(emit, stacked=stacked, by_group=by_group)
        self.stream = self.program.stream
        super().__init__(emit, {self.stream.name: self.stream})
        self._states = [State() for _ in self.program.levels]
        self._answered: dict[int, list[Values]] = {}

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """There are no tables in queries of this class."""
        raise DataError(f"no table `{table}` in this query")

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        if at > self.clock:
            raise not_final(at, self.clock)
        grid = self.program.query.cut.grid
        return Counter(self._rows_at(grid.end(grid.last_ending(at))))

    @property
    def clock(self) -> Instant:
        """P of the stream, for the window's attribute."""
        return self.known[self.stream.name].progress_on(self.stream, self.program.query.attribute)

    def _move(
        self, before: Mapping[str, Known], stream: str = "", accepted: pl.DataFrame | None = None
    ) -> None:
        if self._error is not None:
            return
        try:
            for end, row in self._answers(before[self.stream.name], accepted):
                self._answered.setdefault(end, []).append(row)
                self._ready.append(Change("+", row, end))
        except DataError as error:
            self._error = error

    def _answers(self, before: Known, accepted: pl.DataFrame | None) -> Iterator[tuple[int, Values]]:
        (bottom, *above), known = self.program.levels, self.known[self.stream.name]
        clock = self.program.clock(before, known)
        delta = Delta(latest=self.program.reached(before) if known.sealed else None)
        if accepted is not None:
            rows = bottom.scanned(accepted, self.program.column(known))
            delta = _delta(bottom, rows, clock)
        answers = self._advance(0, delta, clock)
        for place, level in enumerate(above, start=1):
            answers = self._advance(place, _from_below(level, answers, clock.plain), clock.plain)
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
        return _delta(level, pl.concat(rows), clock)
    reached = level.query.cut.due(clock.before)
    return Delta(latest=int(reached) if abs(reached) != INFINITY else None)


def _delta(level: Level, rows: pl.DataFrame, clock: PaneClock) -> Delta:
    tables = {name: frame.to_arrow() for name, frame in level.tables(rows).items()}
    return Delta(tables, level.latest(rows, clock))


class GeneralExecutor(_Executor):
    """One standing query over pushed rows. Options change what it costs, never what it answers."""

    def __init__(self, emit: Emit, options: layouts.Options | None = None) -> None:
        self.program = RelationalProgram(emit, options)
        self.timing = Timing(emit, self.program.builder.sources)
        super().__init__(emit, self.timing.streams)
        tables = [node.table.table for node in emit.walk() if isinstance(node, TableJoin)]
        self.tables = {table.name: TableIntake(table) for table in tables}
        self.states: States = {}
        #: how far the clock had come before the input ended
        self.reached: Instant = -INFINITY
        bounded = emit.reads_window_bounds and emit.leaves[0].spec.grid is None
        alone = (build.reports_alone(emit) or emit.word.restores) and not bounded
        #: where extents are reported by themselves, the relation is another program's
        self._relation = RelationalProgram(emit, options, as_relation=True) if alone else None
        self._relation_states: States = {}
        self._pieces: list[pl.DataFrame] = []
        #: what the end of input was computed from: extents go on after the last one reported
        self._end: tuple[States, News] | None = None

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream (or changes of a table) below `progress`."""
        if name in self.tables:
            held = self._table_progress()
            self.tables[name].punctuate(progress, self.timing.furthest(self.known, held))
            self._advance(self.known, held=held)
        else:
            super().punctuate(name, progress, where)

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """A table changes at an instant, which must not lie in what is already answered."""
        if table not in self.tables:
            raise DataError(f"no table `{table}` in this query", hint=nearest(table, self.tables))
        clock = self.timing.furthest(self.known, self._table_progress())
        if at < clock:
            raise DataError(
                f"table `{table}` cannot change at {at}: answers up to {clock} are given",
                code="late-update",
                hint="update tables before their streams move on, or hold the clock with punctuate()",
            )
        changes = self.tables[table].update(at, insert, delete)
        self._advance(self.known, changes={table: changes}, changed={table: at} if changes.height else {})

    def finish(self) -> None:
        """The end of all inputs."""
        before, held = self.known, self._table_progress()
        if self.clock != INFINITY:
            self.reached = max(self.reached, self.timing.furthest(before, held))
        self.known = {name: replace(known, sealed=True) for name, known in before.items()}
        for table in self.tables.values():
            table.progress = INFINITY
        self._advance(before, held=held)

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        final = at <= self.clock if build.lag_of(self.emit) else at < self.clock
        if not final:
            raise not_final(at, self.clock)
        if self.emit.reads_window_bounds and self.emit.leaves[0].spec.grid is None:
            raise DataError(
                "this query selects the bounds of each extent, so it has no relation at an instant",
                code="no-relation",
                hint="leave window_start and window_end out, or take its changes",
            )
        if self._error is not None:
            raise self._error
        found: Counter[Values] = Counter()
        for frame in filter(len, self._pieces_until(at)):
            inside = frame.filter((pl.col(signed_rows.VS) <= at) & (pl.col(signed_rows.VE) > at))
            counts = inside[signed_rows.N].to_list()
            for row, n in zip(rows_of(inside, self.emit.schema), counts, strict=True):
                found[row] += n
        return +found

    @property
    def clock(self) -> Instant:
        """The least P of all inputs."""
        return self.timing.clock(self.known, self._table_progress())

    def _move(
        self, before: Mapping[str, Known], stream: str = "", accepted: pl.DataFrame | None = None
    ) -> None:
        rows = {}
        if accepted is not None:
            kept = self.timing.kept(stream, before, self._table_progress(), accepted)
            rows = {stream: accepted.with_columns(kept)}
        self._advance(before, rows)

    def _advance(
        self,
        before: Mapping[str, Known],
        rows: Mapping[str, pl.DataFrame] | None = None,
        changes: Mapping[str, pl.DataFrame] | None = None,
        held: Mapping[str, Instant] | None = None,
        changed: Mapping[str, int] | None = None,
    ) -> None:
        if self._error is not None:
            return
        progress = self._table_progress()
        clock = self.timing.moved(
            before, progress if held is None else held, self.known, progress, self.reached
        )
        news = News(clock, rows or {}, changes or {}, changed=changed or {})
        if news.clock.before < signed_rows.FOREVER <= news.clock.now:
            self._end = self.states, news
        try:
            self.states, answers, pieces = self.program.advance(self.states, news)
            if self._relation is not None:
                self._relation_states, _, pieces = self._relation.advance(self._relation_states, news)
        except DataError as error:
            self._error = error
            return
        self._pieces.append(pieces)
        instants, ops = answers[signed_rows.AT].to_list(), answers[emission.OP].to_list()
        rows_ = rows_of(answers, self.emit.schema)
        self._ready += [Change(op, row, at) for op, row, at in zip(ops, rows_, instants, strict=True)]

    def _pieces_until(self, at: int) -> list[pl.DataFrame]:
        """All pieces so far; those with bounds of extents are made for extents up to the instant only."""
        if self._end is None or not self.emit.reads_window_bounds:
            return self._pieces
        states, news = self._end
        return [*self._pieces[:-1], self.program.advance(states, replace(news, until=at))[2]]

    def _table_progress(self) -> dict[str, Instant]:
        return {name: table.progress for name, table in self.tables.items()}
