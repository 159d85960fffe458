"""APPROX_TOP_K(x, k [, capacity]): the k most frequent of at most `capacity` values, with exact counts.

Up to `capacity` different values it is TOP_K. Beyond that, only the values with the least hashes are counted:
a sample of the values, the same in whatever order and in whatever parts they come. A value of the sample is
in the sample of every part it is in, so its count is exact, and the counts reported are never above the true
ones. A value of the true top k is missing with probability 1 − capacity/n, where n is the number of different
values.

Summaries that follow the heavy values instead (Misra and Gries, space saving) depend on the order of arrival
and on how parts are merged, so that the answers of a standing query would depend on its micro-batches.

>>> top = ApproxTopK(2)
>>> top.lower(top.fold(map(top.lift, [("b",), ("a",), ("c",), ("c",)])))
(('c', 2), ('a', 1))
"""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.base import Aggregate, Gray, Size
from windrow.algebra.aggregates.constants import refuse_nested, whole_of
from windrow.algebra.aggregates.hashing import hash64
from windrow.algebra.aggregates.multiset import Counts, extend
from windrow.algebra.aggregates.ordering import restored, sortable
from windrow.algebra.types import BIGINT, DataType, array, struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.algebra.aggregates.base import Types

#: ((hash, value), count), sorted
Sample = tuple[tuple[tuple[int, Any], int], ...]


class ApproxTopK(Aggregate):
    """An array of (value, count), empty over no values."""

    name = "APPROX_TOP_K"
    parameters = ("k",)
    options = (("capacity", 10_000),)
    size = Size.SKETCH
    gray = Gray.ALGEBRAIC

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        k, capacity = self.params
        self.k = whole_of(self.name, k, "k")
        self.capacity = whole_of(self.name, capacity, "capacity", least=self.k)

    @property
    def most_cells(self) -> int:
        return self.capacity

    @property
    def error_bound(self) -> str:
        return f"exact up to {self.capacity} different values per group, of more a sample of that many"

    def identity(self) -> Sample:
        return ()

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Sample:
        if args[0] is None:
            return ()
        return (((hash64(args[0], self.types[0] if self.types else None), sortable(args[0])), 1),)

    def combine(self, a: Sample, b: Sample) -> Sample:
        return self.fold((a, b)) if a and b else a or b

    def fold(self, states: Iterable[Sample]) -> Sample:
        counts: Counts = {}
        for state in states:
            extend(counts, state)
            if len(counts) > 2 * self.capacity:
                counts = dict(nsmallest(self.capacity, counts.items()))
        return tuple(nsmallest(self.capacity, counts.items()))

    def lower(self, state: Sample) -> tuple[tuple[Any, int], ...]:
        ranked = sorted((-count, value) for (_, value), count in state)
        return tuple((restored(value), -count) for count, value in ranked[: self.k])

    def _result_type(self, types: Types) -> DataType:
        refuse_nested(self.name, types[0])
        return array(struct(value=types[0], count=BIGINT))
