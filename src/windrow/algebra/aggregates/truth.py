"""BOOL_AND (EVERY) and BOOL_OR (SOME): whether a condition held for all rows, or for any; NULL is ignored.

FALSE comes before TRUE, so these are MIN and MAX.

>>> every = BoolAnd()
>>> every.lower(every.fold(map(every.lift, [(True,), (None,), (False,)])))
False
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.aggregates.extremum import Max, Min
from windrow.algebra.types import BOOLEAN, DataType, Kind
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Types


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
