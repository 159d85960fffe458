"""COUNT(*), COUNT(x), COUNT(x, y): rows, or rows in which no argument is NULL.

>>> count = Count()
>>> count.lower(count.fold([count.lift(("a",)), count.lift((None,))]))
1
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Differential, Types
from windrow.algebra.types import BIGINT, DataType


class Count(AggregateFunction):
    """The state is the count."""

    name = "COUNT"
    arity: tuple[int, int | None] = (0, None)
    differential = Differential.FULL

    def identity(self) -> int:
        return 0

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> int:
        return 0 if None in args else 1

    def combine(self, a: int, b: int) -> int:
        return a + b

    def subtract(self, a: int, b: int) -> int:
        return a - b

    def lower(self, state: int) -> int:
        return state

    def _result_type(self, types: Types) -> DataType:
        return BIGINT

    def invertible_for(self, types: Types) -> bool:
        return True
