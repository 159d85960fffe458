"""Clocks: from where to where an epoch goes, for all groups together or for each source by itself.

Where punctuation is PER a column that the query groups by, a group is answered as far as its own source has
got. Its windows then have their own first and last, and so does what is still needed of it. What is not about
one source goes as far as the furthest (`windrow.algebra.finality`).

>>> clock = PaneClock(10, 20, "k0", {"a": (10, 40)})
>>> clock.least, clock.greatest
((10, 20), (10, 40))
>>> clock.of(pl.DataFrame({"k0": ["a", None]})).rows()
[(10, 40), (10, 20)]

Relational operators ask which instants a step makes final. The clock τ goes from `before` to `now`. Rows with
an attribute below τ are all known. A change at instant i is final when τ > i, an extent that ends at E when
τ ≥ E: with `lag` 1 the answer at E is about the instant before E. So a step answers the instants [start,
stop).

>>> Slice.of(Clock(10, 20), lag=0), Slice.of(Clock(10, 20), lag=1).stop
(Slice(start=10, stop=20, before=10, now=20, floor=20), 21)

`Timing` says how the clock of a query moves, from what is known of its streams and tables before and after.
It has no state: what is known goes in. `reached` is how far the clock had come before the input ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra import Emit, Late, Scan, TableScan, Window
from windrow.kernels.columnar.columns import looked_up
from windrow.kernels.intake import Known, moments_of
from windrow.kernels.panes.query import Cut
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, NEVER_LATE, finite
from windrow.windows.domain import INFINITY, Instant, Ints

#: what is known of each source
Knowns = Mapping[str, Known]
#: how far each table is
Held = Mapping[str, Instant]
Moved = tuple[Instant, Instant]

#: stands for infinity where windows are 64-bit integers; panes are a few times windows
LAST_WINDOW = 1 << 58


@dataclass(frozen=True)
class PaneClock:
    """What was answered up to `before` is answered up to `now`; with `key`, each of `sources` has its own."""

    before: Instant
    now: Instant
    #: the column of pane tables that holds the source
    key: str | None = None
    sources: Mapping[Any, Moved] = field(default_factory=dict)

    @property
    def plain(self) -> PaneClock:
        """The clock of what is not about one source."""
        return PaneClock(self.before, self.now)

    @property
    def moved(self) -> list[Moved]:
        """All that happens to any group."""
        return [(self.before, self.now), *self.sources.values()]

    @property
    def least(self) -> Moved:
        """Before which, at least, everything was and is answered."""
        return min(before for before, _ in self.moved), min(now for _, now in self.moved)

    @property
    def greatest(self) -> Moved:
        """After which nothing was, nor is, answered."""
        return max(before for before, _ in self.moved), max(now for _, now in self.moved)

    def of(self, groups: pl.DataFrame) -> pl.DataFrame:
        """`before` and `now` of each group, as integers."""
        common = finite(self.before), finite(self.now)
        if self.key is None or not self.sources:
            alike = pl.DataFrame([common], schema=["before", "now"], orient="row")
            return alike.select(pl.all().gather(pl.Series([0]).new_from_index(0, groups.height)))
        return pl.DataFrame(_moved_of(groups[self.key], self.sources, common))

    def windows(self, groups: pl.DataFrame, cut: Cut) -> pl.DataFrame:
        """The first and the last window to answer, of each group."""
        moved = self.of(groups)
        return pl.DataFrame({"first": _due(moved["before"], cut) + 1, "last": _due(moved["now"], cut)})

    def is_due(self, cut: Cut) -> bool:
        """Whether the end of any window is passed."""
        return any(cut.due(before) < cut.due(now) for before, now in self.moved)


def _due(clock: pl.Series, cut: Cut) -> pl.Series:
    """The last window that ends by each instant."""
    return ((clock - cut.origin) // cut.slide - 1).clip(-LAST_WINDOW, LAST_WINDOW)


def _moved_of(sources: pl.Series, known: Mapping[Any, Moved], others: tuple[int, int]) -> list[pl.Series]:
    """`before` and `now` for each of some sources, those that have no clock of their own included."""
    table = pl.DataFrame(
        {
            "source": pl.Series(list(known), dtype=sources.dtype),
            "before": pl.Series([finite(before) for before, _ in known.values()], dtype=pl.Int64),
            "now": pl.Series([finite(now) for _, now in known.values()], dtype=pl.Int64),
        }
    )
    rows = pl.DataFrame({"source": sources})
    found = zip(("before", "now"), others, strict=True)
    return [looked_up(rows, table, name).fill_null(other).alias(name) for name, other in found]


@dataclass(frozen=True)
class Clock:
    """How far answers go before and after a step, as integers; `reached` is how far the clock came before
    the input ended."""

    before: int
    now: int
    reached: int = -FOREVER
    #: the column whose values have clocks of their own, theirs, and that of all others
    column: str | None = None
    sources: Mapping[Any, tuple[int, int]] = field(default_factory=dict)
    others: tuple[int, int] = (-FOREVER, -FOREVER)
    #: those of the branches, of a union of streams
    branches: tuple[Clock, ...] = ()

    @property
    def plain(self) -> Clock:
        """The furthest clock, for what is not about one source."""
        return replace(self, column=None, sources={})

    @property
    def stands(self) -> bool:
        """Whether nothing becomes final."""
        if self.branches:
            return all(branch.stands for branch in self.branches)
        others = [self.others] if self.column is not None else []
        moved = [(self.before, self.now), *self.sources.values(), *others]
        return all(before >= now for before, now in moved)

    def of(self, sources: pl.Series) -> tuple[Ints, Ints]:
        """`before` and `now` for each of some sources."""
        size = len(sources)
        if self.column is None:
            return np.full(size, self.before), np.full(size, self.now)
        before, now = _moved_of(sources, self.sources, self.others)
        return before.to_numpy(), now.to_numpy()


@dataclass(frozen=True)
class Slice:
    """The instants [start, stop) become final; rows with an attribute below `now` are known."""

    start: int
    stop: int
    before: int
    now: int
    #: no answer about an earlier instant is still to come
    floor: int

    @classmethod
    def of(cls, clock: Clock, lag: int) -> Slice:
        own = [clock.others[1], *(now for _, now in clock.sources.values())]
        floor = moved(clock.now if clock.column is None else min(own), lag)
        return cls(moved(clock.before, lag), moved(clock.now, lag), clock.before, clock.now, floor)

    @property
    def ended(self) -> bool:
        """Whether the input has ended."""
        return self.now >= FOREVER


def moved(instant: int, lag: int) -> int:
    """An instant one later, if there is a lag and it is finite."""
    return instant + lag if abs(instant) < FOREVER else instant


class Timing:
    """The clock of one query. Groups are final by `sources`: of each stream, the columns that may tell them
    apart."""

    def __init__(self, emit: Emit, sources: Mapping[str, Sequence[str]]) -> None:
        self.emit = emit
        self.sources = sources
        self.windows = [node for node in emit.walk() if isinstance(node, Window)]
        self.streams = {stream.name: stream for window in self.windows for stream in window.streams}
        self.tables = {node.table.name for node in emit.walk() if isinstance(node, TableScan)}

    def moved(self, before: Knowns, held: Held, now: Knowns, now_held: Held, reached: Instant) -> Clock:
        """How the clock moves: of all sources together, or of each."""
        own = next((name for name in now if self._by_group(name, now)), None)
        others = finite(self.clock(before, held)), finite(self.clock(now, now_held))
        if own is None:
            return Clock(*others, finite(reached))
        sources = {
            source: (
                finite(self.clock(before, held, own, source)),
                finite(self.clock(now, now_held, own, source)),
            )
            for source in now[own].progress.sources
        }
        moves = [others, *sources.values()]
        furthest = max(b for b, _ in moves), max(n for _, n in moves)
        return Clock(*furthest, finite(reached), now[own].per, sources, others)

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        own = [name for name in known if self._by_group(name, known)]
        each = (
            self.clock(known, held, name, source) for name in own for source in known[name].progress.sources
        )
        return max([self.clock(known, held), *each])

    def kept(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> list[pl.Series]:
        """How far answers were given for each row that is kept although it is late, as a column."""
        stream = self.streams[name]
        if stream.late is not Late.KEEP or not rows.height:
            return [pl.Series(KEPT, [NEVER_LATE], dtype=pl.Int64).new_from_index(0, rows.height)]
        mine = known[name]
        own = name if self._by_group(name, known) else None
        sources = {
            source: (finite(mine.progress.progress_of(source)), finite(self.clock(known, held, own, source)))
            for source in (mine.progress.sources if mine.per is not None else ())
        }
        others = finite(mine.progress.progress), finite(self.clock(known, held))
        by_source = Clock(0, 0, column=mine.per, sources=sources, others=others)
        promised, clock = by_source.of(rows[mine.per]) if mine.per is not None else others
        late = moments_of(rows, stream.wattr).to_numpy() < promised
        return [pl.Series(KEPT, np.where(late, clock, NEVER_LATE), dtype=pl.Int64)]

    def _by_group(self, name: str, known: Knowns) -> bool:
        return known[name].per in self.sources.get(name, ())

    def clock(self, known: Knowns, held: Held, own: str | None = None, source: Any = None) -> Instant:
        """The least P of all inputs; of `own`, only what this source promises counts."""
        found: list[Instant] = [progress for name, progress in held.items() if name in self.tables]
        for window in self.windows:
            for scan in (origin for origin in window.origins if isinstance(origin, Scan)):
                each, attribute = known[scan.stream.name], window.attribute_of(scan)
                by_source = scan.stream.name == own and attribute == scan.stream.wattr and not each.sealed
                promised = each.progress.progress_of(source) if by_source else None
                found.append(each.progress_on(scan.stream, attribute) if promised is None else promised)
        return min(found, default=INFINITY)
