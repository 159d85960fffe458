"""MEDIAN and QUANTILE(x, p): exact, as Spark's `percentile`. PERCENTILE_DISC(x, p): one of the values.

Position p·(n−1) of the sorted values; between two of them the value is interpolated linearly. PERCENTILE_DISC
is the least value that at least the fraction p of all is no greater than.

>>> median = Median()
>>> median.lower(median.fold(map(median.lift, [(10,), (1,), (None,), (2,), (4,)])))
3.0
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from decimal import Decimal
from itertools import accumulate
from typing import Any

from windrow.algebra.aggregates import base, multiset, numbers, order
from windrow.algebra.types import DOUBLE, DataType


class Median(multiset.Counting):
    """The value in the middle; NULL over no values."""

    name = "MEDIAN"
    fraction = 0.5

    def of_counts(self, counts: multiset.Counts) -> float | None:
        if not counts:
            return None
        values = sorted(counts)
        ranks = list(accumulate(counts[value] for value in values))
        position = self.fraction * (ranks[-1] - 1)
        below, above = math.floor(position), math.ceil(position)
        low, high = (float(order.restored(values[bisect_right(ranks, rank)])) for rank in (below, above))
        if low == high or below == above:
            return low
        value = low + (position - below) * (high - low)  # Spark's formula, to the last digit
        return value if value == value else math.nan

    def _result_type(self, types: base.Types) -> DataType:
        numbers.numeric(self.name, types)
        return DOUBLE


class Quantile(Median):
    """The value that a given fraction of the values lies below."""

    name = "QUANTILE"
    parameters = ("fraction",)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        self.fraction = base.fraction_of(self.name, *params)
        self.params = (self.fraction,)


class PercentileDisc(multiset.Counting):
    """The value at a fraction of the sorted values, one of them; NULL over no values.

    >>> middle = PercentileDisc(0.5)
    >>> middle.lower(middle.fold(map(middle.lift, [("d",), ("a",), (None,), ("b",), ("c",)])))
    'b'
    """

    name = "PERCENTILE_DISC"
    parameters = ("fraction",)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        self.fraction = base.fraction_of(self.name, *params)
        self.params = (self.fraction,)

    def of_counts(self, counts: multiset.Counts) -> Any:
        if not counts:
            return None
        values = sorted(counts)
        ranks = list(accumulate(counts[value] for value in values))
        wanted = math.ceil(Decimal(repr(self.fraction)) * ranks[-1])
        return order.restored(values[bisect_left(ranks, max(1, wanted))])
