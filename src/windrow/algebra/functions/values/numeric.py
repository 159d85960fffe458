"""Functions of numbers: Java's answers where Python's `math` would raise."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.functions.values.casts import shortest, shortest_single
from windrow.algebra.functions.values.numbers import (
    fit_result,
    long,
    one_nan,
    overflow,
    rounded,
    saturated,
)
from windrow.algebra.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Call

_MOST_DIGITS = 400


def real(function: Callable[[float], float]) -> Strict:
    """A function of doubles: NaN where it has no value, infinite where it has no bound."""

    def safe(value: float) -> float:
        try:
            return one_nan(function(value))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return plain(safe)


def _odd(function: Callable[[float], float]) -> Strict:
    """The same for a function that grows to both sides."""

    def safe(value: float) -> float:
        try:
            return one_nan(function(value))
        except OverflowError:
            return math.copysign(math.inf, value)

    return plain(safe)


def _logarithm(function: Callable[[float], float], above: float = 0.0) -> Strict:
    return plain(lambda x: None if x <= above else one_nan(function(x)))


def _log(call: Call) -> Callable[..., Value]:
    if len(call.args) == 1:
        return lambda x: None if x <= 0 else one_nan(math.log(x))
    return _log_to_base


def _log_to_base(base: float, x: float) -> float | None:
    if base <= 0 or x <= 0:
        return None
    above, below = math.log(x), math.log(base)
    if below == 0:
        return math.nan if above == 0 or above != above else math.copysign(math.inf, above)
    return one_nan(above / below)


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
        return one_nan(math.pow(base, exponent))
    except ValueError:
        if base != 0:
            return math.nan
        return -math.inf if math.copysign(1, base) < 0 and exponent % 2 == 1 else math.inf
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def _sign(x: float) -> float:
    return one_nan(math.copysign(1.0, x)) if x and x == x else x


def _abs(call: Call) -> Callable[..., Value]:
    if call.type.kind is Kind.INTERVAL:
        return lambda a: long(abs(a), "the interval")
    fit = fit_result(call.type)
    return lambda a: fit(abs(a)) if isinstance(a, int) else a.copy_abs() if isinstance(a, Decimal) else abs(a)


def _whole(direction: str, whole: Callable[[float], int]) -> Strict:
    def build(call: Call) -> Callable[..., Value]:
        if call.type.kind is Kind.DECIMAL:
            fit = fit_result(call.type)
            return lambda a: fit(rounded(a, 0, direction))
        if call.args[0].type.is_integer:
            return lambda a: a
        return lambda a: _as_long(a, whole)

    return build


def _as_long(value: float, whole: Callable[[float], int]) -> int:
    if not math.isfinite(value):
        if value == value:
            raise overflow(str(value))
        return saturated(value)
    return long(whole(value))


def _round(direction: str) -> Strict:
    def build(call: Call) -> Callable[..., Value]:
        kind = call.type
        fit = fit_result(kind)
        if kind.is_integer:
            return lambda a, n: a if n >= 0 else fit(int(_cut(Decimal(a), n, direction)))
        if kind.kind is Kind.DECIMAL:
            return lambda a, n: fit(_cut(a, n, direction))
        digits = shortest_single if kind.kind is Kind.FLOAT else shortest
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
    return rounded(value, digits, direction)


FUNCTIONS: dict[str, Strict] = {
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
    "hypot": plain(lambda a, b: one_nan(math.hypot(a, b))),
    "sin": real(math.sin),
    "cos": real(math.cos),
    "tan": real(math.tan),
    "asin": real(math.asin),
    "acos": real(math.acos),
    "atan": real(math.atan),
    "atan2": plain(lambda y, x: one_nan(math.atan2(y + 0.0, x + 0.0))),
    "sinh": _odd(math.sinh),
    "cosh": real(math.cosh),
    "tanh": real(math.tanh),
    "degrees": real(math.degrees),
    "radians": real(math.radians),
    "pi": plain(lambda: math.pi),
    "e": plain(lambda: math.e),
}
