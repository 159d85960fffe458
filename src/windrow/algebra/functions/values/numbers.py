"""Spark's numbers on Python's: bounded integers, 32-bit floats, decimals of fixed digits, Java's rounding."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation, Overflow

from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError

#: wide enough that products and sums of 38 digits are exact
EXACT = Context(
    prec=400, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999, traps=[InvalidOperation, Overflow]
)
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


def overflow(what: str, try_form: str | None = None) -> DataError:
    """The error of a result that its type cannot hold."""
    hint = (
        f"{try_form} gives NULL instead; a wider type holds it" if try_form else "cast to a wider type first"
    )
    return DataError(f"{what} is out of range", code="arithmetic-overflow", hint=hint)


def zero_division(try_form: str) -> DataError:
    """The error of a division by zero."""
    return DataError(
        "division by zero", code="divide-by-zero", hint=f"{try_form} gives NULL instead, or use nullif(…, 0)"
    )


def long(value: int, what: str = "the result", try_form: str | None = None) -> int:
    """A BIGINT, checked."""
    if LONG_MIN <= value <= LONG_MAX:
        return value
    raise overflow(f"{what} {value}", try_form)


def single(value: float) -> float:
    """The nearest 32-bit float.

    >>> single(0.1), single(1e300)
    (0.10000000149011612, inf)
    """
    try:
        return one_nan(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def one_nan(value: float) -> float:
    """The value, or the one NaN object, which is identical, hence equal, to itself."""
    return math.nan if value != value else value


def rounded(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    """The decimal with `scale` digits after the point.

    >>> rounded(Decimal("2.345"), 2)
    Decimal('2.35')
    """
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT)


def fitted(value: Decimal, kind: DataType) -> Decimal | None:
    """The value as DECIMAL(precision, scale), or None where it has too many digits."""
    if value.adjusted() > 2 * kind.precision:
        return None
    result = rounded(value, kind.scale)
    return result if result == 0 or result.adjusted() < kind.precision - kind.scale else None


def into(kind: DataType, try_form: str | None = None) -> Callable[[Decimal], Decimal]:
    """A function that makes a decimal fit its type, or fails."""

    def fit(value: Decimal) -> Decimal:
        result = fitted(value, kind)
        if result is None:
            raise overflow(f"{value:f} as {kind}", try_form)
        return result if result else result.copy_abs()

    return fit


def bounded_integer(kind: DataType, try_form: str | None = None) -> Callable[[int], int]:
    """A function that keeps an integer in its type's range, or fails."""
    low, high = kind.bounds

    def check(value: int) -> int:
        if low <= value <= high:
            return value
        raise overflow(f"{value} as {kind}", try_form)

    return check


def fit_result(kind: DataType, try_form: str | None = None) -> Callable[..., object]:
    """What turns an exact result into a value of its type."""
    if kind.is_integer:
        return bounded_integer(kind, try_form)
    if kind.kind is Kind.DECIMAL:
        return into(kind, try_form)
    return single if kind.kind is Kind.FLOAT else one_nan


def saturated(value: float) -> int:
    """Java's `(long)` of a double: truncated, kept in range, 0 for NaN."""
    return 0 if value != value else int(max(LONG_MIN, min(LONG_MAX, value)))


def half_up(value: float) -> int:
    """A double to the nearest integer, ties away from zero; fails if that is no BIGINT."""
    if not math.isfinite(value):
        raise overflow(str(value))
    return long(int(Decimal(value).to_integral_value(ROUND_HALF_UP)))


def truncated(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_DOWN))
