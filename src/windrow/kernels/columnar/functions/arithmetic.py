"""Arithmetic on columns, with Spark's ANSI rules: a result that its type cannot hold is a failure.

Integers are computed in 64 bits, where an overflow can be seen by its signs; decimals as unscaled
integers; floats as IEEE says.

Functions of numbers on columns.

Arrow's mathematics is that of the C library, as Python's is, so both give the same last bit; numpy's has
its own approximations and does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow.compute as pc

from windrow.algebra.aggregates.numbers import half_up
from windrow.algebra.expressions import Call, Literal
from windrow.algebra.functions.values import STRICT as VALUES
from windrow.algebra.types import BIGINT, DOUBLE, INT, INTEGER_BITS, DataType, Kind
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.functions import base as columnar
from windrow.windows.domain import Doubles, Flags, Numbers

if TYPE_CHECKING:
    from collections.abc import Callable


_SPANS = (Kind.TIMESTAMP, Kind.INTERVAL)
_QUOTIENT_SCALE = 39
_LEAST = np.iinfo(np.int64).min


def integers(values: Numbers, wrapped: Flags, kind: DataType) -> columnar.Outcome:
    """64-bit results, `wrapped` where they are wrong, as values of an integer or time type."""
    bad = wrapped
    if kind.is_integer and kind != BIGINT:
        low, high = kind.bounds
        bad = bad | (values < low) | (values > high)
    return columnar.Outcome(columnar.series(np.where(bad, 0, values), polars_type(kind)), bad)


def exact(values: Numbers, scale: int, kind: DataType, failed: Flags | None = None) -> columnar.Outcome:
    """Unscaled integers as DECIMAL(precision, scale): rounded half up, a failure where too long."""
    fitted = decimals.rescaled(values, scale, kind.scale)
    bad = decimals.too_long(fitted, kind)
    if failed is not None:
        bad = bad | failed
    return columnar.Outcome(decimals.decimal_column(np.where(bad, 0, fitted), kind), bad)


def _sum(a: Numbers, b: Numbers) -> tuple[Numbers, Flags]:
    result = a + b
    return result, ((a ^ result) & (b ^ result)) < 0


def _difference(a: Numbers, b: Numbers) -> tuple[Numbers, Flags]:
    result = a - b
    return result, ((a ^ b) & (a ^ result)) < 0


def _product(a: Numbers, b: Numbers) -> tuple[Numbers, Flags]:
    """Products near 2⁶³ are few, and looked at one by one."""
    result = a * b
    wrapped = np.zeros(len(a), dtype=bool)
    for place in np.flatnonzero(np.abs(a.astype(float) * b.astype(float)) > 2.0**62):
        wrapped[place] = int(a[place]) * int(b[place]) != int(result[place])
    return result, wrapped


def _scaled_product(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(a.astype(object) * b.astype(object), dtype=object)


def _ring(checked: Callable[[Numbers, Numbers], tuple[Numbers, Flags]], sign: str) -> columnar.Strict:
    def build(call: Call) -> columnar.Operation | None:
        kind = call.type
        if kind.kind is Kind.DECIMAL:
            return _decimal_ring(call, sign)
        if kind.is_fractional:
            return columnar.total(lambda a, b: _float_ring(a, b, sign))
        if not all(arg.type.is_integer or arg.type.is_time or arg.type.kind in _SPANS for arg in call.args):
            return None
        return lambda a, b: integers(*checked(columnar.longs(a), columnar.longs(b)), kind)

    return build


def _float_ring(a: pl.Series, b: pl.Series, sign: str) -> pl.Series:
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def _decimal_ring(call: Call, sign: str) -> columnar.Operation | None:
    left, right = (arg.type for arg in call.args)
    if left.kind is not Kind.DECIMAL or right.kind is not Kind.DECIMAL:
        return None
    scale = left.scale + right.scale if sign == "*" else max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x, y = decimals.unscaled(a).astype(object), decimals.unscaled(b).astype(object)
        if sign == "*":
            return exact(_scaled_product(x, y), scale, call.type)
        x, y = decimals.rescaled(x, left.scale, scale), decimals.rescaled(y, right.scale, scale)
        return exact(x + y if sign == "+" else x - y, scale, call.type)

    return operation


def _divide(call: Call) -> columnar.Operation | None:
    left, right = (arg.type for arg in call.args)
    if call.type.kind is Kind.DOUBLE:
        return lambda a, b: columnar.Outcome(a / b, (b == 0.0).to_numpy())
    if call.type.kind is not Kind.DECIMAL:
        return None
    shift = 10 ** (_QUOTIENT_SCALE + right.scale - left.scale)

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x, y = decimals.unscaled(a).tolist(), decimals.unscaled(b).tolist()
        zero = np.array([not each for each in y], dtype=bool)
        values = decimals.ints(
            half_up(p * shift * (1 if q > 0 else -1), abs(q)) if q else 0 for p, q in zip(x, y, strict=True)
        )
        return exact(values, _QUOTIENT_SCALE, call.type, zero)

    return operation


def _whole_quotient(call: Call) -> columnar.Operation | None:
    if not all(arg.type.is_integer or arg.type.kind is Kind.INTERVAL for arg in call.args):
        return None

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x, y = columnar.longs(a), columnar.longs(b)
        failed = (y == 0) | ((x == _LEAST) & (y == -1))
        x, y = np.where(failed, 0, x), np.where(failed, 1, y)
        result = x // y + ((x % y != 0) & ((x < 0) != (y < 0)))
        return columnar.Outcome(columnar.series(result, polars_type(BIGINT)), failed)

    return operation


def _rest(a: Numbers, b: Numbers) -> Numbers:
    """The remainder signed as the dividend; a divisor of 0 is taken for 1, as its rows have failed anyway."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def _remainder(call: Call) -> columnar.Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return _decimal_remainder(call)

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x, y = a.to_numpy(), b.to_numpy()
        return columnar.Outcome(columnar.series(_rest(x, y), polars_type(kind)), y == 0)

    return operation


