"""HISTOGRAM: how often each value occurs, in the order of the values.

>>> counted = Histogram()
>>> counted.lower(counted.fold(map(counted.lift, [("b",), ("a",), (None,), ("b",)])))
(('a', 1), ('b', 2))
"""

from __future__ import annotations

from windrow.algebra.aggregates.base import Types
from windrow.algebra.aggregates.multiset import Counting, Counts, Multiset
from windrow.algebra.aggregates.order import restored
from windrow.algebra.types import BIGINT, DataType, array, struct


class Histogram(Counting):
    """An array of (value, count), empty over no values."""

    name = "HISTOGRAM"

    def of_counts(self, counts: Counts) -> Multiset:
        return tuple((restored(value), count) for value, count in sorted(counts.items()))

    def _result_type(self, types: Types) -> DataType:
        return array(struct(value=types[0], count=BIGINT))
