"""Which instants a step makes final.

The clock τ goes from `before` to `now`. Rows with an attribute below τ are all known. A change at instant i
is final when τ > i, an extent that ends at E when τ ≥ E: with `lag` 1 the answer at E is about the instant
before E. So a step answers the instants [start, stop).

>>> Slice.of(Clock(10, 20), lag=0), Slice.of(Clock(10, 20), lag=1).stop
(Slice(start=10, stop=20, before=10, now=20, floor=20), 21)

Where groups are final by themselves, a source has a clock of its own; what is not about one source goes as
far as the furthest (`windrow.algebra.finality`).

How the clock of a query moves, from what is known of its streams and tables before and after.

It has no state: what is known goes in. `reached` is how far the clock had come before the input ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.catalog import Late
from windrow.algebra.plan import Emit, Scan, TableScan, Window
from windrow.kernels.columnar.codes import looked_up
from windrow.kernels.intake import Known, moments_of
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, NEVER_LATE, finite
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    import numpy.typing as npt

    Knowns = Mapping[str, Known]
    Held = Mapping[str, Instant]
    Ints = npt.NDArray[np.int64]
    Moved = tuple[int, int]


@dataclass(frozen=True)
class Clock:
    """How far answers go before and after a step, as integers; `reached` is how far the clock came before
    the input ended."""

    before: int
    now: int
    reached: int = -FOREVER
    #: the column whose values have clocks of their own, theirs, and that of all others
    column: str | None = None
    sources: Mapping[Any, Moved] = field(default_factory=dict)
    others: Moved = (-FOREVER, -FOREVER)
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
        moved = [(self.before, self.now), *self.sources.values()]
        return all(before >= now for before, now in moved) and (
            self.column is None or self.others[0] >= self.others[1]
        )

    def of(self, sources: pl.Series) -> tuple[Ints, Ints]:
        """`before` and `now` for each of some sources."""
        size = len(sources)
        if self.column is None:
            return np.full(size, self.before), np.full(size, self.now)
        known = pl.DataFrame(
            {
                "source": pl.Series(list(self.sources), dtype=sources.dtype),
                "before": pl.Series([moved[0] for moved in self.sources.values()], dtype=pl.Int64),
                "now": pl.Series([moved[1] for moved in self.sources.values()], dtype=pl.Int64),
            }
        )
        rows = pl.DataFrame({"source": sources})
        found = [looked_up(rows, known, name) for name in ("before", "now")]
        before, now = (column.fill_null(self.others[i]) for i, column in enumerate(found))
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
        nows = (
            [clock.now]
            if clock.column is None
            else [clock.others[1], *(n for _, n in clock.sources.values())]
        )
        floor = moved(min(nows), lag)
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
        own = self._own(now)
        others = finite(self._clock(before, held)), finite(self._clock(now, now_held))
        if own is None:
            return Clock(*others, finite(reached))
        sources = {
            source: (
                finite(self._clock(before, held, own, source)),
                finite(self._clock(now, now_held, own, source)),
            )
            for source in now[own].progress.sources
        }
        moves = [others, *sources.values()]
        furthest = max(b for b, _ in moves), max(n for _, n in moves)
        return Clock(*furthest, finite(reached), now[own].per, sources, others)

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        clocks = [self._clock(known, held)]
        for name in known:
            if self._by_group(name, known):
                clocks += [self._clock(known, held, name, source) for source in known[name].progress.sources]
        return max(clocks)

    def clock(self, known: Knowns, held: Held) -> Instant:
        """The least P of all inputs."""
        return self._clock(known, held)

    def kept(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> list[pl.Series]:
        """How far answers were given for each row that is kept although it is late, as a column."""
        stream = self.streams[name]
        if stream.late is not Late.KEEP or not rows.height:
            return [pl.Series(KEPT, [NEVER_LATE], dtype=pl.Int64).new_from_index(0, rows.height)]
        promised, clock = self._promised(name, known, held, rows)
        late = moments_of(rows, stream.wattr).to_numpy() < promised
        return [pl.Series(KEPT, np.where(late, clock, NEVER_LATE), dtype=pl.Int64)]

    def _promised(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> tuple[Any, Any]:
        """P and the clock that held for each row, by its source."""
        mine = known[name]
        others = finite(mine.progress.progress), finite(self._clock(known, held))
        if mine.per is None or not mine.progress.sources:
            return np.full(rows.height, others[0]), np.full(rows.height, others[1])
        own = name if self._by_group(name, known) else None
        sources = {
            source: (
                finite(mine.progress.progress_of(source)),
                finite(self._clock(known, held, own, source)),
            )
            for source in mine.progress.sources
        }
        return Clock(0, 0, column=mine.per, sources=sources, others=others).of(rows[mine.per])

    def _own(self, known: Knowns) -> str | None:
        """The stream whose sources have clocks of their own."""
        return next((name for name in known if self._by_group(name, known)), None)

    def _by_group(self, name: str, known: Knowns) -> bool:
        return known[name].per in self.sources.get(name, ())

    def _clock(self, known: Knowns, held: Held, own: str | None = None, source: Any = None) -> Instant:
        """The least P of all inputs; of `own`, only what this source promises counts."""
        found: list[Instant] = [progress for name, progress in held.items() if name in self.tables]
        for window in self.windows:
            for scan in (origin for origin in window.origins if isinstance(origin, Scan)):
                each, attribute = known[scan.stream.name], window.attribute_of(scan)
                by_source = scan.stream.name == own and attribute == scan.stream.wattr and not each.sealed
                promised = each.progress.progress_of(source) if by_source else None
                found.append(each.progress_on(scan.stream, attribute) if promised is None else promised)
        return min(found, default=INFINITY)
