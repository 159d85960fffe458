"""MIN, MAX, ANY_VALUE, MIN_BY and MAX_BY: the end of the values' order, in which NaN is the greatest number.

ANY_VALUE may return any value it saw; so that answers can be compared, it returns the least.

>>> greatest = Max()
>>> greatest.lower(greatest.fold(map(greatest.lift, [(1.0,), (float("nan"),), (None,)])))
nan
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import ChosenState, Gray
from windrow.algebra.aggregates.order import restored, sortable


class Min(ChosenState):
    """The state is the least value, made sortable."""

    name = "MIN"
    duplicate_insensitive = True
    choose = staticmethod(min)

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Any:
        return None if args[0] is None else sortable(args[0])

    def lower(self, state: Any) -> Any:
        return restored(state)


class Max(Min):
    """The state is the greatest value, made sortable."""

    name = "MAX"
    choose = staticmethod(max)


class AnyValue(Min):
    """The least value, because an answer must not depend on the order of arrival."""

    name = "ANY_VALUE"


Pair = tuple[Any, Any] | None


class OfOneRow(ChosenState):
    """A value of the row at one end of an order. The state is (place, value), both sortable."""

    duplicate_insensitive = True
    gray = Gray.ALGEBRAIC

    def lower(self, state: Pair) -> Any:
        return None if state is None else restored(state[1])


class MinBy(OfOneRow):
    """MIN_BY(x, y): the x of the row with the least y, NULL included, as in Spark.

    Rows in which y is NULL are ignored. Of several with the same y, MAX_BY takes the greatest x and MIN_BY
    the least, NULL being less than any value, so that an answer does not depend on the order of arrival.

    >>> best = MaxBy()
    >>> best.lower(best.fold(map(best.lift, [("pen", 3), ("cup", 7), ("hat", None)])))
    'cup'
    """

    name = "MIN_BY"
    arity = (2, 2)
    choose = staticmethod(min)

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Pair:
        value, by = args
        return None if by is None else (sortable(by), sortable(value))


class MaxBy(MinBy):
    """The same with the greatest y."""

    name = "MAX_BY"
    choose = staticmethod(max)
