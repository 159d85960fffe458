"""CAST from every type to every type that Spark's ANSI mode allows.

>>> from windrow.algebra.types import DOUBLE, INT, STRING
>>> caster(STRING, INT, safe=False)(" 12 ")
12
>>> caster(DOUBLE, STRING, safe=False)(1e10)
'1.0E10'

Values as Spark writes them as text: Java's doubles, plain decimals, times without needless zeros.

Text read as values, by the grammar of Spark's ANSI casts. None means: it is not of that form.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from windrow.algebra.functions import calendar
from windrow.algebra.functions.values import numbers
from windrow.algebra.functions.values.base import Value, attempt
from windrow.algebra.types import INTEGER_BITS, DataType, Kind
from windrow.errors import DataError

if TYPE_CHECKING:
    Converter = Callable[[Value], Value]
    Maker = Callable[[DataType, DataType], Converter]


def double_text(value: float) -> str:
    """A double as Java's `Double.toString`.

    >>> double_text(1e10), double_text(0.001), double_text(5e-324)
    ('1.0E10', '0.001', '4.9E-324')
    """
    return _java(value, shortest(value))


def float_text(value: float) -> str:
    """A 32-bit float as Java's `Float.toString`: the fewest digits that give it back."""
    return _java(value, shortest_single(value))


def shortest(value: float) -> str:
    """The fewest digits that give the double back, in scientific form."""
    text = f"{value:.1e}"
    if not math.isfinite(value) or float(text) == value:
        return text
    digits, _, exponent = repr(value).partition("e")
    return f"{digits}e{exponent}" if exponent else f"{value:.{_significant(digits) - 1}e}"


def shortest_single(value: float) -> str:
    """The same for 32-bit floats."""
    return next(
        (text for p in range(1, 9) if numbers.single(float(text := f"{value:.{p}e}")) == value),
        f"{value:.9e}",
    )


def _significant(digits: str) -> int:
    return len(digits.lstrip("-").replace(".", "").strip("0")) or 1


def _java(value: float, scientific: str) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    mantissa, _, power = scientific.partition("e")
    exponent = int(power)
    sign, digits = mantissa[: mantissa.startswith("-")], mantissa.lstrip("-").replace(".", "").rstrip("0")
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


WRITERS: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    **dict.fromkeys(INTEGER_BITS, str),
    Kind.FLOAT: float_text,
    Kind.DOUBLE: double_text,
    Kind.DECIMAL: lambda value: f"{value:f}",
    Kind.BINARY: lambda value: value.decode("utf-8", "replace"),
    Kind.DATE: calendar.date_text,
    Kind.TIMESTAMP: calendar.timestamp_text,
    Kind.INTERVAL: calendar.interval_text,
}


#: what Spark trims off text that is to be a number, a truth value or a time
BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_JAVA_BLANK = "".join(map(chr, range(0x21)))

_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")  # digits of any script, as in Java
_NAMED_REALS = {
    "nan": math.nan,
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
_TRUTH = dict.fromkeys(("t", "true", "y", "yes", "1"), True) | dict.fromkeys(
    ("f", "false", "n", "no", "0"), False
)
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?)([0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T]([0-9]{1,2})"
    r"(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?([^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?|:([0-9]))?")
_INTERVAL = re.compile(
    r"(?:INTERVAL\s+([+-]?)')?([+-]?)([0-9]{1,9}) ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?"
    r"(?:'\s+DAY\s+TO\s+SECOND)?",
    re.IGNORECASE,
)
_UTC_NAMES = frozenset({"Z", "UTC", "GMT", "UT"})
_GREATEST_OFFSET = 18 * calendar.HOUR


def integer(text: str) -> int | None:
    """A whole number; a fraction is not cut off silently."""
    text = text.strip(BLANK)
    return int(text) if _INTEGER.fullmatch(text) and len(text) < 400 else None


def double(text: str) -> float | None:
    """A double, by Java's grammar: `1e3`, `.5`, `1.0d`, `NaN`, `inf` in any case."""
    text = text.strip(_JAVA_BLANK)
    if _REAL.fullmatch(text):
        return numbers.one_nan(float(text if text[-1:] in "yN" else text.rstrip("fFdD")))
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.rstrip("fFdD"))
    return _NAMED_REALS.get(text.lower())


