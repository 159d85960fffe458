"""CAST on columns: among numbers, truth values and times, and of whole numbers to text.

What reads or writes other text is left to executors that have rows.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.types import BIGINT, DataType, Kind
from windrow.kernels import decimals
from windrow.kernels.columns import polars_type
from windrow.kernels.functions.arithmetic import exact
from windrow.kernels.functions.base import Failure, Operation, Outcome, series, settled, spread, total
from windrow.kernels.functions.numeric import LONG_EDGE, LONG_MAX, written

if TYPE_CHECKING:
    import numpy.typing as npt

_MICROS = 1_000_000
_DAY = 86_400 * _MICROS
_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22


def caster(source: DataType, target: DataType) -> Operation | None:
    """The conversion of a column without NULLs; None if it is not known here."""
    if source == target:
        return total(lambda a: a)
    if source.kind is Kind.NULL:
        return total(lambda a: a.cast(polars_type(target)))
    make = _CASTS.get((_family(source), _family(target)))
    return make(source, target) if make else None


def never_fails(source: DataType, target: DataType) -> bool:
    """Whether every value of one type is one of the other."""
    if source == target or Kind.NULL in (source.kind, target.kind) or target.kind is Kind.STRING:
        return True
    if source.is_integer and target.is_integer:
        return target.bounds[1] >= source.bounds[1]
    return target.is_fractional or target.kind is Kind.BOOLEAN or source.kind is Kind.DATE


def _family(kind: DataType) -> str:
    if kind.is_integer:
        return "integer"
    return "real" if kind.is_fractional else kind.kind.value


def _bad(rows: npt.NDArray[np.bool_], source: DataType, target: DataType) -> Failure:
    return Failure(rows, f"a {source} does not fit {target}", "bad-cast", "TRY_CAST gives NULL instead")


def _plain(_: DataType, target: DataType) -> Operation:
    dtype = polars_type(target)
    return total(lambda a: a.cast(dtype))


def _integer_to_integer(source: DataType, target: DataType) -> Operation:
    low, high = target.bounds

    def operation(a: pl.Series) -> Outcome:
        values = a.to_numpy().astype(np.int64)
        bad = (values < low) | (values > high)
        return series(np.where(bad, 0, values), polars_type(target)), (_bad(bad, source, target),)

    return operation


def _integer_to_real(_: DataType, target: DataType) -> Operation:
    dtype = polars_type(target)
    return total(lambda a: a.cast(pl.Float64).cast(dtype))


def _real_to_integer(source: DataType, target: DataType) -> Operation:
    low, high = map(float, target.bounds)

    def operation(a: pl.Series) -> Outcome:
        values = a.to_numpy().astype(np.float64)
        bad = ~np.isfinite(values) | (np.floor(values) > high) | (np.ceil(values) < low)
        at_edge = values >= LONG_EDGE
        inside = np.where(bad | at_edge, 0.0, values).astype(np.int64)
        return series(np.where(at_edge, LONG_MAX, inside), polars_type(BIGINT)), (_bad(bad, source, target),)

    def narrowed(a: pl.Series) -> Outcome:
        result, failures = operation(a)
        return settled(result, failures, safe=True).cast(polars_type(target), strict=False), failures

    return narrowed


def _to_boolean(source: DataType, _: DataType) -> Operation:
    if source.kind is Kind.DECIMAL:
        return total(lambda a: pl.Series(np.asarray(decimals.unscaled(a) != 0, dtype=bool)))
    return total(lambda a: a != 0)


def _decimal_to_integer(source: DataType, target: DataType) -> Operation:
    unit, (low, high) = 10**source.scale, target.bounds

    def operation(a: pl.Series) -> Outcome:
        cut = [abs(v) // unit * (-1 if v < 0 else 1) for v in decimals.unscaled(a).tolist()]
        bad = np.array([not low <= value <= high for value in cut], dtype=bool)
        kept = [0 if out else value for value, out in zip(cut, bad, strict=True)]
        return pl.Series(kept, dtype=polars_type(target)), (_bad(bad, source, target),)

    return operation


def _decimal_to_real(source: DataType, target: DataType) -> Operation:
    dtype = polars_type(target)
    return total(lambda a: series(decimal_as_double(a, source), dtype))


def decimal_as_double(column: pl.Series, source: DataType) -> npt.NDArray[np.float64]:
    """Each decimal as the nearest double."""
    values = decimals.unscaled(column)
    small = values.dtype != object and (not len(values) or np.abs(values).max() <= _EXACT_DOUBLE)
    if small and source.scale <= _EXACT_POWER:
        return np.asarray(values / 10.0**source.scale, dtype=np.float64)
    unit = 10**source.scale
    return np.array([value / unit for value in values.tolist()], dtype=np.float64)


def _to_decimal(source: DataType, target: DataType) -> Operation:
    def operation(a: pl.Series) -> Outcome:
        values = decimals.unscaled(a) if source.kind is Kind.DECIMAL else a.cast(pl.Int64).to_numpy()
        result, failures = exact(values, source.scale, target)
        return result, (_bad(failures[0].rows, source, target),)

    return operation


def _real_to_decimal(source: DataType, target: DataType) -> Operation | None:
    if source.kind is Kind.FLOAT:
        return None
    scale = 400

    def operation(a: pl.Series) -> Outcome:
        """NaN and the infinities are NULL, not even an error in ANSI mode."""
        finite = a.is_finite()
        texts = [Decimal(written(value)) for value in a.filter(finite).to_list()]
        units = decimals.ints(_units(text, scale) for text in texts)
        result, failures = exact(units, scale, target)
        bad = spread(pl.Series(failures[0].rows), finite).fill_null(False).to_numpy()
        return spread(result, finite), (_bad(bad, source, target),)

    return operation


def _units(value: Decimal, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    size: int = int("".join(map(str, digits))) * 10 ** max(0, int(exponent) + scale)
    return -size if sign else size


def _integer_to_time(_: DataType, __: DataType) -> Operation:
    """Seconds, kept within what a TIMESTAMP can hold."""

    def convert(a: pl.Series) -> pl.Series:
        seconds, most = a.to_numpy().astype(np.int64), LONG_MAX // _MICROS
        micros = np.clip(seconds, -most, most) * _MICROS
        micros = np.where(seconds > most, LONG_MAX, np.where(seconds < -most, -LONG_MAX - 1, micros))
        return pl.Series(micros)

    return total(convert)


def _time_to_integer(source: DataType, target: DataType) -> Operation:
    narrow: Any = _integer_to_integer(source, target)
    return lambda a: narrow(pl.Series(a.to_numpy() // _MICROS))


def _time_to_date(_: DataType, __: DataType) -> Operation:
    return total(lambda a: pl.Series(a.to_numpy() // _DAY * _DAY))


_CASTS: dict[tuple[str, str], Callable[[DataType, DataType], Operation | None]] = {
    ("integer", "integer"): _integer_to_integer,
    ("integer", "real"): _integer_to_real,
    ("integer", "BOOLEAN"): _to_boolean,
    ("integer", "DECIMAL"): _to_decimal,
    ("integer", "TIMESTAMP"): _integer_to_time,
    ("integer", "STRING"): _plain,
    ("real", "integer"): _real_to_integer,
    ("real", "real"): _plain,
    ("real", "BOOLEAN"): _to_boolean,
    ("real", "DECIMAL"): _real_to_decimal,
    ("DECIMAL", "integer"): _decimal_to_integer,
    ("DECIMAL", "real"): _decimal_to_real,
    ("DECIMAL", "BOOLEAN"): _to_boolean,
    ("DECIMAL", "DECIMAL"): _to_decimal,
    ("BOOLEAN", "integer"): _plain,
    ("BOOLEAN", "real"): _plain,
    ("BOOLEAN", "DECIMAL"): _to_decimal,
    ("BOOLEAN", "STRING"): _plain,
    ("TIMESTAMP", "integer"): _time_to_integer,
    ("TIMESTAMP", "DATE"): _time_to_date,
    ("DATE", "TIMESTAMP"): _plain,
}
