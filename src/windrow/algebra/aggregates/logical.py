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

import operator
from typing import Any

from windrow.algebra.aggregates import base, extremum
from windrow.algebra.types import BOOLEAN, DataType, Kind
from windrow.errors import QueryError


class BitOr(base.ChosenState):
    """The bits set in any value. The state is the value so far."""

    name = "BIT_OR"
    duplicate_insensitive = True
    choose = staticmethod(operator.or_)

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> int | None:
        value: int | None = args[0]
        return value

    def lower(self, state: int | None) -> int | None:
        return state

    def _result_type(self, types: base.Types) -> DataType:
        return base.whole_number(self.name, types, "CAST the argument to BIGINT")


class BitAnd(BitOr):
    """The bits set in all values."""

    name = "BIT_AND"
    choose = staticmethod(operator.and_)


class BitXor(BitOr):
    """The bits set in an odd number of values."""

    name = "BIT_XOR"
    duplicate_insensitive = False
    choose = staticmethod(operator.xor)


class BoolAnd(extremum.Min):
    """NULL over no values."""

    name = "BOOL_AND"

    def _result_type(self, types: base.Types) -> DataType:
        if types[0].kind not in (Kind.BOOLEAN, Kind.NULL):
            raise QueryError(
                f"{self.name} takes a condition, not {types[0]}",
                code="bad-argument-type",
                hint="compare the value with something, as in price > 0",
            )
        return BOOLEAN


class BoolOr(extremum.Max):
    """NULL over no values."""

    name = "BOOL_OR"
    _result_type = BoolAnd._result_type