def float_(text: str) -> float | None:
    value = double(text)
    return None if value is None else numbers.single(value)


def decimal(text: str) -> Decimal | None:
    text = text.strip(_JAVA_BLANK)
    return numbers.EXACT.create_decimal(text) if _DECIMAL.fullmatch(text) and len(text) < 400 else None


def boolean(text: str) -> bool | None:
    return _TRUTH.get(text.strip(BLANK).lower())


def date(text: str) -> int | None:
    """`y-m-d`, whatever follows a blank or T after it, or less of it."""
    match = _DATE.fullmatch(text.strip(BLANK))
    if not match:
        return None
    sign, year, month, day = match.groups()
    day_number = _day(sign, year, month, day)
    return None if day_number is None or not -(1 << 31) <= day_number < 1 << 31 else day_number * calendar.DAY


def timestamp(text: str) -> int | None:
    """A date, then perhaps a time down to microseconds, then perhaps a zone. A bare time is refused:
    it would mean the day on which the query happens to run."""
    match = _TIMESTAMP.fullmatch(text.strip(BLANK))
    if not match:
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = match.groups()
    day_number = _day(sign, year, month, day)
    clock = _clock(hour, minute, second)
    if day_number is None or clock is None:
        return None
    local = day_number * calendar.DAY + clock + int((fraction or "")[:6].ljust(6, "0"))
    offset = _offset(zone.strip(), local) if zone else 0
    if offset is None or not numbers.LONG_MIN <= local - offset <= numbers.LONG_MAX:
        return None
    return local - offset


def interval(text: str) -> int | None:
    """`d hh:mm:ss.ffffff`, bare or as an INTERVAL … DAY TO SECOND literal."""
    match = _INTERVAL.fullmatch(text.strip(BLANK))
    if not match or (match[1] is None) != (not text.strip(BLANK).endswith(("D", "d"))):
        return None
    outer, inner, day, hour, minute, second, fraction = match.groups()
    clock = _clock(hour, minute, second)
    if clock is None:
        return None
    size = int(day) * calendar.DAY + clock + int((fraction or "")[:6].ljust(6, "0"))
    return size if (outer == "-") == (inner == "-") else -size


