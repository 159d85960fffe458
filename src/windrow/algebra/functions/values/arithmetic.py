"""Arithmetic. Integers and decimals are computed exactly, then made to fit the result's type.

Functions of numbers: Java's answers where Python's `math` would raise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import cast

from windrow.algebra.expressions import Call
from windrow.algebra.functions.arithmetic import bounded
from windrow.algebra.functions.values import casts, numbers
from windrow.algebra.functions.values.base import Strict, Value, forgiving, plain
from windrow.algebra.types import INTEGER_BITS, DataType, Kind

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


def _ring(exact: Callable[..., Value], decimal: Callable[..., Value], try_form: str) -> Strict:
    """Addition, subtraction or multiplication of numbers; of times and intervals as BIGINTs."""

    def build(call: Call) -> Callable[..., Value]:
        if call.type.kind in (Kind.INTERVAL, Kind.TIMESTAMP):
            return lambda a, b: numbers.long(exact(a, b), "the time", try_form)
        fit = numbers.fit_result(call.type, try_form)
        operation = decimal if call.type.kind is Kind.DECIMAL else exact
        return lambda a, b: fit(operation(a, b))

    return build


def scaled(a: int, b: Value) -> int:
    """An interval times a number, to the nearest microsecond."""
    if isinstance(b, float):
        return numbers.half_up(a * b)
    if isinstance(b, Decimal):
        return numbers.long(int(numbers.rounded(numbers.EXACT.multiply(Decimal(a), b), 0)))
    return numbers.long(a * b, "the interval", "try_multiply")


def _shared(a: int, b: Value) -> int:
    """An interval divided by a number, to the nearest microsecond, ties away from zero."""
    if b == 0:
        raise numbers.zero_division("try_divide")
    if isinstance(b, float):
        return numbers.half_up(a / b)
    return numbers.long(
        int(numbers.rounded(numbers.EXACT.divide(Decimal(a), Decimal(b)), 0)), "the interval", "try_divide"
    )


def _multiply(call: Call) -> Callable[..., Value]:
    return scaled if call.type.kind is Kind.INTERVAL else _PRODUCT(call)


def _divide(call: Call) -> Callable[..., Value]:
    if call.type.kind is Kind.INTERVAL:
        return _shared
    if call.type.kind is Kind.DOUBLE:
        return _quotient
    fit = numbers.fit_result(call.type, "try_divide")

    def divide(a: Decimal, b: Decimal) -> Value:
        if not b:
            raise numbers.zero_division("try_divide")
        return fit(numbers.rounded(numbers.EXACT.divide(a, b), _DECIMAL_QUOTIENT_SCALE))

    return divide


def _quotient(a: float, b: float) -> float:
    if b == 0:
        raise numbers.zero_division("try_divide")
    return numbers.one_nan(a / b)


def _whole_quotient(call: Call) -> Callable[..., Value]:
    left, right = (arg.type for arg in call.args)
    if left.kind is Kind.DECIMAL:
        return _decimal_whole_quotient(bounded(max(left.precision - left.scale + right.scale, 1), 0))

    def divide(a: int, b: int) -> int:
        if not b:
            raise numbers.zero_division("try_divide")
        size = abs(a) // abs(b)
        return numbers.long(size if (a < 0) == (b < 0) else -size)

    return divide


def _decimal_whole_quotient(kind: DataType) -> Callable[..., Value]:
    fit = numbers.fit_result(kind)

    def divide(a: Decimal, b: Decimal) -> int:
        if not b:
            raise numbers.zero_division("try_divide")
        # Of what fits a decimal but no BIGINT, Spark keeps the lowest 64 bits.
        return wrapped(int(cast("Decimal", fit(numbers.EXACT.divide_int(a, b)))), 64)

    return divide


def _modulo(a: Value, b: Value) -> Value:
    """The remainder signed as the dividend, in every type."""
    if not b:
        raise numbers.zero_division("try_mod")
    if isinstance(a, float):
        return math.fmod(a, b) if math.isfinite(a) else math.nan
    if isinstance(a, Decimal):
        return numbers.EXACT.remainder(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _remainder(call: Call) -> Callable[..., Value]:
    fit = numbers.fit_result(call.type, "try_mod")
    return lambda a, b: fit(_modulo(a, b))


def _positive_modulo(call: Call) -> Callable[..., Value]:
    fit = numbers.fit_result(call.type)
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
        return lambda a: numbers.long(-a, "the interval")
    if call.type.is_fractional:
        return lambda a: numbers.one_nan(-a)
    fit = numbers.fit_result(call.type)
    return lambda a: fit(-a) if isinstance(a, int) else fit(a.copy_negate())


_SUM = _ring(lambda a, b: a + b, numbers.EXACT.add, "try_add")
_DIFFERENCE = _ring(lambda a, b: a - b, numbers.EXACT.subtract, "try_subtract")
_PRODUCT = _ring(lambda a, b: a * b, numbers.EXACT.multiply, "try_multiply")

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


_MOST_DIGITS = 400


def real(function: Callable[[float], float], *, odd: bool = False) -> Strict:
    """A function of doubles: NaN without a value, infinite without a bound, if `odd` to both sides."""

    def safe(value: float) -> float:
        try:
            return numbers.one_nan(function(value))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, value) if odd else math.inf

    return plain(safe)


def _logarithm(function: Callable[[float], float], above: float = 0.0) -> Strict:
    return plain(lambda x: None if x <= above else numbers.one_nan(function(x)))


def _log(call: Call) -> Callable[..., Value]:
    return _logarithm(math.log)(call) if len(call.args) == 1 else _log_to_base


def _log_to_base(base: float, x: float) -> float | None:
    if base <= 0 or x <= 0:
        return None
    above, below = math.log(x), math.log(base)
    if below == 0:
        return math.nan if above == 0 or above != above else math.copysign(math.inf, above)
    return numbers.one_nan(above / below)


def power(base: float, exponent: float) -> float:
    """Java's `pow`, which differs from C's for an infinite or missing exponent of ±1.

    >>> power(0.0, -1.0), power(1.0, math.inf)
    (inf, nan)
    """
    if exponent == 0:
        return 1.0
    if exponent != exponent or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    try:
        return numbers.one_nan(math.pow(base, exponent))
    except ValueError:
        if base != 0:
            return math.nan
        return -math.inf if math.copysign(1, base) < 0 and exponent % 2 == 1 else math.inf
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def _sign(x: float) -> float:
    return numbers.one_nan(math.copysign(1.0, x)) if x and x == x else x


def _abs(call: Call) -> Callable[..., Value]:
    if call.type.kind is Kind.INTERVAL:
        return lambda a: numbers.long(abs(a), "the interval")
    fit = numbers.fit_result(call.type)
    return lambda a: fit(abs(a)) if isinstance(a, int) else a.copy_abs() if isinstance(a, Decimal) else abs(a)


def _whole(direction: str, whole: Callable[[float], int]) -> Strict:
    def build(call: Call) -> Callable[..., Value]:
        if call.type.kind is Kind.DECIMAL:
            fit = numbers.fit_result(call.type)
            return lambda a: fit(numbers.rounded(a, 0, direction))
        if call.args[0].type.is_integer:
            return lambda a: a
        return lambda a: _as_long(a, whole)

    return build


def _as_long(value: float, whole: Callable[[float], int]) -> int:
    if not math.isfinite(value):
        if value == value:
            raise numbers.overflow(str(value))
        return numbers.saturated(value)
    return numbers.long(whole(value))


def _round(direction: str) -> Strict:
    def build(call: Call) -> Callable[..., Value]:
        kind = call.type
        fit = numbers.fit_result(kind)
        if kind.is_integer:
            return lambda a, n: a if n >= 0 else fit(int(_cut(Decimal(a), n, direction)))
        if kind.kind is Kind.DECIMAL:
            return lambda a, n: fit(_cut(a, n, direction))
        digits = casts.shortest_single if kind.kind is Kind.FLOAT else casts.shortest
        # Adding 0.0 makes a negative zero positive: there is none on the way through decimals.
        return lambda a, n: (
            fit(float(_cut(Decimal(digits(a)), n, direction)) + 0.0) if math.isfinite(a) else a
        )

    return build


def _cut(value: Decimal, digits: int, direction: str) -> Decimal:
    """Rounded to digits after the point, or before it if negative."""
    if digits >= _MOST_DIGITS or not value:
        return value
    if value.adjusted() + 1 < -digits:
        return Decimal(0)
    return numbers.rounded(value, digits, direction)


NUMERIC: dict[str, Strict] = {
    "abs": _abs,
    "sign": plain(_sign),
    "ceil": _whole(ROUND_CEILING, math.ceil),
    "floor": _whole(ROUND_FLOOR, math.floor),
    "round": _round(ROUND_HALF_UP),
    "bround": _round(ROUND_HALF_EVEN),
    "sqrt": real(math.sqrt),
    "cbrt": real(math.cbrt),
    "exp": real(math.exp),
    "expm1": real(math.expm1),
    "ln": _logarithm(math.log),
    "log": _log,
    "log10": _logarithm(math.log10),
    "log2": _logarithm(math.log2),
    "log1p": _logarithm(math.log1p, above=-1.0),
    "power": plain(power),
    "hypot": plain(lambda a, b: numbers.one_nan(math.hypot(a, b))),
    "sin": real(math.sin),
    "cos": real(math.cos),
    "tan": real(math.tan),
    "asin": real(math.asin),
    "acos": real(math.acos),
    "atan": real(math.atan),
    "atan2": plain(lambda y, x: numbers.one_nan(math.atan2(y + 0.0, x + 0.0))),
    "sinh": real(math.sinh, odd=True),
    "cosh": real(math.cosh),
    "tanh": real(math.tanh),
    "degrees": real(math.degrees),
    "radians": real(math.radians),
    "pi": plain(lambda: math.pi),
    "e": plain(lambda: math.e),
}
