"""APPROX_COUNT(* [, error]), APPROX_COUNT(x [, error]): rows of a continuous window, within a relative error.

>>> count = ApproxCount(0.1)
>>> count.marks
11
>>> print(count.error_bound)
relative error below 10 %, always; state at most 11 rows per group and power of two up to the value
"""

from __future__ import annotations

from windrow.algebra.aggregates.count import Count
from windrow.algebra.aggregates.wave_window import Waved


class ApproxCount(Waved, Count):
    """COUNT, where a wave is worth it within `error`."""

    name = "APPROX_COUNT"
    arity = (0, 1)
    exact = "count"
