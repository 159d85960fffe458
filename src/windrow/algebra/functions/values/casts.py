"""CAST from every type to every type that Spark's ANSI mode allows.

>>> from windrow.algebra.types import DOUBLE, INT, STRING
>>> caster(STRING, INT, safe=False)(" 12 ")
12
>>> caster(DOUBLE, STRING, safe=False)(1e10)
'1.0E10'
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from windrow.algebra.functions.calendar import DAY, MICROS
from windrow.algebra.functions.values import text_reader as text_reading
from windrow.algebra.functions.values.base import Value
from windrow.algebra.functions.values.numbers import (
    LONG_MAX,
    LONG_MIN,
    fitted,
    long,
    saturated,
    single,
    truncated,
)
from windrow.algebra.functions.values.text_forms import WRITERS, shortest
from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    Converter = Callable[[Value], Value]
    Maker = Callable[[DataType, DataType], Converter]


def caster(source: DataType, target: DataType, safe: bool) -> Callable[[Value], Value]:
    """The conversion of a value that is not NULL; `safe` gives NULL where it fails."""
    convert = _converter(source, target)
    if not safe:
        return convert

    def attempt(value: Value) -> Value:
        try:
            return convert(value)
        except DataError:
            return None

    return attempt


def _converter(source: DataType, target: DataType) -> Converter:
    if source == target or Kind.NULL in (source.kind, target.kind):
        return lambda value: value
    maker = _FROM.get(source.kind, {}).get(target.kind)
    assert maker is not None, f"no cast from {source} to {target}"
    return maker(source, target)


def _bad(value: Value, source: DataType, target: DataType) -> DataError:
    shown = repr(value) if isinstance(value, str) else WRITERS.get(source.kind, str)(value)
    return DataError(
        f"{shown} is no {target}" if isinstance(value, str) else f"{shown} does not fit {target}",
        code="bad-cast",
        hint="TRY_CAST gives NULL instead",
    )


def _text_to(read: Callable[[str], Value]) -> Maker:
    def make(source: DataType, target: DataType) -> Converter:
        def convert(value: str) -> Value:
            result = read(value)
            if result is None:
                raise _bad(value, source, target)
            return result

        return convert

    return make


def _checked(convert: Callable[[Value], int], source: DataType, target: DataType) -> Converter:
    """An integer result that must lie within the target's bounds."""
    low, high = target.bounds

    def check(value: Value) -> int:
        result = convert(value)
        if low <= result <= high:
            return result
        raise _bad(value, source, target)

    return check


def _text_to_integer(source: DataType, target: DataType) -> Converter:
    return _checked(_text_to(text_reading.integer)(source, target), source, target)


def _number_to_integer(source: DataType, target: DataType) -> Converter:
    return _checked(truncated if source.kind is Kind.DECIMAL else int, source, target)


def _real_to_integer(source: DataType, target: DataType) -> Converter:
    """Cut off after the point. 2⁶³ itself is taken for the greatest BIGINT, as Java does."""
    low, high = map(float, target.bounds)

    def convert(value: float) -> int:
        if not math.isfinite(value) or not (math.floor(value) <= high and math.ceil(value) >= low):
            raise _bad(value, source, target)
        return saturated(value)

    return convert


def _time_to_integer(source: DataType, target: DataType) -> Converter:
    return _checked(lambda value: value // MICROS, source, target)


def _to_decimal(exact: Callable[[Value], Decimal | None]) -> Maker:
    def make(source: DataType, target: DataType) -> Converter:
        def convert(value: Value) -> Decimal | None:
            number = exact(value)
            if number is None:
                return None
            result = fitted(number, target)
            if result is None:
                raise _bad(value, source, target)
            return result if result else result.copy_abs()

        return convert

    return make


def _text_to_decimal(source: DataType, target: DataType) -> Converter:
    read, fit = (
        _text_to(text_reading.decimal)(source, target),
        _to_decimal(lambda value: value)(source, target),
    )
    return lambda value: fit(read(value))


def _real_to_exact(value: float) -> Decimal | None:
    # Not an error in Spark, not even in ANSI mode: NaN and the infinities are NULL as a decimal.
    return Decimal(shortest(value)) if math.isfinite(value) else None


def _real_to_timestamp(source: DataType, target: DataType) -> Converter:
    def convert(value: float) -> int:
        micros = value * MICROS
        if not math.isfinite(micros) or not (
            math.floor(micros) <= LONG_MAX and math.ceil(micros) >= LONG_MIN
        ):
            raise _bad(value, source, target)
        return saturated(micros)

    return convert


def _always(convert: Converter) -> Maker:
    return lambda source, target: convert


_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
_REALS = (Kind.FLOAT, Kind.DOUBLE)
_to_boolean = _always(lambda value: value != 0)
_to_double = _always(float)
_to_float = _always(lambda value: single(value))


def _from(integer: Maker, **others: Maker) -> dict[Kind, Maker]:
    return dict.fromkeys(_INTEGERS, integer) | {Kind[name]: maker for name, maker in others.items()}


_FROM_INTEGER = _from(
    _number_to_integer,
    BOOLEAN=_to_boolean,
    FLOAT=_to_float,
    DOUBLE=_to_double,
    DECIMAL=_to_decimal(Decimal),
    TIMESTAMP=_always(lambda value: max(LONG_MIN, min(LONG_MAX, value * MICROS))),
)
_FROM_REAL = _from(
    _real_to_integer,
    BOOLEAN=_to_boolean,
    FLOAT=_to_float,
    DOUBLE=_to_double,
    DECIMAL=_to_decimal(_real_to_exact),
    TIMESTAMP=_real_to_timestamp,
)
_FROM: dict[Kind, dict[Kind, Maker]] = {
    **dict.fromkeys(_INTEGERS, _FROM_INTEGER),
    **dict.fromkeys(_REALS, _FROM_REAL),
    Kind.BOOLEAN: _from(
        _always(int),
        FLOAT=_to_double,
        DOUBLE=_to_double,
        DECIMAL=_to_decimal(lambda value: Decimal(int(value))),
    ),
    Kind.DECIMAL: _from(
        _number_to_integer,
        BOOLEAN=_to_boolean,
        FLOAT=_to_float,
        DOUBLE=_to_double,
        DECIMAL=_to_decimal(lambda value: value),
        TIMESTAMP=_always(lambda value: long(truncated(value * MICROS))),
    ),
    Kind.STRING: _from(
        _text_to_integer,
        BOOLEAN=_text_to(text_reading.boolean),
        FLOAT=_text_to(text_reading.float_),
        DOUBLE=_text_to(text_reading.double),
        DECIMAL=_text_to_decimal,
        BINARY=_always(lambda value: value.encode()),
        DATE=_text_to(text_reading.date),
        TIMESTAMP=_text_to(text_reading.timestamp),
        INTERVAL=_text_to(text_reading.interval),
    ),
    Kind.TIMESTAMP: _from(
        _time_to_integer,
        FLOAT=_always(lambda value: single(value / MICROS)),
        DOUBLE=_always(lambda value: value / MICROS),
        DECIMAL=_to_decimal(lambda value: Decimal(value).scaleb(-6)),
        DATE=_always(lambda value: value // DAY * DAY),
    ),
    Kind.DATE: {Kind.TIMESTAMP: _always(lambda value: long(value, "the date as TIMESTAMP"))},
    Kind.INTERVAL: {},
    Kind.BINARY: {},
}
for _source, _targets in _FROM.items():
    if _source is not Kind.STRING:
        _targets[Kind.STRING] = lambda source, target: WRITERS[source.kind]
