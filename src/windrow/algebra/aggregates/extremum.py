"""MIN, MAX and ANY_VALUE: the end of the values' order, in which NaN is the greatest number.

ANY_VALUE may return any value it saw; so that answers can be compared, it returns the least.

>>> greatest = Max()
>>> greatest.lower(greatest.fold(map(greatest.lift, [(1.0,), (float("nan"),), (None,)])))
nan
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Types
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import DataType


class Min(AggregateFunction):
    """The state is the least value, made sortable; None for no value."""

    name = "MIN"
    duplicate_insensitive = True

    def identity(self) -> None:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Any:
        return None if args[0] is None else sortable(args[0])

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if b < a else a

    def lower(self, state: Any) -> Any:
        return restored(state)

    def _result_type(self, types: Types) -> DataType:
        return types[0]


class Max(Min):
    """The state is the greatest value, made sortable; None for no value."""

    name = "MAX"

    def combine(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return b if a is None else a
        return b if b > a else a


class AnyValue(Min):
    """The least value, because an answer must not depend on the order of arrival."""

    name = "ANY_VALUE"
