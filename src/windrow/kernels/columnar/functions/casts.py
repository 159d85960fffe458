"""CAST on columns: among numbers, truth values and times, and of text in its plainest forms.

What reads or writes other text is done value by value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from windrow.algebra.functions.calendar import DAY, MICROS
from windrow.algebra.functions.values import casts as values
from windrow.algebra.types import DataType, Kind
from windrow.kernels.columnar import columns, decimals
from windrow.kernels.columnar.functions import arithmetic, base
from windrow.windows.domain import Doubles

_EXACT_DOUBLE = 1 << 53
_EXACT_POWER = 22
#: text that polars reads as Spark does
_PLAIN_INTEGER = r"\A-?[0-9]{1,18}\z"
_PLAIN_REAL = r"\A-?[0-9]{1,15}(\.[0-9]{1,15})?\z"

#: a column of one type as one of another
Conversion = Callable[[pl.Series, DataType, DataType], base.Outcome]


def caster(source: DataType, target: DataType) -> base.Operation:
    """The conversion of a column without NULLs."""
    if source == target:
        return base.total(lambda a: a)
    cast = _CASTS.get((_family(source), _family(target)))
    return (lambda a: cast(a, source, target)) if cast else _by_value(source, target)


def meaning(source: DataType, target: DataType) -> Callable[[object], object]:
    """The conversion of one value."""
    return values.caster(source, target, safe=False)


def _by_value(source: DataType, target: DataType) -> base.Operation:
    return base.by_value(meaning(source, target), [source], target)


def never_fails(source: DataType, target: DataType) -> bool:
    """Whether every value of one type is one of the other."""
    if source == target or Kind.NULL in (source.kind, target.kind) or target.kind is Kind.STRING:
        return True
    if source.kind is Kind.STRING:
        return target.kind is Kind.BINARY
    if source.kind is Kind.BOOLEAN:
        return target.kind is not Kind.DECIMAL
    if source.is_integer and target.is_integer:
        return target.bounds[1] >= source.bounds[1]
    if target.kind is Kind.TIMESTAMP:
        return source.is_integer or source.kind is Kind.DATE
    return target.is_fractional or target.kind is Kind.BOOLEAN


def _family(kind: DataType) -> str:
    if kind.is_integer:
        return "integer"
    return "real" if kind.is_fractional else kind.kind.value


def _total(cast: Callable[[pl.Series, DataType, DataType], pl.Series]) -> Conversion:
    """A conversion that never fails."""
    return lambda a, source, target: base.Outcome(cast(a, source, target))


@_total
def _plain(a: pl.Series, _: DataType, target: DataType) -> pl.Series:
    return a.cast(columns.polars_type(target))


def _integer_to_integer(a: pl.Series, _: DataType, target: DataType) -> base.Outcome:
    numbers, (low, high) = base.longs(a), target.bounds
    failed = (numbers < low) | (numbers > high)
    return base.Outcome(base.series(np.where(failed, 0, numbers), columns.polars_type(target)), failed)


def _real_to_integer(a: pl.Series, _: DataType, target: DataType) -> base.Outcome:
    """Cut off after the point. 2⁶³ itself is taken for the greatest BIGINT, as Java does."""
    numbers, (low, high) = a.to_numpy().astype(np.float64), map(float, target.bounds)
    failed = ~np.isfinite(numbers) | (np.floor(numbers) > high) | (np.ceil(numbers) < low)
    at_edge = ~failed & (numbers == arithmetic.LONG_EDGE)
    inside = np.where(failed | at_edge, 0.0, numbers).astype(np.int64)
    return base.Outcome(
        base.series(np.where(at_edge, arithmetic.LONG_MAX, inside), columns.polars_type(target)), failed
    )


@_total
def _decimal_to_boolean(a: pl.Series, _: DataType, __: DataType) -> pl.Series:
    return pl.Series(np.asarray(decimals.unscaled(a) != 0, dtype=bool))


def _decimal_to_integer(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    unit, (low, high) = 10**source.scale, target.bounds
    cut = [abs(v) // unit * (-1 if v < 0 else 1) for v in decimals.unscaled(a).tolist()]
    bad = np.array([not low <= value <= high for value in cut], dtype=bool)
    kept = [0 if out else value for value, out in zip(cut, bad, strict=True)]
    return base.Outcome(pl.Series(kept, dtype=columns.polars_type(target)), bad)


@_total
def _decimal_to_real(a: pl.Series, source: DataType, target: DataType) -> pl.Series:
    return base.series(decimal_as_double(a, source), columns.polars_type(target))


def decimal_as_double(column: pl.Series, source: DataType) -> Doubles:
    """Each decimal as the nearest double."""
    values = decimals.unscaled(column)
    small = values.dtype != object and (not len(values) or np.abs(values).max() <= _EXACT_DOUBLE)
    if small and source.scale <= _EXACT_POWER:
        return np.asarray(values / 10.0**source.scale, dtype=np.float64)
    unit = 10**source.scale
    return np.array([value / unit for value in values.tolist()], dtype=np.float64)


def _to_decimal(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    units = decimals.unscaled(a) if source.kind is Kind.DECIMAL else a.cast(pl.Int64).to_numpy()
    return arithmetic.exact(units, 6 if source.kind is Kind.TIMESTAMP else source.scale, target)


@_total
def _integer_to_time(a: pl.Series, _: DataType, __: DataType) -> pl.Series:
    """Seconds, kept within what a TIMESTAMP can hold."""
    seconds, most = base.longs(a), arithmetic.LONG_MAX // MICROS
    micros = np.clip(seconds, -most, most) * MICROS
    return pl.Series(
        np.where(
            seconds > most, arithmetic.LONG_MAX, np.where(seconds < -most, -arithmetic.LONG_MAX - 1, micros)
        )
    )


def _time_to_integer(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    return _integer_to_integer(pl.Series(a.to_numpy() // MICROS), source, target)


def _time_to_real(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    micros = a.to_numpy()
    if len(micros) and max(abs(int(micros.min())), abs(int(micros.max()))) > _EXACT_DOUBLE:
        return _by_value(source, target)(a)
    return base.Outcome(base.series(micros / MICROS, columns.polars_type(target)))


def _text_to_integer(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    """Text that is all in plain form as polars reads it; other text value by value."""
    if a.str.contains(_PLAIN_INTEGER).all():
        return _integer_to_integer(a.cast(pl.Int64), source, target)
    return _by_value(source, target)(a)


def _text_to_real(a: pl.Series, source: DataType, target: DataType) -> base.Outcome:
    plain = a.str.contains(_PLAIN_REAL).all()
    return base.Outcome(a.cast(pl.Float64)) if plain else _by_value(source, target)(a)


_CASTS: dict[tuple[str, str], Conversion] = {
    ("integer", "integer"): _integer_to_integer,
    ("integer", "real"): _total(lambda a, _, target: a.cast(pl.Float64).cast(columns.polars_type(target))),
    ("integer", "BOOLEAN"): _total(lambda a, _, __: a != 0),
    ("integer", "DECIMAL"): _to_decimal,
    ("integer", "TIMESTAMP"): _integer_to_time,
    ("integer", "STRING"): _plain,
    ("real", "integer"): _real_to_integer,
    ("real", "real"): _plain,
    ("real", "BOOLEAN"): _total(lambda a, _, __: a != 0),
    ("DECIMAL", "integer"): _decimal_to_integer,
    ("DECIMAL", "real"): _decimal_to_real,
    ("DECIMAL", "BOOLEAN"): _decimal_to_boolean,
    ("DECIMAL", "DECIMAL"): _to_decimal,
    ("DECIMAL", "STRING"): _plain,
    ("BOOLEAN", "integer"): _plain,
    ("BOOLEAN", "real"): _plain,
    ("BOOLEAN", "DECIMAL"): _to_decimal,
    ("BOOLEAN", "STRING"): _plain,
    ("TIMESTAMP", "integer"): _time_to_integer,
    ("TIMESTAMP", "real"): _time_to_real,
    ("TIMESTAMP", "DECIMAL"): _to_decimal,
    ("TIMESTAMP", "DATE"): _total(lambda a, _, __: base.from_days(a.to_numpy() // DAY)),
    ("DATE", "TIMESTAMP"): _plain,
    ("STRING", "integer"): _text_to_integer,
    ("STRING", "real"): _text_to_real,
    ("STRING", "BINARY"): _plain,
}
