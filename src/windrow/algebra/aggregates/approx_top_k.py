"""APPROX_TOP_K(x, k [, capacity]): the k most frequent values, from those of each sub-window.

While a sub-window is open, its values are counted. When it is over, only the `capacity` most frequent values
(ties by value) and their counts are kept, and over a window these counts are added up. Of a sub-window with n
values, one that is not kept occurs at most n/(capacity + 1) times, since `capacity` others occur as often; so
over the window

- a count is never too high, and too low by at most n/(capacity + 1), n being the number of values in it;
- a value that occurs more often than that is never missed;
- all is exact if no sub-window has more than `capacity` different values.

Sub-windows are those of the query's window, so an answer depends neither on the order of arrival nor on how
rows are cut into steps, as it would with summaries that are pruned as rows come (Misra and Gries, space
saving). Where a window has no sub-windows, all its rows are kept anyway, and it is TOP_K.

>>> top = ApproxTopK(1, 2)
>>> rows = [(0, "a"), (0, "a"), (0, "b"), (0, "b"), (0, "c"), (1, "a"), (1, "c"), (1, "c")]
>>> state = top.fold(top.lift((value,), (number,)) for number, value in rows)
>>> top.lower(state), top.lower(top.closed(state))
((('a', 3),), (('a', 3),))
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates import base, frequent, multiset


class ApproxTopK(frequent.ListedCounts):
    """An array of (value, count), empty over no values. The state is that of FREQUENT with longer lists."""

    name = "APPROX_TOP_K"
    parameters = ("k",)
    options = (("capacity", 10_000),)

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        k, capacity = self.params
        self.k = base.whole_of(self.name, k, "k")
        self.capacity = base.whole_of(self.name, capacity, "capacity", least=self.k)
        self.error_bound = (
            f"counts never too high, too low by at most {100 / (self.capacity + 1):.2g} % of the number of"
            f" values; exact up to {self.capacity} different values per pane and group, of which no more are"
            " kept once it is over"
        )

    def of_counts(self, counts: multiset.Counts) -> multiset.Multiset:
        kept = frequent.with_lists(counts, self.capacity)
        kept.pop(frequent.THRESHOLD, 0)
        return multiset.ranked({value: count for (_, value), count in kept.items()})[: self.k]
