"""HEAVY_HITTERS(x, fraction): the values that make up more than a fraction of all, with their counts.

With a third argument '>=' those that make up the fraction, or more.

Exact, from the counts of values; NULL is no value and does not count. The fraction is compared as it is
written: 3 of 10 values are not more than 0.3 of them, although the double next to 0.3 is a little less.

>>> heavy = HeavyHitters(0.3)
>>> heavy.lower(heavy.fold(map(heavy.lift, [("a",)] * 3 + [("b",)] * 5 + [("c",), (None,), ("d",)])))
(('b', 5),)
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from windrow.algebra.aggregates.base import Types, fraction_of
from windrow.algebra.aggregates.multiset import Counting, Counts, Multiset
from windrow.algebra.aggregates.order import restored
from windrow.algebra.types import BIGINT, DataType, array, struct
from windrow.errors import QueryError


class HeavyHitters(Counting):
    """An array of (value, count), the most frequent first, ties by value; empty if there are none."""

    name = "HEAVY_HITTERS"
    parameters = ("fraction",)
    options = (("comparison", ">"),)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        given, comparison = self.params
        if comparison not in (">", ">="):
            raise QueryError(
                f"{self.name} compares by '>' or '>=', not by {comparison!r}",
                code="bad-aggregate",
                hint="write HEAVY_HITTERS(x, 0.05, '>=') for the values that make up 5% or more",
            )
        self.at_least = comparison == ">="
        self.params = (fraction_of(self.name, given), *([comparison] if self.at_least else []))
        #: the decimal that the double was written as
        self.fraction = Fraction(Decimal(repr(self.params[0])))

    def of_counts(self, counts: Counts) -> Multiset:
        limit = self.fraction * sum(counts.values())
        heavy = {value: n for value, n in counts.items() if n > limit or (self.at_least and n == limit)}
        ranked = sorted((-count, value) for value, count in heavy.items())
        return tuple((restored(value), -count) for count, value in ranked)

    def _result_type(self, types: Types) -> DataType:
        return array(struct(value=types[0], count=BIGINT))
