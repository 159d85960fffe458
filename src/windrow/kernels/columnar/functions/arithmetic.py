"""Arithmetic and functions of numbers on columns, with Spark's ANSI rules: a result that its type cannot hold
is a failure.

Integers are computed in 64 bits, where an overflow can be seen by its signs; decimals as unscaled integers;
floats as IEEE says. Mathematics is Arrow's, which is that of the C library, as Python's is: both give the
same last bit. numpy has its own approximations, and does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, mul, sub
from typing import Any

import numpy as np
import polars as pl
import pyarrow.compute as pc

from windrow.algebra.aggregates.numbers import half_up
from windrow.algebra.expressions import Call, Literal
from windrow.algebra.functions.values import STRICT as VALUES
from windrow.algebra.types import BIGINT, DOUBLE, INT, INTEGER_BITS, DataType, Kind
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import masked, polars_type
from windrow.kernels.columnar.functions import base
from windrow.windows.domain import Doubles, Flags, Numbers

_SPANS = (Kind.TIMESTAMP, Kind.INTERVAL)
_QUOTIENT_SCALE = 39
_LEAST = np.iinfo(np.int64).min


def integers(values: Numbers, wrapped: Flags, kind: DataType) -> base.Outcome:
    """64-bit results, `wrapped` where they are wrong, as values of an integer or time type."""
    bad = wrapped
    if kind.is_integer and kind != BIGINT:
        low, high = kind.bounds
        bad = bad | (values < low) | (values > high)
    return base.Outcome(base.series(np.where(bad, 0, values), polars_type(kind)), bad)


def exact(values: Numbers, scale: int, kind: DataType, failed: Flags | None = None) -> base.Outcome:
    """Unscaled integers as DECIMAL(precision, scale): rounded half up, a failure where too long."""
    fitted = decimals.rescaled(values, scale, kind.scale)
    bad = decimals.too_long(fitted, kind)
    if failed is not None:
        bad = bad | failed
    return base.Outcome(decimals.decimal_column(np.where(bad, 0, fitted), kind), bad)


def _product_wraps(a: Numbers, b: Numbers, result: Numbers) -> Flags:
    """Products near 2⁶³ are few, and looked at one by one."""
    wrapped = np.zeros(len(a), dtype=bool)
    for place in np.flatnonzero(np.abs(a.astype(float) * b.astype(float)) > 2.0**62):
        wrapped[place] = int(a[place]) * int(b[place]) != int(result[place])
    return wrapped


def _ring(
    operate: Callable[[Any, Any], Any], wraps: Callable[[Numbers, Numbers, Numbers], Flags]
) -> base.Strict:
    """Sums, differences or products; `wraps` says where those of 64-bit integers are wrong."""

    def build(call: Call) -> base.Operation | None:
        kind = call.type
        if kind.kind is Kind.DECIMAL:
            return _decimal_ring(call, operate)
        if kind.is_fractional:
            return base.total(operate)
        if not all(arg.type.is_integer or arg.type.is_time or arg.type.kind in _SPANS for arg in call.args):
            return None

        def operation(a: pl.Series, b: pl.Series) -> base.Outcome:
            x, y = base.longs(a), base.longs(b)
            result = operate(x, y)
            return integers(result, wraps(x, y, result), kind)

        return operation

    return build


def _decimal_ring(call: Call, operate: Callable[[Any, Any], Any]) -> base.Operation | None:
    left, right = (arg.type for arg in call.args)
    if left.kind is not Kind.DECIMAL or right.kind is not Kind.DECIMAL:
        return None
    scale = left.scale + right.scale if operate is mul else max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> base.Outcome:
        x, y = decimals.unscaled(a).astype(object), decimals.unscaled(b).astype(object)
        if operate is not mul:
            x, y = decimals.rescaled(x, left.scale, scale), decimals.rescaled(y, right.scale, scale)
        return exact(np.asarray(operate(x, y), dtype=object), scale, call.type)

    return operation


def _divide(call: Call) -> base.Operation | None:
    left, right = (arg.type for arg in call.args)
    if call.type.kind is Kind.DOUBLE:
        return lambda a, b: base.Outcome(a / b, (b == 0.0).to_numpy())
    if call.type.kind is not Kind.DECIMAL:
        return None
    shift, kind = 10 ** (_QUOTIENT_SCALE + right.scale - left.scale), call.type
    divide = _one_by_one(
        lambda p, q: half_up(p * shift * (1 if q > 0 else -1), abs(q)), _QUOTIENT_SCALE, kind
    )
    return lambda a, b: divide(decimals.unscaled(a), decimals.unscaled(b))


def _one_by_one(
    compute: Callable[[int, int], int], scale: int, kind: DataType
) -> Callable[[Numbers, Numbers], base.Outcome]:
    """Quotients or remainders of unscaled integers; a divisor of 0 is a failure."""

    def operation(x: Numbers, y: Numbers) -> base.Outcome:
        values = (compute(p, q) if q else 0 for p, q in zip(x.tolist(), y.tolist(), strict=True))
        return exact(decimals.ints(values), scale, kind, np.array([not q for q in y.tolist()], dtype=bool))

    return operation


def _whole_quotient(call: Call) -> base.Operation | None:
    if not all(arg.type.is_integer or arg.type.kind is Kind.INTERVAL for arg in call.args):
        return None

    def operation(a: pl.Series, b: pl.Series) -> base.Outcome:
        x, y = base.longs(a), base.longs(b)
        failed = (y == 0) | ((x == _LEAST) & (y == -1))
        x, y = np.where(failed, 0, x), np.where(failed, 1, y)
        result = x // y + ((x % y != 0) & ((x < 0) != (y < 0)))
        return base.Outcome(base.series(result, polars_type(BIGINT)), failed)

    return operation


def _rest(a: Numbers, b: Numbers) -> Numbers:
    """The remainder signed as the dividend; a divisor of 0 is taken for 1, as its rows have failed anyway."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def _remainder(call: Call) -> base.Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return _decimal_remainder(call)

    def operation(a: pl.Series, b: pl.Series) -> base.Outcome:
        x, y = a.to_numpy(), b.to_numpy()
        return base.Outcome(base.series(_rest(x, y), polars_type(kind)), y == 0)

    return operation


