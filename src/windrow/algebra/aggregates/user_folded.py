"""User-defined aggregates without `merge`: all rows are kept, and folded anew for each answer, in row order.

The order is that of FIRST and LAST: by the windowing attribute, then by all columns. This costs a call of
`step` for each row of each window, where `merge` costs one for each row and one for each pane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.in_order import InOrder
from windrow.algebra.aggregates.user_base import UserAggregate

if TYPE_CHECKING:
    from collections.abc import Iterable


class FoldedAggregate(UserAggregate, InOrder):
    """Folded by the user's code; NULL arguments are passed on."""

    def folded(self, rows: Iterable[tuple[Any, ...]]) -> Any:
        return self.definition.folded(rows)
