"""MAX_BY(x, y) and MIN_BY(x, y): the x of the row with the greatest or least y, NULL included, as in Spark.

Rows in which y is NULL are ignored. Of several with the same y, MAX_BY takes the greatest x and MIN_BY the
least, NULL being less than any value, so that an answer does not depend on the order of arrival.

>>> best = MaxBy()
>>> best.lower(best.fold(map(best.lift, [("pen", 3), ("cup", 7), ("hat", None)])))
'cup'
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Gray, Types
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import DataType

Pair = tuple[Any, Any] | None


class MinBy(AggregateFunction):
    """The state is (y, x), both sortable, of the row; None for no rows."""

    name = "MIN_BY"
    arity = (2, 2)
    duplicate_insensitive = True
    gray = Gray.ALGEBRAIC

    def identity(self) -> Pair:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Pair:
        value, by = args
        return None if by is None else (sortable(by), sortable(value))

    def combine(self, a: Pair, b: Pair) -> Pair:
        if a is None or b is None:
            return b if a is None else a
        return b if b < a else a

    def lower(self, state: Pair) -> Any:
        return None if state is None else restored(state[1])

    def _result_type(self, types: Types) -> DataType:
        return types[0]


class MaxBy(MinBy):
    """The state is (y, x), both sortable, of the row; None for no rows."""

    name = "MAX_BY"

    def combine(self, a: Pair, b: Pair) -> Pair:
        if a is None or b is None:
            return b if a is None else a
        return b if b > a else a