def _decimal_remainder(call: Call) -> columnar.Operation:
    left, right = (arg.type for arg in call.args)
    scale = max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x = decimals.rescaled(decimals.unscaled(a), left.scale, scale).tolist()
        y = decimals.rescaled(decimals.unscaled(b), right.scale, scale).tolist()
        zero = np.array([not each for each in y], dtype=bool)
        rests = [(abs(p) % abs(q)) * (-1 if p < 0 else 1) if q else 0 for p, q in zip(x, y, strict=True)]
        return exact(decimals.ints(rests), scale, call.type, zero)

    return operation


def _positive_modulo(call: Call) -> columnar.Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return None
    # Java's sum of the two may wrap around, and Spark lets it; floats are computed as doubles.
    width: Any = np.int64 if kind == BIGINT else np.int32 if kind.is_integer else np.float64

    def operation(a: pl.Series, b: pl.Series) -> columnar.Outcome:
        x, y = a.to_numpy().astype(width), b.to_numpy().astype(width)
        rest = _rest(x, y)
        with np.errstate(invalid="ignore"):
            result = np.where(rest < 0, _rest(rest + y, y), rest)
        if kind.is_integer:
            return integers(result.astype(np.int64), y == 0, kind)
        return columnar.Outcome(columnar.series(result, polars_type(kind)), y == 0)

    return operation


def _negate(call: Call) -> columnar.Operation | None:
    kind = call.type
    if kind.is_fractional:
        return columnar.total(lambda a: a * -1.0)
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(-decimals.unscaled(a), kind.scale, kind)
    return lambda a: integers(*_difference(np.zeros(len(a), dtype=np.int64), columnar.longs(a)), kind)


_SUM = _ring(_sum, "+")
_DIFFERENCE = _ring(_difference, "-")
_PRODUCT = _ring(_product, "*")

FUNCTIONS: dict[str, columnar.Strict] = {
    "+": _SUM,
    "-": _DIFFERENCE,
    "*": _PRODUCT,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "pmod": _positive_modulo,
    "neg": _negate,
    "try_add": columnar.forgiving(_SUM),
    "try_subtract": columnar.forgiving(_DIFFERENCE),
    "try_multiply": columnar.forgiving(_PRODUCT),
    "try_divide": columnar.forgiving(_divide),
    "try_mod": columnar.forgiving(_remainder),
}


# ------------------------------------------------------------ bits
#
# Bits of integer columns in two's complement; a shift takes its distance modulo the width, as in Java.


def _shift(left: bool) -> columnar.Strict:
    def build(call: Call) -> columnar.Operation:
        width = INTEGER_BITS[call.type.kind]

        def shifted(value: pl.Series, distance: pl.Series) -> pl.Series:
            bits, places = value.to_numpy(), (distance.to_numpy() % width).astype(value.to_numpy().dtype)
            return pl.Series(np.left_shift(bits, places) if left else np.right_shift(bits, places))

        return columnar.total(shifted)

    return build


BITS: dict[str, columnar.Strict] = {
    "&": columnar.plain(lambda a, b: pl.Series(a.to_numpy() & b.to_numpy())),
    "|": columnar.plain(lambda a, b: pl.Series(a.to_numpy() | b.to_numpy())),
    "^": columnar.plain(lambda a, b: pl.Series(a.to_numpy() ^ b.to_numpy())),
    "~": columnar.plain(lambda a: pl.Series(~a.to_numpy())),
    "shiftleft": _shift(left=True),
    "shiftright": _shift(left=False),
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": columnar.plain(lambda a: pl.Series(np.bitwise_count(columnar.longs(a).view(np.uint64)))),
}


if TYPE_CHECKING:
    from collections.abc import Callable


