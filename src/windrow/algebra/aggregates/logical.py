"""BIT_AND, BIT_OR, BIT_XOR of whole numbers, bit by bit; NULL is ignored.

>>> union = BitOr()
>>> union.lower(union.fold(map(union.lift, [(5,), (None,), (8,)])))
13

BOOL_AND (EVERY) and BOOL_OR (SOME): whether a condition held for all rows, or for any; NULL is ignored.

FALSE comes before TRUE, so these are MIN and MAX.

>>> every = BoolAnd()
>>> every.lower(every.fold(map(every.lift, [(True,), (None,), (False,)])))
False
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Types
from windrow.algebra.aggregates.extremum import Max, Min
from windrow.algebra.types import BOOLEAN, DataType, Kind
from windrow.errors import QueryError


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


class BoolAnd(Min):
    """NULL over no values."""

    name = "BOOL_AND"

    def _result_type(self, types: Types) -> DataType:
        return _condition(self.name, types)


class BoolOr(Max):
    """NULL over no values."""

    name = "BOOL_OR"

    def _result_type(self, types: Types) -> DataType:
        return _condition(self.name, types)


def _condition(name: str, types: Types) -> DataType:
    if types[0].kind not in (Kind.BOOLEAN, Kind.NULL):
        raise QueryError(
            f"{name} takes a condition, not {types[0]}",
            code="bad-argument-type",
            hint="compare the value with something, as in price > 0",
        )
    return BOOLEAN
