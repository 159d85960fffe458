"""BIT_AND, BIT_OR, BIT_XOR of whole numbers, bit by bit; NULL is ignored.

>>> union = BitOr()
>>> union.lower(union.fold(map(union.lift, [(5,), (None,), (8,)])))
13
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates.base import AggregateFunction
from windrow.algebra.types import DataType
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Types


class BitOr(AggregateFunction):
    """The bits set in any value. The state is the value so far; None for no value."""

    name = "BIT_OR"
    duplicate_insensitive = True

    def identity(self) -> None:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> int | None:
        value: int | None = args[0]
        return value

    def combine(self, a: int | None, b: int | None) -> int | None:
        if a is None or b is None:
            return b if a is None else a
        return self._both(a, b)

    def lower(self, state: int | None) -> int | None:
        return state

    def _both(self, a: int, b: int) -> int:
        return a | b

    def _result_type(self, types: Types) -> DataType:
        if not types[0].is_integer:
            raise QueryError(
                f"{self.name} takes whole numbers, not {types[0]}",
                code="bad-argument-type",
                hint="CAST the argument to BIGINT",
            )
        return types[0]


class BitAnd(BitOr):
    """The bits set in all values."""

    name = "BIT_AND"

    def _both(self, a: int, b: int) -> int:
        return a & b


class BitXor(BitOr):
    """The bits set in an odd number of values."""

    name = "BIT_XOR"
    duplicate_insensitive = False

    def _both(self, a: int, b: int) -> int:
        return a ^ b