def _day(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    y, m, d = int(sign + year), int(month or 1), int(day or 1)
    return calendar.days(y, m, d) if 1 <= m <= 12 and 1 <= d <= calendar.month_length(y, m) else None


def _clock(hour: str | None, minute: str | None, second: str | None) -> int | None:
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    return (
        h * calendar.HOUR + m * calendar.MINUTE + s * calendar.MICROS
        if h < 24 and m < 60 and s < 60
        else None
    )


def _offset(zone: str, local: int) -> int | None:
    """How far local time is ahead of UTC."""
    if zone in _UTC_NAMES:
        return 0
    if match := _OFFSET.fullmatch(zone):
        sign, hours, minutes, seconds, minute = match.groups()
        if int(minutes or 0) > 59 or int(seconds or 0) > 59:
            return None
        size = (
            int(hours) * calendar.HOUR
            + int(minutes or minute or 0) * calendar.MINUTE
            + int(seconds or 0) * calendar.MICROS
        )
        return None if size > _GREATEST_OFFSET else -size if sign == "-" else size
    return _region_offset(zone, local)


def _region_offset(zone: str, local: int) -> int | None:
    if "/" not in zone or not 1 < calendar.civil(local // calendar.DAY)[0] < 9999:
        return None
    try:
        region = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return None
    wall = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(microseconds=local)
    offset = wall.replace(tzinfo=region).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)


def caster(source: DataType, target: DataType, safe: bool) -> Callable[[Value], Value]:
    """The conversion of a value that is not NULL; `safe` gives NULL where it fails."""
    if source == target or Kind.NULL in (source.kind, target.kind):
        return lambda value: value
    convert = CASTS[source.kind][target.kind](source, target)
    return attempt(convert) if safe else convert


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
    return _checked(_text_to(integer)(source, target), source, target)


def _number_to_integer(source: DataType, target: DataType) -> Converter:
    return _checked(numbers.truncated if source.kind is Kind.DECIMAL else int, source, target)


def _real_to_integer(source: DataType, target: DataType) -> Converter:
    """Cut off after the point. 2⁶³ itself is taken for the greatest BIGINT, as Java does."""
    low, high = map(float, target.bounds)

    def convert(value: float) -> int:
        if not math.isfinite(value) or not (math.floor(value) <= high and math.ceil(value) >= low):
            raise _bad(value, source, target)
        return numbers.saturated(value)

    return convert


def _time_to_integer(source: DataType, target: DataType) -> Converter:
    return _checked(lambda value: value // calendar.MICROS, source, target)


def _to_decimal(exact: Callable[[Value], Decimal | None]) -> Maker:
    def make(source: DataType, target: DataType) -> Converter:
        def convert(value: Value) -> Decimal | None:
            number = exact(value)
            if number is None:
                return None
            result = numbers.fitted(number, target)
            if result is None:
                raise _bad(value, source, target)
            return result if result else result.copy_abs()

        return convert

    return make


def _text_to_decimal(source: DataType, target: DataType) -> Converter:
    read, fit = (
        _text_to(decimal)(source, target),
        _to_decimal(lambda value: value)(source, target),
    )
    return lambda value: fit(read(value))


def _real_to_exact(value: float) -> Decimal | None:
    # Not an error in Spark, not even in ANSI mode: NaN and the infinities are NULL as a decimal.
    return Decimal(shortest(value)) if math.isfinite(value) else None


def _real_to_timestamp(source: DataType, target: DataType) -> Converter:
    def convert(value: float) -> int:
        micros = value * calendar.MICROS
        if not math.isfinite(micros) or not (
            math.floor(micros) <= numbers.LONG_MAX and math.ceil(micros) >= numbers.LONG_MIN
        ):
            raise _bad(value, source, target)
        return numbers.saturated(micros)

    return convert


def _always(convert: Converter) -> Maker:
    return lambda source, target: convert


_to_boolean = _always(lambda value: value != 0)
_to_double = _always(float)
_to_float = _always(lambda value: numbers.single(value))


def _from(integer: Maker, **others: Maker) -> dict[Kind, Maker]:
    return dict.fromkeys(INTEGER_BITS, integer) | {Kind[name]: maker for name, maker in others.items()}


_FROM_INTEGER = _from(
    _number_to_integer,
    BOOLEAN=_to_boolean,
    FLOAT=_to_float,
    DOUBLE=_to_double,
    DECIMAL=_to_decimal(Decimal),
    TIMESTAMP=_always(lambda value: max(numbers.LONG_MIN, min(numbers.LONG_MAX, value * calendar.MICROS))),
)
_FROM_REAL = _from(
    _real_to_integer,
    BOOLEAN=_to_boolean,
    FLOAT=_to_float,
    DOUBLE=_to_double,
    DECIMAL=_to_decimal(_real_to_exact),
    TIMESTAMP=_real_to_timestamp,
)
CASTS: dict[Kind, dict[Kind, Maker]] = {
    **dict.fromkeys(INTEGER_BITS, _FROM_INTEGER),
    **dict.fromkeys((Kind.FLOAT, Kind.DOUBLE), _FROM_REAL),
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
        TIMESTAMP=_always(lambda value: numbers.long(numbers.truncated(value * calendar.MICROS))),
    ),
    Kind.STRING: _from(
        _text_to_integer,
        BOOLEAN=_text_to(boolean),
        FLOAT=_text_to(float_),
        DOUBLE=_text_to(double),
        DECIMAL=_text_to_decimal,
        BINARY=_always(lambda value: value.encode()),
        DATE=_text_to(date),
        TIMESTAMP=_text_to(timestamp),
        INTERVAL=_text_to(interval),
    ),
    Kind.TIMESTAMP: _from(
        _time_to_integer,
        FLOAT=_always(lambda value: numbers.single(value / calendar.MICROS)),
        DOUBLE=_always(lambda value: value / calendar.MICROS),
        DECIMAL=_to_decimal(lambda value: Decimal(value).scaleb(-6)),
        DATE=_always(lambda value: value // calendar.DAY * calendar.DAY),
    ),
    Kind.DATE: {Kind.TIMESTAMP: _always(lambda value: numbers.long(value, "the date as TIMESTAMP"))},
    Kind.INTERVAL: {},
    Kind.BINARY: {},
}
for _source, _targets in CASTS.items():
    if _source is not Kind.STRING:
        _targets[Kind.STRING] = lambda source, target: WRITERS[source.kind]
