"""Two kinds of programs, one interface for the engine.

*Sliding* units answer aggregates over windows that slide in time, from states of panes. *General* units
answer any query, from rows routed to the shards in which everything they can meet is; where no columns keep
rows apart, one shard does it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from windrow.algebra import Emit, Scan, catalog, finality, operators as ops
from windrow.errors import QueryError
from windrow.kernels.clock import Clock, Held, Knowns, PaneClock, Timing
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.panes.query import SlidingQuery
from windrow.kernels.relational.expiry_layouts import Ends, Options
from windrow.kernels.relational.join.partners import telling
from windrow.kernels.relational.program import RelationalProgram, UnionProgram, UnionTiming
from windrow.physical.partitioning import placement_of, table_places
from windrow.windows import INFINITY, ROW_NUM, Instant, RangeWindow

#: how far a query had come before the end: its last window, or its clock, or those of its branches
Last = int | tuple[int | None, ...] | None

NO_TABLES: Mapping[str, Instant] = MappingProxyType({})


class SlidingUnit:
    """An aggregate over panes, perhaps with aggregates over it."""

    def __init__(self, emit: Emit, *, by_group: bool | None = None) -> None:
        self.program = PaneProgram(emit, by_group=by_group)
        self.streams: dict[str, catalog.Stream] = {self.program.stream.name: self.program.stream}
        self.tables: dict[str, catalog.Table] = {}
        self.stages = len(self.program.levels)

    def misses(self, stream: catalog.Stream, column: str) -> bool:
        """Whether its groups could become final one by one, and it was not made for that; whatever the column
        is that is promised."""
        mine = stream.name in self.streams and bool(self.program.candidates)
        return mine and not self.program.by_group

    @property
    def numbers_rows(self) -> bool:
        """Whether it asks for row numbers, which all rows of a stream share."""
        bottom = self.program.bottom.query
        return bottom.attribute == ROW_NUM or ROW_NUM in bottom.scan.pseudo

    def clock(
        self, before: Knowns, now: Knowns, last: Last, held: Held = NO_TABLES, now_held: Held = NO_TABLES
    ) -> PaneClock:
        """What is answered as the streams move."""
        (name,) = self.streams
        return self.program.clock(before[name], now[name])

    def is_due(self, clock: Any) -> bool:
        """Whether a window ends in between."""
        return any(clock.is_due(level.query.cut) for level in self.program.levels)

    def reached(self, known: Knowns, held: Held = NO_TABLES) -> int | None:
        """The last window answered before the end."""
        (name,) = self.streams
        return self.program.reached(known[name])

    def progress(self, known: Knowns, held: Held = NO_TABLES) -> Instant:
        """How far it answers."""
        ((name, stream),) = self.streams.items()
        return known[name].progress_on(stream, self.program.query.attribute)


class GeneralUnit:
    """Any other query."""

    def __init__(self, emit: Emit, *, by_group: bool | None = None, carries_ends: bool = False) -> None:
        options = Options(ends=Ends.CARRIED) if carries_ends else None
        self.program = RelationalProgram(emit, options, by_group=by_group)
        self.timing = Timing(emit, self.program.builder.sources)
        joins = [node.table for node in emit.walk() if isinstance(node, ops.TableJoin)]
        self.tables: dict[str, catalog.Table] = {scan.table.name: scan.table for scan in joins}
        self._place()

    def _place(self) -> None:
        self.streams = dict(self.timing.streams)
        self.stages = 1
        self.placement = placement_of(self.program.emit)
        self.table_places = table_places(self.program.emit, self.placement)

    def misses(self, stream: catalog.Stream, column: str) -> bool:
        """Whether its groups could become final by the values of a column, and it was not made for that."""
        if stream.name not in self.streams or column in self.program.builder.sources.get(stream.name, ()):
            return False
        return finality.is_final_by_group(self.program.emit, stream, column)

    @property
    def carries_ends(self) -> bool:
        """Whether what comes to the root has its end with it, where an end is known."""
        return not telling(self.program.emit, self.program.options)

    @property
    def numbers_rows(self) -> bool:
        """Rows have numbers where a window counts them in arrival order."""
        specs = [window.spec for window in self.timing.windows]
        counted = any(spec.counts_arrivals or spec.wattr == ROW_NUM for spec in specs)
        return counted or any(ROW_NUM in getattr(node, "pseudo", ()) for node in self.program.emit.walk())

    @property
    def memory(self) -> int | None:
        """After so many ticks no answer depends on what was before; None if that never ends."""
        specs = [window.spec for window in self.timing.windows]
        ranges = [spec.range for spec in specs if isinstance(spec, RangeWindow)]
        return sum(ranges) if len(ranges) == len(specs) else None

    @property
    def by_wattr(self) -> set[str]:
        """The streams whose windows are all about their WATTR."""
        found = set(self.streams)
        for window in self.timing.windows:
            for scan in (origin for origin in window.origins if isinstance(origin, Scan)):
                if window.attribute_of(scan) != scan.stream.wattr:
                    found.discard(scan.stream.name)
        return found

    def clock(
        self, before: Knowns, now: Knowns, last: Last, held: Held = NO_TABLES, now_held: Held = NO_TABLES
    ) -> Clock:
        """What becomes final as the streams move, and the tables that hold the clock back."""
        assert not isinstance(last, tuple), "a query by itself has one clock"
        return self.timing.moved(before, held, now, now_held, -INFINITY if last is None else last)

    def is_due(self, clock: Any) -> bool:
        """Whether anything becomes final."""
        return not clock.stands

    def readers(self, table: str) -> list[GeneralUnit]:
        """The queries, each with a clock of its own, that read a table."""
        return [self] if table in self.tables else []

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        return self.timing.furthest(known, held)

    def reached(self, known: Knowns, held: Held = NO_TABLES) -> int | None:
        """How far the clock had come before the end."""
        furthest = self.timing.furthest(known, held)
        return int(furthest) if abs(furthest) != INFINITY else None

    def progress(self, known: Knowns, held: Held = NO_TABLES) -> Instant:
        """How far it answers."""
        return self.timing.clock(known, held)


class UnionUnit(GeneralUnit):
    """A union of streams: general units beside each other, with their rows in common."""

    program: UnionProgram  # type: ignore[assignment]
    timing: UnionTiming  # type: ignore[assignment]

    def __init__(self, emit: Emit, *, by_group: bool | None = None, carries_ends: bool = False) -> None:
        self.branches = [
            GeneralUnit(each, by_group=by_group, carries_ends=carries_ends) for each in emit.branches
        ]
        self.program = UnionProgram(emit, [branch.program for branch in self.branches])
        self.timing = UnionTiming([branch.timing for branch in self.branches])
        self.tables = {name: table for branch in self.branches for name, table in branch.tables.items()}
        self._place()

    def clock(
        self, before: Knowns, now: Knowns, last: Last, held: Held = NO_TABLES, now_held: Held = NO_TABLES
    ) -> Clock:
        reached = last if isinstance(last, tuple) else (None,) * len(self.branches)
        return self.timing.moved(before, held, now, now_held, reached)

    def misses(self, stream: catalog.Stream, column: str) -> bool:
        return any(branch.misses(stream, column) for branch in self.branches)

    @property
    def carries_ends(self) -> bool:
        return all(branch.carries_ends for branch in self.branches)

    @property
    def memory(self) -> int | None:
        found = [branch.memory for branch in self.branches]
        return max(each for each in found if each is not None) if None not in found else None

    def readers(self, table: str) -> list[GeneralUnit]:
        return [branch for branch in self.branches if table in branch.tables]

    def branch_clocks(self, known: Knowns, held: Held) -> tuple[int | None, ...]:
        """How far the clock of each branch has come."""
        found = self.timing.reached(known, held)
        return tuple(int(each) if abs(each) != INFINITY else None for each in found)


Unit = SlidingUnit | GeneralUnit


def unit_of(emit: Emit, *, by_group: bool | None = None, carries_ends: bool = False) -> Unit:
    """The unit that runs a plan; a QueryError if none does. `carries_ends`: results come with their ends."""
    if emit.is_union:
        return UnionUnit(emit, by_group=by_group, carries_ends=carries_ends)
    try:
        SlidingQuery.of(emit)
    except QueryError:
        return GeneralUnit(emit, by_group=by_group, carries_ends=carries_ends)
    return SlidingUnit(emit, by_group=by_group)
