"""Arithmetic. Integers and decimals are computed exactly, then made to fit the result's type."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from windrow.algebra.functions.arithmetic import bounded
from windrow.algebra.functions.values.base import Strict, Value, forgiving, plain
from windrow.algebra.functions.values.numbers import (
    EXACT,
    fit_result,
    half_up,
    long,
    one_nan,
    rounded,
    zero_division,
)
from windrow.algebra.types import INTEGER_BITS, DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Call

# ------------------------------------------------------------ bits
#
# Bits of integers in two's complement.


def wrapped(value: int, bits: int) -> int:
    """The value's lowest bits, read as a signed integer.

    >>> wrapped(130, 8)
    -126
    """
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _shift_left(call: Call) -> Callable[..., Value]:
    bits = INTEGER_BITS[call.type.kind]
    return lambda value, distance: wrapped(value << distance % bits, bits)


def _shift_right(call: Call) -> Callable[..., Value]:
    bits = INTEGER_BITS[call.type.kind]
    return lambda value, distance: value >> distance % bits


BITS: dict[str, Strict] = {
    "&": plain(lambda a, b: a & b),
    "|": plain(lambda a, b: a | b),
    "^": plain(lambda a, b: a ^ b),
    "~": plain(lambda a: ~a),
    "shiftleft": _shift_left,
    "shiftright": _shift_right,
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": plain(lambda a: (a & (1 << 64) - 1).bit_count()),
}


# ------------------------------------------------------------ arithmetic


_DECIMAL_QUOTIENT_SCALE = 39


def _is_span(kind: DataType) -> bool:
    return kind.kind in (Kind.INTERVAL, Kind.TIMESTAMP)


def _ring(exact: Callable[..., Value], decimal: Callable[..., Value], try_form: str) -> Strict:
    """Addition, subtraction or multiplication of numbers; of times and intervals as BIGINTs."""

    def build(call: Call) -> Callable[..., Value]:
        if _is_span(call.type):
            return lambda a, b: long(exact(a, b), "the time", try_form)
        fit = fit_result(call.type, try_form)
        operation = decimal if call.type.kind is Kind.DECIMAL else exact
        return lambda a, b: fit(operation(a, b))

    return build


def scaled(a: int, b: Value) -> int:
    """An interval times a number, to the nearest microsecond."""
    if isinstance(b, float):
        return half_up(a * b)
    if isinstance(b, Decimal):
        return long(int(rounded(EXACT.multiply(Decimal(a), b), 0)))
    return long(a * b, "the interval", "try_multiply")


def _shared(a: int, b: Value) -> int:
    """An interval divided by a number, to the nearest microsecond, ties away from zero."""
    if b == 0:
        raise zero_division("try_divide")
    if isinstance(b, float):
        return half_up(a / b)
    return long(int(rounded(EXACT.divide(Decimal(a), Decimal(b)), 0)), "the interval", "try_divide")


def _multiply(call: Call) -> Callable[..., Value]:
    return scaled if call.type.kind is Kind.INTERVAL else _PRODUCT(call)


def _divide(call: Call) -> Callable[..., Value]:
    if call.type.kind is Kind.INTERVAL:
        return _shared
    if call.type.kind is Kind.DOUBLE:
        return _quotient
    fit = fit_result(call.type, "try_divide")

    def divide(a: Decimal, b: Decimal) -> Value:
        if not b:
            raise zero_division("try_divide")
        return fit(rounded(EXACT.divide(a, b), _DECIMAL_QUOTIENT_SCALE))

    return divide


def _quotient(a: float, b: float) -> float:
    if b == 0:
        raise zero_division("try_divide")
    return one_nan(a / b)


def _whole_quotient(call: Call) -> Callable[..., Value]:
    left, right = (arg.type for arg in call.args)
    if left.kind is Kind.DECIMAL:
        return _decimal_whole_quotient(bounded(max(left.precision - left.scale + right.scale, 1), 0))

    def divide(a: int, b: int) -> int:
        if not b:
            raise zero_division("try_divide")
        size = abs(a) // abs(b)
        return long(size if (a < 0) == (b < 0) else -size)

    return divide


def _decimal_whole_quotient(kind: DataType) -> Callable[..., Value]:
    fit = fit_result(kind)

    def divide(a: Decimal, b: Decimal) -> int:
        if not b:
            raise zero_division("try_divide")
        # Of what fits a decimal but no BIGINT, Spark keeps the lowest 64 bits.
        return wrapped(int(cast("Decimal", fit(EXACT.divide_int(a, b)))), 64)

    return divide


def _modulo(a: Value, b: Value) -> Value:
    """The remainder signed as the dividend, in every type."""
    if not b:
        raise zero_division("try_mod")
    if isinstance(a, float):
        return math.fmod(a, b) if math.isfinite(a) else math.nan
    if isinstance(a, Decimal):
        return EXACT.remainder(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _remainder(call: Call) -> Callable[..., Value]:
    fit = fit_result(call.type, "try_mod")
    return lambda a, b: fit(_modulo(a, b))


def _positive_modulo(call: Call) -> Callable[..., Value]:
    fit = fit_result(call.type)
    bits = max(32, INTEGER_BITS.get(call.type.kind, 0))

    def pmod(a: Value, b: Value) -> Value:
        rest = _modulo(a, b)
        if rest < 0:
            # Java's sum of the two may wrap around, and Spark lets it.
            rest = _modulo(wrapped(rest + b, bits) if isinstance(rest, int) else rest + b, b)
        return fit(rest)

    return pmod


def _negate(call: Call) -> Callable[..., Value]:
    if call.type.kind is Kind.INTERVAL:
        return lambda a: long(-a, "the interval")
    if call.type.is_fractional:
        return lambda a: one_nan(-a)
    fit = fit_result(call.type)
    return lambda a: fit(-a) if isinstance(a, int) else fit(a.copy_negate())


_SUM = _ring(lambda a, b: a + b, EXACT.add, "try_add")
_DIFFERENCE = _ring(lambda a, b: a - b, EXACT.subtract, "try_subtract")
_PRODUCT = _ring(lambda a, b: a * b, EXACT.multiply, "try_multiply")

FUNCTIONS: dict[str, Strict] = {
    "+": _SUM,
    "-": _DIFFERENCE,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "pmod": _positive_modulo,
    "neg": _negate,
    "try_add": forgiving(_SUM),
    "try_subtract": forgiving(_DIFFERENCE),
    "try_multiply": forgiving(_multiply),
    "try_divide": forgiving(_divide),
    "try_mod": forgiving(_remainder),
}
