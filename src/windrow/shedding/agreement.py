"""Which queries have agreed to lose windows, and can: the others lose nothing.

A query agrees by MAX GAP, a stream by SHEDDABLE. What they agree to must have a meaning: the query gives one
answer per window of time, so that without some windows the rest is still right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.plan import Emit, Scan, StreamWord
from windrow.shedding.reach import Reach, reaches
from windrow.shedding.rules import CannotShed, WinDrop

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream
    from windrow.windows.grid import SlideGrid


@dataclass(frozen=True, slots=True)
class Candidate:
    """A standing query, as far as shedding is concerned."""

    name: str
    plan: Emit
    max_gap: int | None = None
    priority: int = 0

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams it reads, nested queries included."""
        scans = [node for node in self.plan.walk() if isinstance(node, Scan)]
        return {scan.stream.name: scan.stream for scan in scans}


@dataclass(frozen=True, slots=True)
class Agreed:
    """A query that may lose windows. `reach` says which rows each of them depends on."""

    name: str
    grid: SlideGrid
    reach: tuple[Reach, ...]
    max_gap: int
    priority: int = 0
    #: of the streams it reads, those whose rows may be dropped
    sheddable: frozenset[str] = frozenset()

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(way.stream for way in self.reach)

    @property
    def drop(self) -> WinDrop:
        """The WinDrop of this query alone: pipeline rule, worst case over its scans."""
        return WinDrop(max(way.width for way in self.reach), self.grid.period, self.max_gap)

    def first(self, stream: str, end: int) -> int | None:
        """The first row of a stream that the window ending at `end` depends on."""
        return min((way.first(end) for way in self.reach if way.stream == stream), default=None)

    def end(self, stream: str, end: int) -> int | None:
        """One past the last row of a stream that the window ending at `end` depends on."""
        return max((way.end(end) for way in self.reach if way.stream == stream), default=None)


def agree(query: Candidate) -> Agreed:
    """The terms on which a query sheds; `CannotShed` with the reason if it does not."""
    if query.max_gap is None or query.max_gap < 1:
        raise CannotShed("no-max-gap", "it has no MAX GAP: no window of it may be missing")
    sheddable = frozenset(name for name, stream in query.streams.items() if stream.sheddable)
    if not sheddable:
        raise CannotShed("not-sheddable", "no stream it reads is SHEDDABLE")
    return Agreed(
        query.name, final_grid(query.plan), reaches(query.plan), query.max_gap, query.priority, sheddable
    )


def final_grid(emit: Emit) -> SlideGrid:
    """The instants at which a query answers, one window each."""
    if any(not leaf.spec.is_logical for leaf in emit.leaves):
        raise CannotShed("count-based", "one of its windows is moved by rows, not by time")
    per_window = emit.is_periodic and emit.meaning is StreamWord.RSTREAM and not emit.is_internal
    if not per_window:
        raise CannotShed("not-per-window", "it does not give one answer per window")
    grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]
    if any(grid.period != grids[0].period for grid in grids):
        raise CannotShed(
            "different-slides", "its windows slide differently, so its answers are of different kinds"
        )
    if any((grid.origin - grids[0].origin) % grid.period for grid in grids):
        raise CannotShed("different-origins", "its windows have different ORIGINs")
    return grids[0]
