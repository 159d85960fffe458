"""What sketches are given: errors, fractions, whole numbers and types, checked."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError


def error_of(name: str, given: Any, least: float) -> float:
    """A relative error from `least` to below 1.

    >>> error_of("APPROX_QUANTILE", Decimal("0.02"), 0.001)
    0.02
    """
    is_number = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
    if not is_number or not least <= given < 1:
        raise QueryError(
            f"no {name} with an error of {_shown(given)}",
            code="bad-aggregate",
            hint=f"the error is a number from {least:g} to below 1",
        )
    return float(given)


def fraction_of(name: str, given: Any) -> float:
    """A fraction from 0 to 1."""
    is_number = isinstance(given, int | float | Decimal) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= 1:
        raise QueryError(
            f"no {name} at {_shown(given)}",
            code="bad-aggregate",
            hint="the fraction is a number from 0 to 1",
        )
    return float(given)


def whole_of(name: str, given: Any, what: str, least: int = 1) -> int:
    """A whole number from `least` on."""
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise QueryError(
            f"no {name} with {what} = {_shown(given)}",
            code="bad-aggregate",
            hint=f"{what} is a whole number from {least} on",
        )
    return given


def refuse_nested(name: str, kind: DataType) -> None:
    """Arrays and structs have no hash and no order that would mean anything."""
    if kind.kind in (Kind.ARRAY, Kind.STRUCT):
        raise QueryError(
            f"{name} of {kind} has no meaning", code="bad-argument-type", hint="take one of its parts"
        )


def _shown(given: Any) -> str:
    return str(given) if isinstance(given, Decimal) else repr(given)
