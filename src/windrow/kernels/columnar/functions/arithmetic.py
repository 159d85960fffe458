"""Arithmetic on columns, with Spark's ANSI rules: a result that its type cannot hold is a failure.

Integers are computed in 64 bits, where an overflow can be seen by its signs; decimals as unscaled
integers; floats as IEEE says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.types import BIGINT, INTEGER_BITS, DataType, Kind
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.functions.base import (
    Operation,
    Outcome,
    Strict,
    forgiving,
    longs,
    plain,
    series,
    total,
)

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import polars as pl

    from windrow.algebra.expressions import Call

    Numbers = npt.NDArray[Any]
    Flags = npt.NDArray[np.bool_]

_SPANS = (Kind.TIMESTAMP, Kind.INTERVAL)
_QUOTIENT_SCALE = 39
_LEAST = np.iinfo(np.int64).min


def integers(values: Numbers, wrapped: Flags, kind: DataType) -> Outcome:
    """64-bit results, `wrapped` where they are wrong, as values of an integer or time type."""
    bad = wrapped
    if kind.is_integer and kind != BIGINT:
        low, high = kind.bounds
        bad = bad | (values < low) | (values > high)
    return Outcome(series(np.where(bad, 0, values), polars_type(kind)), bad)


def exact(values: Numbers, scale: int, kind: DataType, failed: Flags | None = None) -> Outcome:
    """Unscaled integers as DECIMAL(precision, scale): rounded half up, a failure where too long."""
    fitted = decimals.rescaled(values, scale, kind.scale)
    bad = decimals.too_long(fitted, kind)
    if failed is not None:
        bad = bad | failed
    return Outcome(decimals.decimal_column(np.where(bad, 0, fitted), kind), bad)


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


def _ring(checked: Callable[[Numbers, Numbers], tuple[Numbers, Flags]], sign: str) -> Strict:
    def build(call: Call) -> Operation | None:
        kind = call.type
        if kind.kind is Kind.DECIMAL:
            return _decimal_ring(call, sign)
        if kind.is_fractional:
            return total(lambda a, b: _float_ring(a, b, sign))
        if not all(arg.type.is_integer or arg.type.is_time or arg.type.kind in _SPANS for arg in call.args):
            return None
        return lambda a, b: integers(*checked(longs(a), longs(b)), kind)

    return build


def _float_ring(a: pl.Series, b: pl.Series, sign: str) -> pl.Series:
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def _decimal_ring(call: Call, sign: str) -> Operation | None:
    left, right = (arg.type for arg in call.args)
    if left.kind is not Kind.DECIMAL or right.kind is not Kind.DECIMAL:
        return None
    scale = left.scale + right.scale if sign == "*" else max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = decimals.unscaled(a).astype(object), decimals.unscaled(b).astype(object)
        if sign == "*":
            return exact(_scaled_product(x, y), scale, call.type)
        x, y = decimals.rescaled(x, left.scale, scale), decimals.rescaled(y, right.scale, scale)
        return exact(x + y if sign == "+" else x - y, scale, call.type)

    return operation


def _divide(call: Call) -> Operation | None:
    left, right = (arg.type for arg in call.args)
    if call.type.kind is Kind.DOUBLE:
        return lambda a, b: Outcome(a / b, (b == 0.0).to_numpy())
    if call.type.kind is not Kind.DECIMAL:
        return None
    shift = 10 ** (_QUOTIENT_SCALE + right.scale - left.scale)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = decimals.unscaled(a).tolist(), decimals.unscaled(b).tolist()
        zero = np.array([not each for each in y], dtype=bool)
        values = decimals.ints(
            decimals.half_up(p * shift * (1 if q > 0 else -1), abs(q)) if q else 0
            for p, q in zip(x, y, strict=True)
        )
        return exact(values, _QUOTIENT_SCALE, call.type, zero)

    return operation


def _whole_quotient(call: Call) -> Operation | None:
    if not all(arg.type.is_integer or arg.type.kind is Kind.INTERVAL for arg in call.args):
        return None

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = longs(a), longs(b)
        failed = (y == 0) | ((x == _LEAST) & (y == -1))
        x, y = np.where(failed, 0, x), np.where(failed, 1, y)
        result = x // y + ((x % y != 0) & ((x < 0) != (y < 0)))
        return Outcome(series(result, polars_type(BIGINT)), failed)

    return operation


def _rest(a: Numbers, b: Numbers) -> Numbers:
    """The remainder signed as the dividend; a divisor of 0 is taken for 1, as its rows have failed anyway."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.fmod(a, np.where(b == 0, np.ones_like(b), b)))


