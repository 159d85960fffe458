"""Rows that no query needs, told as a handful of intervals [begin, end) of WATTR.

They are left out before anything is computed from them, but after progress and lateness were judged: what is
late, and how far a stream is, must not depend on what is shed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import polars as pl

Intervals = Sequence[tuple[int, int]]

#: more cells than these times 64 are not told by bits
MOST_WORDS = 64


def without(rows: pl.DataFrame, wattr: str, shed: Intervals) -> pl.DataFrame:
    """The rows outside of all intervals, which are in order and apart: a row behind an odd number of bounds
    is inside of one.

    >>> without(pl.DataFrame({"t": [1, 5, 9, 10]}), "t", [(5, 10)])["t"].to_list()
    [1, 10]
    """
    if not shed or not rows.height:
        return rows
    bounds = np.array(shed, dtype=np.int64).ravel()
    passed = np.searchsorted(bounds, rows[wattr].cast(pl.Int64).to_numpy(), side="right")
    return rows.filter(pl.Series(passed % 2 == 0))


def shed_sql(shed: Intervals, moment: str) -> str:
    """The condition that a row is in one of the intervals, which are in order; nothing if there are none.

    Windows end in step, and so do the intervals: time is cut into cells of their common step, and a bit says
    of each whether it is shed. A row is looked up, however many intervals there are. The numbers are new in
    every epoch. As elements of an array they are no part of the generated code, which would have to be
    compiled anew.

    >>> shed_sql([], "t")
    ''
    >>> shed_sql([(5, 10)], "t").partition(" AND ")[0]
    '((t >= element_at(array(5L, 0L), IF(t IS NULL, 2, 1))'
    """
    if not shed:
        return ""

    def number(value: int) -> str:
        return f"element_at(array({value}L, 0L), IF({moment} IS NULL, 2, 1))"

    def between(begin: int, end: int) -> str:
        return f"({moment} >= {number(begin)} AND {moment} < {number(end)})"

    grid = cells_of(shed)
    if len(shed) == 1 or len(grid.words) > MOST_WORDS or not _is_near(grid, shed):
        return f"({' OR '.join(between(*each) for each in shed)})"
    cell = f"(({moment} - {number(grid.first)}) div {number(grid.step)})"
    near = f"least(greatest({cell}, 0L), {number(64 * len(grid.words) - 1)})"
    word = (
        f"element_at(array({', '.join(f'{word}L' for word in grid.words)}), CAST({near} div 64L AS INT) + 1)"
    )
    bit = f"shiftright({word}, CAST({near} % 64L AS INT)) & 1L"
    return f"({between(shed[0][0], shed[-1][1])} AND ({bit}) = 1L)"


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of `step` ticks from `first` on; bit n of the words says whether cell n is shed."""

    first: int
    step: int
    words: tuple[int, ...]

    def holds(self, moment: int) -> bool:
        """Whether the cell of a moment is shed."""
        cell = (moment - self.first) // self.step
        return 0 <= cell < 64 * len(self.words) and bool(self.words[cell // 64] >> cell % 64 & 1)


def cells_of(shed: Intervals) -> Cells:
    """The cells of some intervals. The first one may begin within a cell, and the last one end within one.

    >>> cells_of([(3, 20), (30, 45)])
    Cells(first=0, step=10, words=(27,))
    """
    inner = [bound for each in shed for bound in each][1:-1]
    step = gcd(*(bound - inner[0] for bound in inner)) or max(1, shed[-1][1] - shed[0][0])
    anchor = inner[0] if inner else shed[0][0]
    first = anchor + (shed[0][0] - anchor) // step * step
    bits = 0
    for begin, end in shed:
        low, high = (begin - first) // step, -((first - end) // step)
        bits |= (1 << high) - (1 << low)
    count = -(-bits.bit_length() // 64)
    return Cells(first, step, tuple(_signed(bits >> 64 * n & (1 << 64) - 1) for n in range(count)))


def _is_near(grid: Cells, shed: Intervals) -> bool:
    """Whether 64 bits are enough to count from the first cell to the end."""
    return grid.first >= -(1 << 63) and shed[-1][1] - grid.first < 1 << 63


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