def _decimal_remainder(call: Call) -> base.Operation:
    left, right = (arg.type for arg in call.args)
    scale = max(left.scale, right.scale)
    rest = _one_by_one(lambda p, q: (abs(p) % abs(q)) * (-1 if p < 0 else 1), scale, call.type)
    return lambda a, b: rest(
        decimals.rescaled(decimals.unscaled(a), left.scale, scale),
        decimals.rescaled(decimals.unscaled(b), right.scale, scale),
    )


def _positive_modulo(call: Call) -> base.Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return None
    # Java's sum of the two may wrap around, and Spark lets it; floats are computed as doubles.
    width: Any = np.int64 if kind == BIGINT else np.int32 if kind.is_integer else np.float64

    def operation(a: pl.Series, b: pl.Series) -> base.Outcome:
        x, y = a.to_numpy().astype(width), b.to_numpy().astype(width)
        rest = _rest(x, y)
        with np.errstate(invalid="ignore"):
            result = np.where(rest < 0, _rest(rest + y, y), rest)
        if kind.is_integer:
            return integers(result.astype(np.int64), y == 0, kind)
        return base.Outcome(base.series(result, polars_type(kind)), y == 0)

    return operation


def _unary(whole: Callable[[Numbers], Numbers], floats: Callable[[pl.Series], pl.Series]) -> base.Strict:
    """A number without its sign or with the other one, which the least integer has not."""

    def build(call: Call) -> base.Operation:
        kind = call.type
        if kind.is_fractional:
            return base.total(floats)
        if kind.kind is Kind.DECIMAL:
            return lambda a: exact(whole(decimals.unscaled(a)), kind.scale, kind)
        return lambda a: integers(whole(base.longs(a)), base.longs(a) == _LEAST, kind)

    return build


_SUM = _ring(add, lambda a, b, result: ((a ^ result) & (b ^ result)) < 0)
_DIFFERENCE = _ring(sub, lambda a, b, result: ((a ^ b) & (a ^ result)) < 0)
_PRODUCT = _ring(mul, _product_wraps)


# Bits of integer columns in two's complement; a shift takes its distance modulo the width, as in Java.


def _shift(by: Callable[..., Any]) -> base.Strict:
    def build(call: Call) -> base.Operation:
        width = INTEGER_BITS[call.type.kind]

        def shifted(value: pl.Series, distance: pl.Series) -> pl.Series:
            bits = value.to_numpy()
            return pl.Series(by(bits, (distance.to_numpy() % width).astype(bits.dtype)))

        return base.total(shifted)

    return build


LONG_EDGE = 2.0**63
LONG_MAX = (1 << 63) - 1
#: powers of ten up to this one are exact doubles
_EXACT_POWER = 22
#: a double below this and its decimal digits are less than 1/1000 apart
_SURE = 2.0**40


def _sign(a: pl.Series) -> pl.Series:
    values = a.to_numpy()
    return pl.Series(np.where(values == 0, values, np.sign(values)))