def _remainder(call: Call) -> Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return _decimal_remainder(call)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = a.to_numpy(), b.to_numpy()
        return Outcome(series(_rest(x, y), polars_type(kind)), y == 0)

    return operation


def _decimal_remainder(call: Call) -> Operation:
    left, right = (arg.type for arg in call.args)
    scale = max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x = decimals.rescaled(decimals.unscaled(a), left.scale, scale).tolist()
        y = decimals.rescaled(decimals.unscaled(b), right.scale, scale).tolist()
        zero = np.array([not each for each in y], dtype=bool)
        rests = [(abs(p) % abs(q)) * (-1 if p < 0 else 1) if q else 0 for p, q in zip(x, y, strict=True)]
        return exact(decimals.ints(rests), scale, call.type, zero)

    return operation


def _positive_modulo(call: Call) -> Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return None
    # Java's sum of the two may wrap around, and Spark lets it; floats are computed as doubles.
    width: Any = np.int64 if kind == BIGINT else np.int32 if kind.is_integer else np.float64

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = a.to_numpy().astype(width), b.to_numpy().astype(width)
        rest = _rest(x, y)
        with np.errstate(invalid="ignore"):
            result = np.where(rest < 0, _rest(rest + y, y), rest)
        if kind.is_integer:
            return integers(result.astype(np.int64), y == 0, kind)
        return Outcome(series(result, polars_type(kind)), y == 0)

    return operation


def _negate(call: Call) -> Operation | None:
    kind = call.type
    if kind.is_fractional:
        return total(lambda a: a * -1.0)
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(-decimals.unscaled(a), kind.scale, kind)
    return lambda a: integers(*_difference(np.zeros(len(a), dtype=np.int64), longs(a)), kind)


_SUM = _ring(_sum, "+")
_DIFFERENCE = _ring(_difference, "-")
_PRODUCT = _ring(_product, "*")

FUNCTIONS: dict[str, Strict] = {
    "+": _SUM,
    "-": _DIFFERENCE,
    "*": _PRODUCT,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "pmod": _positive_modulo,
    "neg": _negate,
    "try_add": forgiving(_SUM),
    "try_subtract": forgiving(_DIFFERENCE),
    "try_multiply": forgiving(_PRODUCT),
    "try_divide": forgiving(_divide),
    "try_mod": forgiving(_remainder),
}


# ------------------------------------------------------------ bits
#
# Bits of integer columns in two's complement; a shift takes its distance modulo the width, as in Java.


def _shift(left: bool) -> Strict:
    def build(call: Call) -> Operation:
        width = INTEGER_BITS[call.type.kind]

        def shifted(value: pl.Series, distance: pl.Series) -> pl.Series:
            bits, places = value.to_numpy(), (distance.to_numpy() % width).astype(value.to_numpy().dtype)
            return pl.Series(np.left_shift(bits, places) if left else np.right_shift(bits, places))

        return total(shifted)

    return build


BITS: dict[str, Strict] = {
    "&": plain(lambda a, b: pl.Series(a.to_numpy() & b.to_numpy())),
    "|": plain(lambda a, b: pl.Series(a.to_numpy() | b.to_numpy())),
    "^": plain(lambda a, b: pl.Series(a.to_numpy() ^ b.to_numpy())),
    "~": plain(lambda a: pl.Series(~a.to_numpy())),
    "shiftleft": _shift(left=True),
    "shiftright": _shift(left=False),
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": plain(lambda a: pl.Series(np.bitwise_count(longs(a).view(np.uint64)))),
}
