"""Runs one query on kernels: the same interface as the oracle's, micro-batch by micro-batch.

Each event (rows, a promise, the passing of time, the end) moves the clock at once, and what is due is
computed before the next event: a late row that is kept then meets only windows that are not yet answered.
Where groups are final one by one, each source has a state and a clock of its own.

>>> from windrow.algebra.aggregates import make
>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Aggregate, AggregateCall
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.schema import Field, Schema
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from windrow.algebra.changes import Change
from windrow.algebra.plan import Emit
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, nearest
from windrow.kernels.answers import Answers
from windrow.kernels.columns import frame_of, rows_of, to_frame
from windrow.kernels.intake import Intake
from windrow.kernels.live_panes import LivePanes
from windrow.kernels.measures import Measures
from windrow.kernels.panes import assign_panes, latest_pane, pane_table
from windrow.kernels.parts import Part, Parts, Values
from windrow.kernels.query import SlidingQuery, run_stages
from windrow.kernels.running import RunningTotals
from windrow.kernels.stacks import TwoStacks
from windrow.kernels.state import Delta, Kernel
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Instant


class KernelExecutor:
    """One standing query over pushed rows. `persisted` chooses between the two kernels for RANGE windows."""

    def __init__(self, emit: Emit, *, persisted: bool = True) -> None:
        self.emit = emit
        self.query = SlidingQuery.of(emit)
        self.answers = Answers(self.query, Measures(self.query.aggregate))
        self.kernel = self._kernel(persisted)
        self.stream = self.query.scan.stream
        self.intake = Intake(self.stream)
        self.known = self.intake.start()
        self.now = 0
        self._parts = Parts(self.query)
        self._late: list[Values] = []
        self._ready: list[Change] = []
        self._error: DataError | None = None
        #: the last pane of any row that entered the window
        self._latest: int | None = None

    def _kernel(self, persisted: bool) -> Kernel:
        if self.query.cut.range is None:
            return RunningTotals(self.answers)
        return TwoStacks(self.answers) if persisted else LivePanes(self.answers)

    # Events.

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        self._check(stream)
        schema, where = self.stream.schema, f"stream `{stream}`"
        batch = frame_of(schema, canonical_rows(schema, rows, where))
        known, accepted, late = self.intake.accept(self.known, batch, self.now)
        self._late += rows_of(late, schema)
        before, self.known = self.known, known
        self._guarded(lambda: self._parts.split(self._entered(accepted), before))

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of the stream below `progress`."""
        self._check(name)
        self.known = self.intake.promise(self.known, progress, where, self.now)
        self._parts.know(self.known)
        self._guarded()

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
        self.known = self.intake.tick(self.known, self.now)
        self._guarded()

    def finish(self) -> None:
        """The end of all inputs. Landmark windows are reported till all rows are in, and as far as before."""
        reached = self.query.cut.due(self._parts.furthest(self.known))
        if abs(reached) != INFINITY:
            self._latest = max(int(reached), self._latest or int(reached))
        self.known = replace(self.known, sealed=True)
        self._guarded()

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
            raise DataError(
                f"the answer at {at} is not final yet: the clock is at {self.clock}",
                code="not-final",
                hint="push, punctuate() or finish() first",
            )
        end = self.query.cut.grid.end(self.query.cut.grid.last_ending(at))
        return Counter(row for part in self._parts for row in self._rows_at(part, end))

    def late(self, stream: str) -> list[Values]:
        """The rows that came too late and were not kept."""
        self._check(stream)
        return list(self._late)

    @property
    def clock(self) -> Instant:
        """P of the stream, for the window's attribute."""
        return self.known.progress_on(self.stream, self.query.attribute)

    # The machine.

    def _check(self, stream: str) -> None:
        if stream != self.stream.name:
            raise DataError(f"no stream `{stream}` in this query", hint=nearest(stream, [self.stream.name]))

    def _guarded(self, arrive: Any = tuple) -> None:
        """Compute what is due. An error is kept for `take`, as the answers are."""
        if self._error is not None:
            return
        try:
            for part, rows in arrive():
                self._run(part, self._delta(part, rows))
            for part in self._parts:
                if part.clock < self._parts.clock_of(part, self.known):
                    self._run(part, Delta(latest=self._latest))
        except DataError as error:
            self._error = error

    def _run(self, part: Part, delta: Delta) -> None:
        clock = max(part.clock, self._parts.clock_of(part, self.known))
        part.state, tables = self.kernel.advance(part.state, delta, part.clock, clock)
        part.clock = clock
        for end, row in self._answers(tables):
            part.answered.setdefault(end, []).append(row)
            self._ready.append(Change("+", row, end))

    def _answers(self, tables: Iterable[Any]) -> Iterable[tuple[int, Values]]:
        for table in tables:
            frame = to_frame(table)
            yield from zip(frame["#at"].to_list(), rows_of(frame, self.emit.schema), strict=True)

    def _rows_at(self, part: Part, end: int) -> Iterable[Values]:
        """What a part answered, or, of a landmark window after the end of input, would still answer."""
        if end in part.answered:
            return part.answered[end]
        if self.query.cut.range is not None or not part.answered or end < max(part.answered):
            return ()
        _, tables = self.kernel.advance(part.state, Delta(), end - self.query.cut.slide, end)
        return [row for _, row in self._answers(tables)]

    def _delta(self, part: Part, rows: pl.DataFrame) -> Delta:
        """New rows as states of panes; a late row is not seen before the part's next window."""
        tables = pane_table(rows, self.query, self.answers.measures)
        next_w = self.query.cut.due(part.clock) + 1
        panes = (latest_pane(rows), self._latest, next_w if abs(next_w) != INFINITY else None)
        self._latest = max(int(pane) for pane in panes if pane is not None)
        return Delta({name: frame.to_arrow() for name, frame in tables.items()}, self._latest)

    def _entered(self, accepted: pl.DataFrame) -> pl.DataFrame:
        """The rows that enter the window: of the scan, through the operators below, with their panes."""
        scan, attribute = self.query.scan, self.query.attribute
        known = {name: accepted[name] for name in self.stream.schema.names}
        known |= {name: accepted[f"#{name}"] for name in (ROW_NUM, ARRIVAL_TS)}
        names = (*self.stream.schema.names, *(name for name in (ROW_NUM, ARRIVAL_TS) if name in scan.pseudo))
        columns = [known[name].alias(f"{scan.alias}.{name}") for name in names]
        hidden = [known[attribute].cast(pl.Int64).alias("#t")]
        hidden += [known[name].alias(f"#by.{name}") for name in self._parts.candidates]
        below, _, _ = self.query.stages
        frame = pl.DataFrame([*columns, *hidden]).filter(pl.col("#t").is_not_null())
        return assign_panes(run_stages(below, frame), self.query)
