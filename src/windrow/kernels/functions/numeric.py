"""Functions of numbers on columns. Doubles are rounded by the digits they are written with, as in Spark."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.expressions import Literal
from windrow.algebra.types import BIGINT, DataType, Kind
from windrow.kernels import decimals
from windrow.kernels.columns import polars_type
from windrow.kernels.functions.arithmetic import exact, integers, overflow
from windrow.kernels.functions.base import Operation, Outcome, Strict, series, total

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from windrow.algebra.expressions import Call

LONG_EDGE = 2.0**63
LONG_MAX = (1 << 63) - 1
_MOST_DIGITS = 400
_WIDE = Context(prec=800, Emax=999_999, Emin=-999_999)


def _abs(call: Call) -> Operation | None:
    kind = call.type
    if kind.is_fractional:
        return total(lambda a: a.abs())
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(np.abs(decimals.unscaled(a)), kind.scale, kind)

    def operation(a: pl.Series) -> Outcome:
        values = a.to_numpy().astype(np.int64)
        return integers(np.abs(values), values == np.iinfo(np.int64).min, kind, None)

    return operation


def _sign(a: pl.Series) -> pl.Series:
    return pl.Series(np.sign(a.to_numpy()))


def _whole(rounding: Callable[[Any], npt.NDArray[Any]], up: bool) -> Strict:
    def build(call: Call) -> Operation | None:
        source = call.args[0].type
        if source.is_integer:
            return total(lambda a: a)
        if source.kind is Kind.DECIMAL:
            return lambda a: exact(_stepped(decimals.unscaled(a), source.scale, up), 0, call.type)
        return lambda a: as_long(rounding(a.to_numpy().astype(np.float64)))

    return build


def _stepped(values: npt.NDArray[Any], scale: int, up: bool) -> npt.NDArray[Any]:
    unit = 10**scale
    return decimals.ints(-(-value // unit) if up else value // unit for value in values.tolist())


def as_long(values: npt.NDArray[Any]) -> Outcome:
    """Whole doubles as BIGINTs: 2⁶³ counts as the greatest, NaN as 0, all else out of range fails."""
    bad = np.isinf(values) | (values > LONG_EDGE) | (values < -LONG_EDGE)
    inside = np.where(bad | np.isnan(values) | (values == LONG_EDGE), 0.0, values).astype(np.int64)
    result = np.where(values == LONG_EDGE, LONG_MAX, inside)
    return series(result, polars_type(BIGINT)), (overflow(bad, BIGINT),)


def _round(mode: str) -> Strict:
    def build(call: Call) -> Operation | None:
        kind, digits = call.type, call.args[1]
        if not isinstance(digits, Literal) or digits.value is None or kind.kind is Kind.FLOAT:
            return None
        if kind.is_integer and digits.value >= 0:
            return total(lambda a, _: a)
        return lambda a, _: _rounded(a, int(digits.value), kind, call.args[0].type, mode)

    return build


def _rounded(column: pl.Series, digits: int, kind: DataType, source: DataType, mode: str) -> Outcome:
    if kind.kind is Kind.DOUBLE:
        values = [_cut(Decimal(written(v)), digits, mode) if np.isfinite(v) else v for v in column.to_list()]
        return pl.Series(np.array(list(map(float, values)))), ()
    numbers = [Decimal(int(v)).scaleb(-source.scale, _WIDE) for v in _unscaled(column, source).tolist()]
    cut = [_cut(number, digits, mode) for number in numbers]
    units = decimals.ints(int(number.scaleb(kind.scale, _WIDE)) for number in cut)
    if kind.kind is Kind.DECIMAL:
        return exact(units, kind.scale, kind)
    low, high = kind.bounds
    bad = np.array([not low <= unit <= high for unit in units.tolist()], dtype=bool)
    return series(np.where(bad, 0, units).astype(np.int64), polars_type(kind)), (overflow(bad, kind),)


def _unscaled(column: pl.Series, source: DataType) -> npt.NDArray[Any]:
    return decimals.unscaled(column) if source.kind is Kind.DECIMAL else column.to_numpy()


def written(value: float) -> str:
    """The fewest digits that give the double back; Java writes at least two (4.9E-324)."""
    short = f"{value:.1e}"
    return short if float(short) == value else repr(value)


def _cut(value: Decimal, digits: int, mode: str) -> Decimal:
    """Rounded to digits after the point, or before it if negative."""
    if digits >= _MOST_DIGITS or not value:
        return value
    if value.adjusted() + 1 < -digits:
        return Decimal(0)
    return value.quantize(Decimal(1).scaleb(-digits), rounding=mode, context=_WIDE)


def _root(a: pl.Series) -> pl.Series:
    with np.errstate(invalid="ignore"):
        return pl.Series(np.sqrt(a.to_numpy()))


FUNCTIONS: dict[str, Strict] = {
    "abs": _abs,
    "sign": lambda call: total(_sign),
    "ceil": _whole(np.ceil, up=True),
    "floor": _whole(np.floor, up=False),
    "round": _round(ROUND_HALF_UP),
    "bround": _round(ROUND_HALF_EVEN),
    "sqrt": lambda call: total(_root),
}
