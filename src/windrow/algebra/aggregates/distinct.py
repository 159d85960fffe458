"""DISTINCT: any aggregate over the distinct values of its arguments.

Counts are kept although the value needs only the keys: with them a row can leave again. Values are
folded in their order, so that even a sum of doubles is always the same. A row counted twice does not
change the value, though it does change the counts: after states that overlap were combined, subtracting
one of them is wrong.

>>> from windrow.algebra.aggregates.count import Count
>>> count = DistinctValues(Count())
>>> count.lower(count.fold(map(count.lift, [("a", 1), ("a", 1), ("a", 2), ("b", None)])))
2
"""

from __future__ import annotations

from typing import Any, Self

from windrow.algebra.aggregates.base import AggregateFunction, Size, Types
from windrow.algebra.aggregates.multiset import Counting, Counts, Multiset
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import DataType
from windrow.errors import QueryError


class DistinctValues(Counting):
    """`inner` over distinct arguments; a row with a NULL argument is ignored."""

    duplicate_insensitive = True

    def __init__(self, inner: AggregateFunction) -> None:
        if inner.size is Size.LISTS:
            raise QueryError(
                f"{inner.name} tells which values are frequent, and with DISTINCT each occurs once",
                code="bad-aggregate",
                hint="leave DISTINCT out",
            )
        self.name = f"DISTINCT {inner.name}"
        self.parameters, self.options = inner.parameters, inner.options
        least, most = inner.arity
        self.arity = max(1, least), most
        super().__init__(*inner.params)
        self.inner = inner
        self.error_bound = inner.error_bound

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Multiset:
        return () if None in args else ((sortable(args), 1),)

    def of_counts(self, counts: Counts) -> Any:
        inner = self.inner
        return inner.lower(inner.fold(inner.lift(restored(key)) for key in sorted(counts)))

    def bind(self, types: Types) -> Self:
        bound = super().bind(types)
        bound.inner = self.inner.bind(types)
        return bound

    def _result_type(self, types: Types) -> DataType:
        return self.inner.result_type(types)
