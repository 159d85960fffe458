"""Exact sums, Spark's rounding and overflow.

Integers and decimals are added without rounding, so that sums depend on neither order nor grouping
and can be subtracted again; whether a sum fits its type is asked only when a value is wanted.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation
from typing import Any

from windrow.algebra.aggregates.base import Types
from windrow.algebra.types import BIGINT, INTERVAL, MAX_PRECISION, DataType, Kind
from windrow.errors import DataError, QueryError

#: wide enough for sums of squares of DECIMALs over any number of rows; fails rather than rounds
EXACT = Context(prec=400, traps=[Inexact, InvalidOperation])
#: the same width, for what cannot be exact
WIDE = Context(prec=400, rounding=ROUND_HALF_UP, traps=[InvalidOperation])


def is_exact(types: Types) -> bool:
    """Are all arguments of types whose sums have no rounding?"""
    return bool(types) and all(t.is_integer or t.kind in (Kind.DECIMAL, Kind.INTERVAL) for t in types)


def add(a: Any, b: Any) -> Any:
    """a + b, without the rounding of the current decimal context."""
    return EXACT.add(a, b) if isinstance(b, Decimal) or isinstance(a, Decimal) else a + b


def minus(a: Any, b: Any) -> Any:
    """a − b, without the rounding of the current decimal context."""
    return EXACT.subtract(a, b) if isinstance(b, Decimal) or isinstance(a, Decimal) else a - b


def half_up(total: int, count: int) -> int:
    """The quotient rounded to the nearest integer, halves away from zero.

    >>> half_up(5, 2), half_up(-5, 2), half_up(4, 3)
    (3, -3, 1)
    """
    size = (2 * abs(total) + count) // (2 * count)
    return size if total >= 0 else -size


def checked(value: Any, result: DataType, what: str) -> Any:
    """`value` as one of type `result`; DataError where it does not fit."""
    if result.kind is Kind.DOUBLE:
        return float(value) if value == value else math.nan
    if result.kind is Kind.DECIMAL:
        fitted = Decimal(value).quantize(Decimal(1).scaleb(-result.scale), context=WIDE)
        fits = not fitted or fitted.adjusted() < result.precision - result.scale
    else:
        fitted, (least, greatest) = value, BIGINT.bounds
        fits = least <= value <= greatest
    if not fits:
        raise DataError(
            f"{what} is {value:.6g}, which does not fit {result}",
            code="arithmetic-overflow",
            hint=f"cast the argument to DOUBLE, or to a DECIMAL of up to {MAX_PRECISION} digits",
        )
    return fitted


def numeric(name: str, types: Types, *, intervals: bool = False) -> DataType:
    """The one argument type, which must be a number (or NULL, or where that is allowed an INTERVAL)."""
    (only,) = types
    if only.is_numeric or only.kind is Kind.NULL or (intervals and only == INTERVAL):
        return only
    hint = "cast it to a number first" if only.kind in (Kind.STRING, Kind.BOOLEAN) else "it takes numbers"
    raise QueryError(f"{name} of {only} has no meaning", code="bad-argument-type", hint=hint)
