"""Arithmetic on columns, with Spark's ANSI rules: a result that its type cannot hold is a failure.

Integers are computed in 64 bits, where an overflow can be seen by its signs; decimals as unscaled
integers; floats as IEEE says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.algebra.types import BIGINT, DataType, Kind
from windrow.kernels import decimals
from windrow.kernels.columns import polars_type
from windrow.kernels.functions.base import Failure, Operation, Outcome, Strict, forgiving, series

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


def overflow(rows: Flags, kind: DataType, try_form: str | None = None) -> Failure:
    """A result that does not fit its type."""
    hint = (
        f"{try_form} gives NULL instead; a wider type holds it" if try_form else "cast to a wider type first"
    )
    return Failure(rows, f"a result does not fit {kind}", "arithmetic-overflow", hint)


def by_zero(rows: Flags, try_form: str) -> Failure:
    """A division by zero."""
    hint = f"{try_form} gives NULL instead, or use nullif(…, 0)"
    return Failure(rows, "division by zero", "divide-by-zero", hint)


def integers(values: Numbers, wrapped: Flags, kind: DataType, try_form: str | None) -> Outcome:
    """64-bit results, `wrapped` where they are wrong, as values of an integer or time type."""
    bad = wrapped
    if kind.is_integer and kind != BIGINT:
        low, high = kind.bounds
        bad = bad | (values < low) | (values > high)
    return series(np.where(bad, 0, values), polars_type(kind)), (overflow(bad, kind, try_form),)


def exact(values: Numbers, scale: int, kind: DataType, try_form: str | None = None) -> Outcome:
    """Unscaled integers as DECIMAL(precision, scale): rounded half up, a failure where too long."""
    fitted = decimals.rescaled(values, scale, kind.scale)
    bad = decimals.too_long(fitted, kind)
    return decimals.decimal_column(np.where(bad, 0, fitted), kind), (overflow(bad, kind, try_form),)


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


def _long(column: pl.Series) -> Numbers:
    return column.to_numpy().astype(np.int64)


def _ring(checked: Callable[[Numbers, Numbers], tuple[Numbers, Flags]], sign: str, try_form: str) -> Strict:
    def build(call: Call) -> Operation | None:
        kind = call.type
        if kind.kind is Kind.DECIMAL:
            return _decimal_ring(call, sign, try_form)
        if kind.is_fractional:
            return lambda a, b: (_float_ring(a, b, sign), ())
        whole = all(arg.type.is_integer or arg.type.is_time or arg.type.kind in _SPANS for arg in call.args)
        if not whole:
            return None
        return lambda a, b: integers(*checked(_long(a), _long(b)), kind, try_form)

    return build


def _float_ring(a: pl.Series, b: pl.Series, sign: str) -> pl.Series:
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def _decimal_ring(call: Call, sign: str, try_form: str) -> Operation | None:
    left, right = (arg.type for arg in call.args)
    if Kind.DECIMAL not in (left.kind, right.kind) or left.kind is not right.kind:
        return None
    scale = left.scale + right.scale if sign == "*" else max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = decimals.unscaled(a).astype(object), decimals.unscaled(b).astype(object)
        if sign == "*":
            return exact(_scaled_product(x, y), scale, call.type, try_form)
        x, y = decimals.rescaled(x, left.scale, scale), decimals.rescaled(y, right.scale, scale)
        return exact(x + y if sign == "+" else x - y, scale, call.type, try_form)

    return operation


def _divide(call: Call) -> Operation | None:
    left, right = (arg.type for arg in call.args)
    if call.type.kind is Kind.DOUBLE:
        return _quotient
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
        result, failures = exact(values, _QUOTIENT_SCALE, call.type, "try_divide")
        return result, (by_zero(zero, "try_divide"), *failures)

    return operation


def _quotient(a: pl.Series, b: pl.Series) -> Outcome:
    zero = (b == 0.0).to_numpy()
    return a / b, (by_zero(zero, "try_divide"),)


def _whole_quotient(call: Call) -> Operation | None:
    if not all(arg.type.is_integer or arg.type.kind is Kind.INTERVAL for arg in call.args):
        return None

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = _long(a), _long(b)
        zero, wrapped = y == 0, (x == _LEAST) & (y == -1)
        x, y = np.where(wrapped, 0, x), np.where(zero, 1, y)
        result = x // y + ((x % y != 0) & ((x < 0) != (y < 0)))
        failures = (by_zero(zero, "try_divide"), overflow(wrapped, BIGINT))
        return series(result, polars_type(BIGINT)), failures

    return operation


def _remainder(call: Call) -> Operation | None:
    kind = call.type
    if kind.kind is Kind.DECIMAL:
        return _decimal_remainder(call)
    dtype = polars_type(kind)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x, y = a.to_numpy(), b.to_numpy()
        zero = y == 0
        with np.errstate(invalid="ignore"):
            result = np.fmod(x, np.where(zero, np.ones_like(y), y))
        return series(result, dtype), (by_zero(zero, "try_mod"),)

    return operation


def _decimal_remainder(call: Call) -> Operation:
    left, right = (arg.type for arg in call.args)
    scale = max(left.scale, right.scale)

    def operation(a: pl.Series, b: pl.Series) -> Outcome:
        x = decimals.rescaled(decimals.unscaled(a), left.scale, scale).tolist()
        y = decimals.rescaled(decimals.unscaled(b), right.scale, scale).tolist()
        zero = np.array([not each for each in y], dtype=bool)
        rests = [(abs(p) % abs(q)) * (-1 if p < 0 else 1) if q else 0 for p, q in zip(x, y, strict=True)]
        result, failures = exact(decimals.ints(rests), scale, call.type, "try_mod")
        return result, (by_zero(zero, "try_mod"), *failures)

    return operation


def _negate(call: Call) -> Operation | None:
    kind = call.type
    if kind.is_fractional:
        return lambda a: (a * -1.0, ())
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(-decimals.unscaled(a), kind.scale, kind)
    return lambda a: integers(*_difference(np.zeros(len(a), dtype=np.int64), _long(a)), kind, None)


_SUM = _ring(_sum, "+", "try_add")
_DIFFERENCE = _ring(_difference, "-", "try_subtract")
_PRODUCT = _ring(_product, "*", "try_multiply")

FUNCTIONS: dict[str, Strict] = {
    "+": _SUM,
    "-": _DIFFERENCE,
    "*": _PRODUCT,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "neg": _negate,
    "try_add": forgiving(_SUM),
    "try_subtract": forgiving(_DIFFERENCE),
    "try_multiply": forgiving(_PRODUCT),
    "try_divide": forgiving(_divide),
    "try_mod": forgiving(_remainder),
}
