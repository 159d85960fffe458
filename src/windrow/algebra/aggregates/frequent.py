"""FREQUENT(x, k): values that are certainly frequent in the window, from the top-k lists of its sub-windows.

Golab's thesis, chapter 6, Algorithm 6. While a sub-window is open, its values are counted. When it is over,
only the k most frequent values (ties by value) and their counts are kept. δᵢ is the count of the last of
them, or 0 if there are fewer than k: no value that is not on the list occurs more often in that sub-window.
So a value that is on no list of the window occurs at most δ = Σδᵢ times. What the lists say of a value is
added up; a value is reported if the sum exceeds δ, with that sum.

- A reported count is never above the true one, so no value is reported that does not occur more than δ times.
- A value that occurs more than δ times may be missing, and a count may be too low: by what it occurs in
  sub-windows in which it is not on the list.

The state of rows of several sub-windows is the union of their counts and lists, so states can be added and
subtracted. Its keys are

    (OPEN, sub-window, value)    a count in a sub-window that is not over
    (LISTED, value)              the sum of what the lists of closed sub-windows say
    (THRESHOLD,)                 the sum of their δᵢ

>>> top = Frequent(2)
>>> rows = [(0, "a"), (0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "a"), (1, "c"), (1, "c"), (1, "c")]
>>> state = top.fold(top.lift((value,), (number,)) for number, value in rows)
>>> top.lower(state)
(('a', 4),)
>>> top.closed(state) == ((THRESHOLD, 3), ((LISTED, 'a'), 4), ((LISTED, 'b'), 1), ((LISTED, 'c'), 3))
True
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from windrow.algebra.aggregates.base import Differential, Gray, Size, Types, refuse_nested, whole_of
from windrow.algebra.aggregates.multiset import Counting, Counts, Multiset, counted, ranked
from windrow.algebra.aggregates.order import sortable
from windrow.algebra.types import DataType

#: in the order of their keys
THRESHOLD, LISTED, OPEN = (0,), 1, 2


class ListedCounts(Counting):
    """An aggregate of the most frequent values of each sub-window that is over."""

    size = Size.LISTS
    differential = Differential.FULL
    gray = Gray.ALGEBRAIC
    #: how many counts are kept of a sub-window that is over
    capacity: int

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Multiset:
        """The first part of `order` is the number of the row's sub-window."""
        if args[0] is None:
            return ()
        return (((OPEN, order[0] if order else 0, sortable(args[0])), 1),)

    def closed(self, state: Multiset) -> Multiset:
        """The state after all sub-windows it has rows of are over: of each, `capacity` counts are kept."""
        return tuple(sorted(with_lists(dict(state), self.capacity).items()))

    def _result_type(self, types: Types) -> DataType:
        refuse_nested(self.name, types[0])
        return counted(types)


class Frequent(ListedCounts):
    """An array of (value, count), the most frequent first, ties by value; empty if none is certain."""

    name = "FREQUENT"
    parameters = ("k",)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        (k,) = self.params
        self.k = self.capacity = whole_of(self.name, k, "k")
        self.error_bound = (
            f"only values above the sum of the {_ordinal(self.k)} highest counts of all panes; such a value"
            " may be missing, and its count too low, never too high"
        )

    def of_counts(self, counts: Counts) -> Multiset:
        kept = with_lists(counts, self.k)
        threshold = kept.pop(THRESHOLD, 0)
        return ranked({value: count for (_, value), count in kept.items() if count > threshold})


def with_lists(counts: Counts, k: int) -> Counts:
    """Counts of open sub-windows as what is kept of closed ones."""
    kept = {key: count for key, count in counts.items() if key[0] != OPEN}
    still_open = sorted((key[1], -count, key[2]) for key, count in counts.items() if key[0] == OPEN)
    for _, group in groupby(still_open, key=lambda entry: entry[0]):
        for place, (_, count, value) in enumerate(group, start=1):
            if place > k:
                break
            kept[(LISTED, value)] = kept.get((LISTED, value), 0) - count
            if place == k:
                kept[THRESHOLD] = kept.get(THRESHOLD, 0) - count
    return kept


def _ordinal(k: int) -> str:
    """A number as an ordinal.

    >>> [_ordinal(k) for k in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = "th" if 10 < k % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(k % 10, "th")
    return f"{k}{ending}"