LONG_EDGE = 2.0**63
LONG_MAX = (1 << 63) - 1
#: powers of ten up to this one are exact doubles
_EXACT_POWER = 22
#: a double below this and its decimal digits are less than 1/1000 apart
_SURE = 2.0**40


def _abs(call: Call) -> columnar.Operation | None:
    kind = call.type
    if kind.is_fractional:
        return columnar.total(lambda a: a.abs())
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(np.abs(decimals.unscaled(a)), kind.scale, kind)

    def operation(a: pl.Series) -> columnar.Outcome:
        values = columnar.longs(a)
        return integers(np.abs(values), values == np.iinfo(np.int64).min, kind)

    return operation


def _sign(a: pl.Series) -> pl.Series:
    values = a.to_numpy()
    return pl.Series(np.where(values == 0, values, np.sign(values)))


def _whole(rounding: Callable[[Any], Numbers], up: bool) -> columnar.Strict:
    def build(call: Call) -> columnar.Operation | None:
        source = call.args[0].type
        if source.is_integer:
            return columnar.total(lambda a: a)
        if source.kind is Kind.DECIMAL:
            return lambda a: exact(_stepped(decimals.unscaled(a), source.scale, up), 0, call.type)
        return lambda a: _as_long(rounding(a.to_numpy().astype(np.float64)))

    return build


def _stepped(values: Numbers, scale: int, up: bool) -> Numbers:
    unit = 10**scale
    return decimals.ints(-(-value // unit) if up else value // unit for value in values.tolist())


def _as_long(values: Doubles) -> columnar.Outcome:
    """Whole doubles as BIGINTs: NaN counts as 0, what is out of range fails."""
    failed = (values >= LONG_EDGE) | (values < -LONG_EDGE)
    inside = np.where(failed | np.isnan(values), 0.0, values).astype(np.int64)
    return columnar.Outcome(columnar.series(inside, polars_type(BIGINT)), failed)


def _round(name: str) -> columnar.Strict:
    def build(call: Call) -> columnar.Operation | None:
        kind, digits = call.type, call.args[1]
        assert isinstance(digits, Literal)
        if kind.is_integer and digits.value >= 0:
            return columnar.total(lambda a, _: a)
        if kind.kind is not Kind.DOUBLE or not 0 <= digits.value <= _EXACT_POWER:
            return None
        by_digits = columnar.by_value(VALUES[name](call), [DOUBLE, INT], DOUBLE)
        return lambda a, n: columnar.Outcome(_rounded(a, n, 10.0**digits.value, by_digits))

    return build


def _rounded(column: pl.Series, digits: pl.Series, unit: float, by_digits: columnar.Operation) -> pl.Series:
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


def _root(a: pl.Series) -> pl.Series:
    with np.errstate(invalid="ignore"):
        return pl.Series(np.sqrt(a.to_numpy()))


def _arrow(name: str) -> columnar.Strict:
    """Arrow's function of that name, if this Arrow has it."""
    function = getattr(pc, name, None)
    if function is None:
        return lambda _: None
    return columnar.plain(lambda *columns: pl.Series(function(*(column.to_arrow() for column in columns))))


def _logarithm(name: str, above: float = 0.0) -> columnar.Strict:
    """NULL where there is none."""
    function = getattr(pc, name)

    def form(a: pl.Series) -> pl.Series:
        result = pl.Series(function(a.to_arrow()))
        defined = pl.Series(~(a.to_numpy() <= above))
        return result.zip_with(defined, result.clear(len(result)))

    return columnar.plain(form)


def _power(base: pl.Series, exponent: pl.Series) -> pl.Series:
    """Java's `pow`, which differs from C's for an infinite or missing exponent of ±1."""
    result = pc.power(base.to_arrow(), exponent.to_arrow()).to_numpy(zero_copy_only=False)
    x, y = base.to_numpy(), exponent.to_numpy()
    undefined = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
    return pl.Series(np.where(undefined, np.nan, result))


def _scaled(factor: float) -> columnar.Strict:
    return columnar.plain(lambda a: a * factor)


_natural = _logarithm("ln")

NUMERIC: dict[str, columnar.Strict] = {
    "abs": _abs,
    "sign": columnar.plain(_sign),
    "ceil": _whole(np.ceil, up=True),
    "floor": _whole(np.floor, up=False),
    "round": _round("round"),
    "bround": _round("bround"),
    "sqrt": columnar.plain(_root),
    "ln": _natural,
    "log": lambda call: _natural(call) if len(call.args) == 1 else None,
    "log10": _logarithm("log10"),
    "log2": _logarithm("log2"),
    "log1p": _logarithm("log1p", above=-1.0),
    "power": columnar.plain(_power),
    "degrees": _scaled(180.0 / math.pi),
    "radians": _scaled(math.pi / 180.0),
    **{
        name: _arrow(name)
        for name in ("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
}
