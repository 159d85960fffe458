"""The two stacks of one table as arrays: windows made of a back and a front, and the suffixes of a flip.

A table's rows, sorted by id and pane, are first the versions of the back (a row stands from the windows
that begin after its pane), then the rows of the front, from pane `base` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.combiners import Lanes, choose, take
from windrow.kernels.columnar.numbering import Numbered, cut_lanes, rows_of_ids
from windrow.kernels.columnar.scans import run_ends, segmented
from windrow.kernels.layouts import PANE
from windrow.kernels.panes.slide import PaneWindows

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.panes.cuts import Cut

    Ints = npt.NDArray[np.int64]
    Range = tuple[int, int]


@dataclass(frozen=True)
class StackWindows:
    """Windows of one table; `late` are rows that came after their panes were closed, combined last."""

    table: Numbered | None
    lanes: list[Lanes]
    late: PaneWindows | None
    cut: Cut
    base: int

    @classmethod
    def of(cls, table: Numbered | None, late: Numbered | None, cut: Cut, base: int) -> StackWindows:
        lanes: list[Lanes] = []
        if table is not None:
            front = table.panes >= base
            same = np.diff(table.ids, prepend=-1) == 0
            runs = np.flatnonzero(~(same & front & np.append(False, front[:-1])))
            pairs = zip(table.layout.combiners, table.encoded.lanes, strict=True)
            lanes = [segmented(combiner, group, runs) for combiner, group in pairs]
        return cls(table, lanes, PaneWindows(late, cut) if late else None, cut, base)

    def block(self, groups: Range, windows: Range) -> pl.DataFrame:
        """The back with the front, and with what came late."""
        parts = [] if self.table is None else [self._stacked(self.table, groups, windows)]
        return parts[0] if self.late is None else _amended(parts, self.late, groups, windows)

    def _stacked(self, table: Numbered, groups: Range, windows: Range) -> pl.DataFrame:
        first, stop = table.ids_of(*groups)
        rows = rows_of_ids(table, first, stop)
        ids, panes = table.ids[rows] - first, table.panes[rows]
        if not len(ids):
            return table.framed(ids, ids, cut_lanes(self.lanes, rows))
        w = np.repeat(np.arange(*windows), stop - first)
        column = np.tile(np.arange(stop - first), windows[1] - windows[0])
        ends = self.cut.end_pane(0) + w * self.cut.per_slide
        places = _Places(ids, panes, self.base + self.cut.per_window)
        front = places.last_before(column, ends)
        back = places.last_before(column, np.minimum(ends - self.cut.per_window, self.base))
        has_front = (front >= 0) & (panes[front] >= self.base)
        found: list[Lanes] = []
        for combiner, group in zip(table.layout.combiners, cut_lanes(self.lanes, rows), strict=True):
            nothing = combiner.identity((1,))
            parts = (
                choose(back >= 0, take(group, back), nothing),
                choose(has_front, take(group, front), nothing),
            )
            found.append(combiner.combine(*parts))
        alive = np.flatnonzero(found[0][0] > 0)
        return table.framed(w[alive], column[alive] + first, cut_lanes(found, alive))

    def back(self, groups: pl.DataFrame, pane: int) -> pl.DataFrame:
        """The version of the back that stands after all steps, without what has left."""
        if self.table is None:
            return pl.DataFrame()
        behind = self.table.panes < self.base
        last = np.flatnonzero(behind & ~self._goes_on(self.table.ids, behind))
        last = last[self.lanes[0][0][last] > 0]
        lanes = cut_lanes(self.lanes, last)
        return self.table.stored(groups, np.full(len(last), pane), self.table.ids[last], lanes)

    def front(self, groups: pl.DataFrame) -> pl.DataFrame:
        """The running front of each group."""
        if self.table is None:
            return pl.DataFrame()
        ends = run_ends(self.table.runs, len(self.table.ids))
        last = ends[self.table.panes[ends] >= self.base]
        lanes = cut_lanes(self.lanes, last)
        return self.table.stored(groups, self.table.panes[last], self.table.ids[last], lanes)

    @staticmethod
    def _goes_on(ids: Ints, part: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether the next row is of the same id and of the same part."""
        return np.append((ids[1:] == ids[:-1]) & part[1:] & part[:-1], False)


@dataclass(frozen=True)
class LeapWindows:
    """Windows of one table from its panes; `late` are rows that came after their panes were closed."""

    panes: PaneWindows | None
    late: PaneWindows | None

    @classmethod
    def of(cls, table: Numbered | None, late: Numbered | None, cut: Cut) -> LeapWindows:
        return cls(PaneWindows(table, cut) if table else None, PaneWindows(late, cut) if late else None)

    def block(self, groups: Range, windows: Range) -> pl.DataFrame:
        """The panes, with what came late."""
        parts = [] if self.panes is None else [self.panes.block(groups, windows)]
        return parts[0] if self.late is None else _amended(parts, self.late, groups, windows)


def _amended(parts: list[pl.DataFrame], late: PaneWindows, groups: Range, windows: Range) -> pl.DataFrame:
    """States of windows with what came late for them."""
    both = [*parts, late.block(groups, windows)]
    values = [name for name in both[-1].columns if name.startswith("v")]
    states = pl.concat([part for part in both if part.height] or both[:1])
    return late.table.layout.merge(states, ["w", "g", *values])


class _Places:
    """Finds rows by (id, pane) in rows sorted that way."""

    def __init__(self, ids: Ints, panes: Ints, greatest: int) -> None:
        self.ids = ids
        self.low = int(panes.min())
        self.stride = max(greatest, int(panes.max())) - self.low + 2
        self.keys = ids * self.stride + (panes - self.low)

    def last_before(self, ids: Ints, panes: Ints) -> Ints:
        """For each id, its last row before a pane; -1 if there is none."""
        clipped = np.clip(panes - self.low, 0, self.stride - 1)
        found = np.searchsorted(self.keys, ids * self.stride + clipped) - 1
        return np.where((found >= 0) & (self.ids[found] == ids), found, -1)


@dataclass(frozen=True)
class Suffixes:
    """The suffixes of each group in a block of panes."""

    table: Numbered
    lanes: list[Lanes]

    @classmethod
    def of(cls, table: Numbered) -> Suffixes:
        pairs = zip(table.layout.combiners, table.encoded.lanes, strict=True)
        return cls(table, [segmented(combiner, lanes, table.runs, True) for combiner, lanes in pairs])

    def whole(self, groups: pl.DataFrame, pane: int) -> pl.DataFrame:
        """The whole block of each group, standing from the first window on."""
        first = self.table.runs
        lanes = cut_lanes(self.lanes, first)
        return self.table.stored(groups, np.full(len(first), pane), self.table.ids[first], lanes)

    def steps(self, groups: pl.DataFrame) -> pl.DataFrame:
        """For each pane of each group, what is left of the block without it; in order of the panes."""
        after = np.arange(1, len(self.table.ids) + 1)
        more = np.append(self.table.ids[1:] == self.table.ids[:-1], False)
        after = np.where(more, after, 0)
        lanes = [
            choose(more, take(group, after), combiner.identity((1,)))
            for combiner, group in zip(self.table.layout.combiners, self.lanes, strict=True)
        ]
        return self.table.stored(groups, self.table.panes, self.table.ids, lanes).sort(PANE)
