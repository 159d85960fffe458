"""MODE, HISTOGRAM, TOP_K, HEAVY_HITTERS, and the counts that all holistic aggregates are made of.

They need every distinct value and how often it occurs.

Counters can be added and subtracted for every type, doubles included, since it is the counts that
change and never the values: pseudo-differential, in the words of the panes paper. The state is the
sorted tuple of (value, count), so that equal multisets are equal states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Differential, Gray, Size, Types, fraction_of
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import BIGINT, DataType, array, struct
from windrow.errors import QueryError, StateError

Counts = dict[Any, int]
Multiset = tuple[tuple[Any, int], ...]


class Counting(AggregateFunction):
    """An aggregate of the multiset of its values; a subclass says what to make of the counts."""

    size = Size.HOLISTIC
    differential = Differential.PSEUDO
    gray = Gray.HOLISTIC

    @abstractmethod
    def of_counts(self, counts: Counts) -> Any:
        """The value, from how often each (sortable) value occurs."""

    def identity(self) -> Multiset:
        return ()

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Multiset:
        return () if args[0] is None else ((sortable(args[0]), 1),)

    def combine(self, a: Multiset, b: Multiset) -> Multiset:
        return self.fold((a, b)) if a and b else a or b

    def subtract(self, a: Multiset, b: Multiset) -> Multiset:
        counts = dict(a)
        remove(counts, b)
        return tuple(counts.items())

    def fold(self, states: Iterable[Multiset]) -> Multiset:
        counts: Counts = {}
        for state in states:
            extend(counts, state)
        return tuple(sorted(counts.items()))

    def lower(self, state: Multiset) -> Any:
        return self.of_counts(dict(state))

    def invertible_for(self, types: Types) -> bool:
        return True


def counted(types: Types) -> DataType:
    """The type of values with their counts."""
    return array(struct(value=types[0], count=BIGINT))


def ranked(counts: Counts) -> Multiset:
    """(value, count), the most frequent first, ties by value."""
    order = sorted((-count, value) for value, count in counts.items())
    return tuple((restored(value), -count) for count, value in order)


def extend(counts: Counts, state: Multiset) -> None:
    """Add the multiset `state` to `counts`.

    >>> counts = {"a": 1}
    >>> extend(counts, (("a", 2), ("b", 1)))
    >>> counts
    {'a': 3, 'b': 1}
    """
    for value, count in state:
        counts[value] = counts.get(value, 0) + count


def remove(counts: Counts, state: Multiset) -> None:
    """Take the multiset `state` out of `counts`, which must contain it."""
    for value, count in state:
        left = counts.get(value, 0) - count
        if left > 0:
            counts[value] = left
        elif left == 0:
            del counts[value]
        else:
            raise StateError(f"{value!r} is removed more often than it was added", code="bad-inverse")


class Mode(Counting):
    """MODE: the most frequent value, and of several the least.

    NULL over no values.

    >>> mode = Mode()
    >>> mode.lower(mode.fold(map(mode.lift, [("b",), ("a",), (None,), ("b",), ("a",)])))
    'a'
    """

    name = "MODE"

    def of_counts(self, counts: Counts) -> Any:
        if not counts:
            return None
        most = max(counts.values())
        return restored(min(value for value, count in counts.items() if count == most))


class Histogram(Counting):
    """HISTOGRAM: how often each value occurs, in the order of the values.

    An array of (value, count), empty over no values.

    >>> counted = Histogram()
    >>> counted.lower(counted.fold(map(counted.lift, [("b",), ("a",), (None,), ("b",)])))
    (('a', 1), ('b', 2))
    """

    name = "HISTOGRAM"

    def of_counts(self, counts: Counts) -> Multiset:
        return tuple((restored(value), count) for value, count in sorted(counts.items()))

    def _result_type(self, types: Types) -> DataType:
        return counted(types)


class TopK(Counting):
    """TOP_K(x, k): the k most frequent values with their counts; equal counts in order of the values.

    An array of (value, count), empty over no values.

    >>> top = TopK(2)
    >>> top.lower(top.fold(map(top.lift, [("b",), ("a",), ("c",), ("c",)])))
    (('c', 2), ('a', 1))
    """

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
        return ranked(counts)[: self.k]

    def _result_type(self, types: Types) -> DataType:
        return counted(types)


class HeavyHitters(Counting):
    """HEAVY_HITTERS(x, fraction): the values that make up more than a fraction of all, with their counts.

    An array of (value, count), the most frequent first, ties by value; empty if there are none.

    With a third argument '>=' those that make up the fraction, or more.

    Exact, from the counts of values; NULL is no value and does not count. The fraction is compared as it is
    written: 3 of 10 values are not more than 0.3 of them, although the double next to 0.3 is a little less.

    >>> heavy = HeavyHitters(0.3)
    >>> heavy.lower(heavy.fold(map(heavy.lift, [("a",)] * 3 + [("b",)] * 5 + [("c",), (None,), ("d",)])))
    (('b', 5),)
    """

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
        return ranked(
            {value: n for value, n in counts.items() if n > limit or (self.at_least and n == limit)}
        )

    def _result_type(self, types: Types) -> DataType:
        return counted(types)
