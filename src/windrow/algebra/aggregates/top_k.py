"""TOP_K(x, k): the k most frequent values with their counts; equal counts in order of the values.

>>> top = TopK(2)
>>> top.lower(top.fold(map(top.lift, [("b",), ("a",), ("c",), ("c",)])))
(('c', 2), ('a', 1))
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import Types
from windrow.algebra.aggregates.multiset import Counting, Counts, Multiset
from windrow.algebra.aggregates.order import restored
from windrow.algebra.types import BIGINT, DataType, array, struct
from windrow.errors import QueryError


class TopK(Counting):
    """An array of (value, count), empty over no values."""

    name = "TOP_K"
    parameters = ("k",)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        (self.k,) = params
        if not isinstance(self.k, int) or self.k < 1:
            raise QueryError(
                f"no TOP_K of {self.k!r} values", code="bad-aggregate", hint="k is a whole number from 1 on"
            )

    def of_counts(self, counts: Counts) -> Multiset:
        ranked = sorted((-count, value) for value, count in counts.items())
        return tuple((restored(value), -count) for count, value in ranked[: self.k])

    def _result_type(self, types: Types) -> DataType:
        return array(struct(value=types[0], count=BIGINT))
