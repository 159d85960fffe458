"""User-defined aggregates without `merge`: all rows are kept, and folded anew for each answer, in row order.

The order is that of FIRST and LAST: by the windowing attribute, then by all columns. This costs a call of
`step` for each row of each window, where `merge` costs one for each row and one for each pane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.multiset import Counting, Counts
from windrow.algebra.aggregates.ordering import restored, sortable
from windrow.algebra.aggregates.user_base import UserAggregate

if TYPE_CHECKING:
    from windrow.algebra.aggregates.multiset import Multiset


class FoldedAggregate(UserAggregate, Counting):
    """The state counts (place in the row order, arguments). NULL arguments are passed on."""

    ordered = True

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Multiset:
        return (((sortable(order), sortable(args)), 1),)

    def of_counts(self, counts: Counts) -> Any:
        rows = (restored(args) for (_, args), count in sorted(counts.items()) for _ in range(count))
        return self.definition.folded(rows)