def _whole(rounding: Callable[[Any], Numbers], up: bool) -> base.Strict:
    def build(call: Call) -> base.Operation | None:
        source = call.args[0].type
        if source.is_integer:
            return base.total(lambda a: a)
        if source.kind is Kind.DECIMAL:
            unit = 10**source.scale
            steps = (lambda value: -(-value // unit)) if up else (lambda value: value // unit)
            return lambda a: exact(decimals.ints(map(steps, decimals.unscaled(a).tolist())), 0, call.type)
        return lambda a: _as_long(rounding(a.to_numpy().astype(np.float64)))

    return build


def _as_long(values: Doubles) -> base.Outcome:
    """Whole doubles as BIGINTs: NaN counts as 0, what is out of range fails."""
    failed = (values >= LONG_EDGE) | (values < -LONG_EDGE)
    inside = np.where(failed | np.isnan(values), 0.0, values).astype(np.int64)
    return base.Outcome(base.series(inside, polars_type(BIGINT)), failed)


def _round(name: str) -> base.Strict:
    def build(call: Call) -> base.Operation | None:
        kind, digits = call.type, call.args[1]
        assert isinstance(digits, Literal)
        if kind.is_integer and digits.value >= 0:
            return base.total(lambda a, _: a)
        if kind.kind is not Kind.DOUBLE or not 0 <= digits.value <= _EXACT_POWER:
            return None
        by_digits = base.by_value(VALUES[name](call), [DOUBLE, INT], DOUBLE)
        return lambda a, n: base.Outcome(_rounded(a, n, 10.0**digits.value, by_digits))

    return build


def _rounded(column: pl.Series, digits: pl.Series, unit: float, by_digits: base.Operation) -> pl.Series:
    """Doubles are rounded by the digits they are written with, which only matters near a tie."""
    values = column.to_numpy()
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(values) * unit
        above = size - np.floor(size)
    sure = (size < _SURE) & (np.abs(above - 0.5) > 1e-3)
    steps = np.where(sure, np.floor(size) + (above > 0.5), 0.0)
    result = np.where(values < 0, -steps, steps) / unit + 0.0
    if not sure.all():
        rest = pl.Series(~sure)
        result[~sure] = by_digits(column.filter(rest), digits.filter(rest)).result.to_numpy()
    return pl.Series(result)


def _arrow(name: str) -> base.Strict:
    """Arrow's function of that name, if this Arrow has it."""
    function = getattr(pc, name, None)
    if function is None:
        return lambda _: None
    return base.plain(lambda *columns: pl.Series(function(*(column.to_arrow() for column in columns))))


def _logarithm(name: str, above: float = 0.0) -> base.Strict:
    """NULL where there is none."""
    function = getattr(pc, name)

    def form(a: pl.Series) -> pl.Series:
        return masked(pl.Series(function(a.to_arrow())), ~(a.to_numpy() <= above))

    return base.plain(form)


def _power(number: pl.Series, exponent: pl.Series) -> pl.Series:
    """Java's `pow`, which differs from C's for an infinite or missing exponent of ±1."""
    result = pc.power(number.to_arrow(), exponent.to_arrow()).to_numpy(zero_copy_only=False)
    x, y = number.to_numpy(), exponent.to_numpy()
    undefined = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
    return pl.Series(np.where(undefined, np.nan, result))


_natural = _logarithm("ln")


FUNCTIONS: dict[str, base.Strict] = {
    "+": _SUM,
    "-": _DIFFERENCE,
    "*": _PRODUCT,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "pmod": _positive_modulo,
    "neg": _unary(np.negative, lambda a: a * -1.0),
    "try_add": base.forgiving(_SUM),
    "try_subtract": base.forgiving(_DIFFERENCE),
    "try_multiply": base.forgiving(_PRODUCT),
    "try_divide": base.forgiving(_divide),
    "try_mod": base.forgiving(_remainder),
    **dict.fromkeys(("&", "|", "^", "~"), base.as_on_integers),
    "shiftleft": _shift(np.left_shift),
    "shiftright": _shift(np.right_shift),
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": base.plain(lambda a: pl.Series(np.bitwise_count(base.longs(a).view(np.uint64)))),
    "abs": _unary(np.abs, lambda a: a.abs()),
    "sign": base.plain(_sign),
    "ceil": _whole(np.ceil, up=True),
    "floor": _whole(np.floor, up=False),
    "round": _round("round"),
    "bround": _round("bround"),
    "sqrt": base.plain(lambda a: a.sqrt()),
    "ln": _natural,
    "log": lambda call: _natural(call) if len(call.args) == 1 else None,
    "log10": _logarithm("log10"),
    "log2": _logarithm("log2"),
    "log1p": _logarithm("log1p", above=-1.0),
    "power": base.plain(_power),
    "degrees": base.plain(lambda a: a * (180.0 / math.pi)),
    "radians": base.plain(lambda a: a * (math.pi / 180.0)),
    **{
        name: _arrow(name)
        for name in ("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
}
