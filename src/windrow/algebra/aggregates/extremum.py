"""MIN, MAX, ANY_VALUE, MIN_BY and MAX_BY: the end of the values' order, in which NaN is the greatest number.

ANY_VALUE may return any value it saw; so that answers can be compared, it returns the least.

>>> greatest = Max()
>>> greatest.lower(greatest.fold(map(greatest.lift, [(1.0,), (float("nan"),), (None,)])))
nan
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Gray, Types
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import DataType


def least(a: Any, b: Any) -> Any:
    """The less of two states, of which None is that of no value."""
    if a is None or b is None:
        return b if a is None else a
    return b if b < a else a


def greatest(a: Any, b: Any) -> Any:
    """The greater of two states, of which None is that of no value."""
    if a is None or b is None:
        return b if a is None else a
    return b if b > a else a


class Min(AggregateFunction):
    """The state is the least value, made sortable; None for no value."""

    name = "MIN"
    duplicate_insensitive = True

    def identity(self) -> None:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Any:
        return None if args[0] is None else sortable(args[0])

    def combine(self, a: Any, b: Any) -> Any:
        return least(a, b)

    def lower(self, state: Any) -> Any:
        return restored(state)

    def _result_type(self, types: Types) -> DataType:
        return types[0]


class Max(Min):
    """The state is the greatest value, made sortable; None for no value."""

    name = "MAX"

    def combine(self, a: Any, b: Any) -> Any:
        return greatest(a, b)


class AnyValue(Min):
    """The least value, because an answer must not depend on the order of arrival."""

    name = "ANY_VALUE"


Pair = tuple[Any, Any] | None


class MinBy(AggregateFunction):
    """MIN_BY(x, y): the x of the row with the least y, NULL included, as in Spark.

    The state is (y, x), both sortable, of the row; None for no rows. Rows in which y is NULL are ignored. Of
    several with the same y, MAX_BY takes the greatest x and MIN_BY the least, NULL being less than any value,
    so that an answer does not depend on the order of arrival.

    >>> best = MaxBy()
    >>> best.lower(best.fold(map(best.lift, [("pen", 3), ("cup", 7), ("hat", None)])))
    'cup'
    """

    name = "MIN_BY"
    arity = (2, 2)
    duplicate_insensitive = True
    gray = Gray.ALGEBRAIC

    def identity(self) -> Pair:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Pair:
        value, by = args
        return None if by is None else (sortable(by), sortable(value))

    def combine(self, a: Any, b: Any) -> Any:
        return least(a, b)

    def lower(self, state: Pair) -> Any:
        return None if state is None else restored(state[1])

    def _result_type(self, types: Types) -> DataType:
        return types[0]


class MaxBy(MinBy):
    """The state is (y, x), both sortable, of the row; None for no rows."""

    name = "MAX_BY"

    def combine(self, a: Any, b: Any) -> Any:
        return greatest(a, b)
