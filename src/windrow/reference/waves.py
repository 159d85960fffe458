"""APPROX_COUNT and APPROX_SUM by their definition (`windrow.algebra.aggregates.wave_window`), from all rows.

>>> rows = [(t, 1) for t in range(10)]
>>> [estimate(rows, at, length=8, error=0.5) for at in (0, 4, 7, 9, 16, 17)]
[1, 5, 8, 8, 1, None]
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from windrow.algebra.aggregates.approx_sum import refuse_negative


def estimate(rows: Iterable[tuple[int, int]], at: int, length: int, error: float) -> int | None:
    """The estimate at an instant, from (instant, value) of all rows that ever came; None if none is left."""
    run: list[tuple[int, int]] = []
    for t, value in sorted(rows):
        if value < 0:
            raise refuse_negative(value)
        if t <= at:
            run = [*run, (t, value)] if run and t < run[-1][0] + length else [(t, value)]
    if not run or run[-1][0] + length <= at:
        return None
    last = sum(value for _, value in run)
    gone = sum(value for t, value in run if t + length <= at)
    marked = _marked(last, math.ceil(1 / error) + 1)
    at_least = max(mark for mark in marked if mark <= gone)
    after = [mark for mark in marked if mark > gone]
    at_most = _before_row_of(min(after), run) if after else last
    return last - (at_least + at_most) // 2


def _marked(last: int, most: int) -> set[int]:
    """The first unit, and the greatest `most` multiples of each power of two, none below 0."""
    powers = (1 << level for level in range(last.bit_length() + 1))
    return {0, 1} | {
        number * power
        for power in powers
        for number in range(max(0, last // power - most + 1), last // power + 1)
    }


def _before_row_of(unit: int, run: list[tuple[int, int]]) -> int:
    """How many units come before the row that has this one."""
    before = 0
    for _, value in run:
        if before + value >= unit:
            break
        before += value
    return before
