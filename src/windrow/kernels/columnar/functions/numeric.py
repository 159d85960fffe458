"""Functions of numbers on columns.

Arrow's mathematics is that of the C library, as Python's is, so both give the same last bit; numpy's has
its own approximations and does not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow.compute as pc

from windrow.algebra.expressions import Call, Literal
from windrow.algebra.functions.values import STRICT as VALUES
from windrow.algebra.types import BIGINT, DOUBLE, INT, Kind
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.functions.arithmetic import exact, integers
from windrow.kernels.columnar.functions.base import (
    Operation,
    Outcome,
    Strict,
    by_value,
    longs,
    plain,
    series,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Doubles = npt.NDArray[np.float64]

LONG_EDGE = 2.0**63
LONG_MAX = (1 << 63) - 1
#: powers of ten up to this one are exact doubles
_EXACT_POWER = 22
#: a double below this and its decimal digits are less than 1/1000 apart
_SURE = 2.0**40


def _abs(call: Call) -> Operation | None:
    kind = call.type
    if kind.is_fractional:
        return total(lambda a: a.abs())
    if kind.kind is Kind.DECIMAL:
        return lambda a: exact(np.abs(decimals.unscaled(a)), kind.scale, kind)

    def operation(a: pl.Series) -> Outcome:
        values = longs(a)
        return integers(np.abs(values), values == np.iinfo(np.int64).min, kind)

    return operation


def _sign(a: pl.Series) -> pl.Series:
    values = a.to_numpy()
    return pl.Series(np.where(values == 0, values, np.sign(values)))


def _whole(rounding: Callable[[Any], npt.NDArray[Any]], up: bool) -> Strict:
    def build(call: Call) -> Operation | None:
        source = call.args[0].type
        if source.is_integer:
            return total(lambda a: a)
        if source.kind is Kind.DECIMAL:
            return lambda a: exact(_stepped(decimals.unscaled(a), source.scale, up), 0, call.type)
        return lambda a: _as_long(rounding(a.to_numpy().astype(np.float64)))

    return build


def _stepped(values: npt.NDArray[Any], scale: int, up: bool) -> npt.NDArray[Any]:
    unit = 10**scale
    return decimals.ints(-(-value // unit) if up else value // unit for value in values.tolist())


def _as_long(values: Doubles) -> Outcome:
    """Whole doubles as BIGINTs: NaN counts as 0, what is out of range fails."""
    failed = (values >= LONG_EDGE) | (values < -LONG_EDGE)
    inside = np.where(failed | np.isnan(values), 0.0, values).astype(np.int64)
    return Outcome(series(inside, polars_type(BIGINT)), failed)


def _round(name: str) -> Strict:
    def build(call: Call) -> Operation | None:
        kind, digits = call.type, call.args[1]
        assert isinstance(digits, Literal)
        if kind.is_integer and digits.value >= 0:
            return total(lambda a, _: a)
        if kind.kind is not Kind.DOUBLE or not 0 <= digits.value <= _EXACT_POWER:
            return None
        by_digits = by_value(VALUES[name](call), [DOUBLE, INT], DOUBLE)
        return lambda a, n: Outcome(_rounded(a, n, 10.0**digits.value, by_digits))

    return build


def _rounded(column: pl.Series, digits: pl.Series, unit: float, by_digits: Operation) -> pl.Series:
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


def _arrow(name: str) -> Strict:
    """Arrow's function of that name, if this Arrow has it."""
    function = getattr(pc, name, None)
    if function is None:
        return lambda _: None
    return plain(lambda *columns: pl.Series(function(*(column.to_arrow() for column in columns))))


def _logarithm(name: str, above: float = 0.0) -> Strict:
    """NULL where there is none."""
    function = getattr(pc, name)

    def form(a: pl.Series) -> pl.Series:
        result = pl.Series(function(a.to_arrow()))
        defined = pl.Series(~(a.to_numpy() <= above))
        return result.zip_with(defined, result.clear(len(result)))

    return plain(form)


def _power(base: pl.Series, exponent: pl.Series) -> pl.Series:
    """Java's `pow`, which differs from C's for an infinite or missing exponent of ±1."""
    result = pc.power(base.to_arrow(), exponent.to_arrow()).to_numpy(zero_copy_only=False)
    x, y = base.to_numpy(), exponent.to_numpy()
    undefined = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
    return pl.Series(np.where(undefined, np.nan, result))


def _scaled(factor: float) -> Strict:
    return plain(lambda a: a * factor)


_natural = _logarithm("ln")

FUNCTIONS: dict[str, Strict] = {
    "abs": _abs,
    "sign": plain(_sign),
    "ceil": _whole(np.ceil, up=True),
    "floor": _whole(np.floor, up=False),
    "round": _round("round"),
    "bround": _round("bround"),
    "sqrt": plain(_root),
    "ln": _natural,
    "log": lambda call: _natural(call) if len(call.args) == 1 else None,
    "log10": _logarithm("log10"),
    "log2": _logarithm("log2"),
    "log1p": _logarithm("log1p", above=-1.0),
    "power": plain(_power),
    "degrees": _scaled(180.0 / math.pi),
    "radians": _scaled(math.pi / 180.0),
    **{
        name: _arrow(name)
        for name in ("exp", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
    },
}
