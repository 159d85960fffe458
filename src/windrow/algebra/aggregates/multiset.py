"""Aggregates that need every distinct value and how often it occurs: the holistic ones.

Counters can be added and subtracted for every type, doubles included, since it is the counts that
change and never the values: pseudo-differential, in the words of the panes paper. The state is the
sorted tuple of (value, count), so that equal multisets are equal states.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Differential, Gray, Size, Types
from windrow.algebra.aggregates.order import sortable
from windrow.errors import StateError

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
