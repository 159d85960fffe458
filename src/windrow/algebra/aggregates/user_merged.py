"""User-defined aggregates with `merge`: the state of each pane is kept, and states are merged.

Which rows come first must not matter to the value, as for every aggregate that has no order: rows reach a
state in the order of their arrival. A state is kept as bytes, so that code which changes it in place changes
a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.base import Differential, Gray
from windrow.algebra.aggregates.user_base import UserAggregate

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Types

#: the number of rows, and the state of the user's code; none for no rows
Kept = tuple[int, bytes]


class MergedAggregate(UserAggregate):
    """The state is the user's, and how many rows it is of. NULL arguments are passed on."""

    differential = Differential.FULL
    gray = Gray.ALGEBRAIC

    def identity(self) -> Kept:
        return 0, b""

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Kept:
        own = self.definition
        return 1, own.stored(own.stepped(own.started(), [args]), "step")

    def combine(self, a: Kept, b: Kept) -> Kept:
        if not a[0] or not b[0]:
            return a if a[0] else b
        return a[0] + b[0], self.definition.merged(a[1], b[1])

    def subtract(self, a: Kept, b: Kept) -> Kept:
        left = a[0] - b[0]
        if not b[0] or not left:
            return a if left else self.identity()
        return left, self.definition.without(a[1], b[1])

    def lower(self, state: Kept) -> Any:
        own = self.definition
        return own.result(own.loaded(state[1]) if state[0] else own.started())

    def invertible_for(self, types: Types) -> bool:
        return self.definition.inverse is not None
