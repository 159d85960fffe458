"""A sheet as matrices, one row for each interval that has rows and one column for each group.

Windows of all lengths follow from what is computed once: totals that can be subtracted are the difference of
two running totals. All else is combined from blocks of 1, 2, 4, … intervals: MIN and MAX of two that overlap,
anything else of as many as the length has binary ones. Nothing inexact is ever subtracted.

Card: dense sheets
    requirements  associative combine with neutral element; few enough intervals and groups for a matrix
    time          once per epoch: a cell for each interval and group, times log b where blocks are needed; per
                  window and group: one subtraction; one combination for MIN and MAX, else at most log b
    space         a cell, times log b where blocks are needed
    source        running and interval synopses: Golab 2006, 8.3.1; intervals shared by several queries:
                  Li et al. 2005
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.columnar.combiners import Combiner, Lanes, subtract, take

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


@dataclass
class Matrix:
    """The states of one combiner: lane values at (interval, group)."""

    combiner: Combiner
    cells: Lanes
    _totals: Lanes | None = None
    _blocks: list[Lanes] = field(default_factory=list)

    @classmethod
    def of(
        cls, combiner: Combiner, lanes: Lanes, rows: Ints, columns: Ints, shape: tuple[int, int]
    ) -> Matrix:
        """States at some places; those of no rows elsewhere.

        >>> from windrow.kernels.columnar.combiners import LEAST, TOTAL
        >>> at = np.array([0, 1, 2, 4]), np.zeros(4, dtype=np.int64)
        >>> least = Matrix.of(LEAST, (np.array([5, 3, 9, 7]),), *at, (5, 1))
        >>> least.windows(np.array([0, 2, 0]), np.array([1, 5, 5]))[0].ravel().tolist()
        [5, 7, 3]
        >>> total = Matrix.of(TOTAL, (np.array([5, 3, 9, 7]),), *at, (5, 1))
        >>> total.windows(np.array([0, 2]), np.array([3, 5]))[0].ravel().tolist()
        [17, 16]
        """
        cells = combiner.identity(shape)
        for cell, lane in zip(cells, lanes, strict=True):
            cell[rows, columns] = lane
        return cls(combiner, cells)

    def windows(self, begins: Ints, ends: Ints) -> Lanes:
        """The states of the intervals from each begin up to its end, for all groups."""
        if self.combiner.invertible:
            return subtract(take(self.totals, ends), take(self.totals, begins))
        found = self.combiner.identity((len(begins), self.cells[0].shape[1]))
        if self.combiner.chooses:
            self._choose(found, begins, ends)
            return found
        lengths = ends - begins
        place = begins.copy()
        for level in reversed(range(int(lengths.max(initial=0)).bit_length())):
            mine = np.flatnonzero(lengths >> level & 1)
            if not len(mine):
                continue
            more = take(self._block(level), place[mine])
            if len(mine) == len(begins):
                found = self.combiner.combine(found, more)
            else:
                both = self.combiner.combine(take(found, mine), more)
                for lane, value in zip(found, both, strict=True):
                    lane[mine] = value
            place[mine] += 1 << level
        return found

    def _choose(self, found: Lanes, begins: Ints, ends: Ints) -> None:
        """The largest block that begins with the window, and the one of that size that ends with it."""
        lengths = ends - begins
        for level in range(int(lengths.max(initial=0)).bit_length()):
            mine = np.flatnonzero(lengths >> level == 1)
            if len(mine):
                block = self._block(level)
                last = ends[mine] - (1 << level)
                both = self.combiner.combine(take(block, begins[mine]), take(block, last))
                for lane, value in zip(found, both, strict=True):
                    lane[mine] = value

    @property
    def totals(self) -> Lanes:
        """Running totals, beginning with nothing."""
        if self._totals is None:
            self._totals = tuple(
                np.concatenate([np.zeros_like(cell[:1]), np.cumsum(cell, axis=0)]) for cell in self.cells
            )
        return self._totals

    def _block(self, level: int) -> Lanes:
        """The states of 2^level intervals from each one on."""
        if not self._blocks:
            self._blocks.append(self.cells)
        while len(self._blocks) <= level:
            half, below = 1 << (len(self._blocks) - 1), self._blocks[-1]
            left, right = take(below, slice(None, -half)), take(below, slice(half, None))
            self._blocks.append(self.combiner.combine(left, right))
        return self._blocks[level]
