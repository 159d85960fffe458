"""Functions of DATE and TIMESTAMP: integer arithmetic on microseconds in UTC."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from windrow.algebra.expressions import Call
from windrow.algebra.functions import calendar, time_patterns
from windrow.algebra.functions.values import arithmetic, numbers
from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.types import Kind
from windrow.errors import DataError
from windrow.windows.zones import zone

_FIXED_UNITS = {
    "DAY": calendar.DAY,
    "HOUR": calendar.HOUR,
    "MINUTE": calendar.MINUTE,
    "SECOND": calendar.MICROS,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_MONTHS_PER_UNIT = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}


def _year(date: int) -> int:
    return calendar.civil(date // calendar.DAY)[0]


def _month(date: int) -> int:
    return calendar.civil(date // calendar.DAY)[1]


def _weekday(date: int) -> int:
    """0 for Monday; the epoch was a Thursday."""
    return (date // calendar.DAY + 3) % 7


def _day_of_year(date: int) -> int:
    return date // calendar.DAY - calendar.days(_year(date), 1, 1) + 1


def _week(date: int) -> tuple[int, int]:
    """ISO year and week: both are those of the week's Thursday."""
    thursday = date // calendar.DAY - _weekday(date) + 3
    return calendar.civil(thursday)[0], (thursday - calendar.days(calendar.civil(thursday)[0], 1, 1)) // 7 + 1


def truncate(unit: str, time: int) -> int:
    """The start of the unit that a time lies in."""
    if unit in _FIXED_UNITS:
        return time - time % _FIXED_UNITS[unit]
    if unit == "WEEK":
        return (time // calendar.DAY - _weekday(time)) * calendar.DAY
    year, month, _ = calendar.civil(time // calendar.DAY)
    width = _MONTHS_PER_UNIT[unit]
    return calendar.days(year, (month - 1) // width * width + 1, 1) * calendar.DAY


def _truncated(unit: str, time: int, place: str = "UTC") -> int:
    """The same by the clocks of a zone; hours and less are counted as they pass."""
    own = zone(place)
    local = own.local(time)
    if _FIXED_UNITS.get(unit, calendar.DAY) < calendar.DAY:
        return time - local % _FIXED_UNITS[unit]
    return own.instant(truncate(unit, local))


def _read(text: str, pattern: str) -> int:
    found = time_patterns.reader(pattern)(text)
    if found is None:
        raise DataError(
            f"'{text}' is no time of the form {pattern}",
            code="bad-cast",
            hint="use try_to_timestamp for NULL",
        )
    return found


def _date(day: int) -> int:
    """A DATE, checked: Spark counts days in 32 bits."""
    if -(1 << 31) <= day < 1 << 31:
        return day * calendar.DAY
    raise numbers.overflow("the date")


def add_months(date: int, months: int) -> int:
    """The same day of a later month, or that month's last.

    >>> add_months(calendar.days(2024, 1, 31) * calendar.DAY, 1) == calendar.days(2024, 2, 29) * calendar.DAY
    True
    """
    year, month, day = calendar.civil(date // calendar.DAY)
    years, month = divmod(year * 12 + month - 1 + months, 12)
    return _date(calendar.days(years, month + 1, min(day, calendar.month_length(years, month + 1))))


def _last_day(date: int) -> int:
    year, month, _ = calendar.civil(date // calendar.DAY)
    return calendar.days(year, month, calendar.month_length(year, month)) * calendar.DAY


def _moved(date: int, by: int) -> int:
    return arithmetic.wrapped(date // calendar.DAY + by, 32) * calendar.DAY


def _make_date(year: int, month: int, day: int) -> int:
    if 1 <= month <= 12 and 1 <= day <= calendar.month_length(year, month):
        return _date(calendar.days(year, month, day))
    raise DataError(f"there is no date {year}-{month}-{day}", code="bad-date")


def _timestamp_seconds(call: Call) -> Callable[..., Value]:
    kind = call.args[0].type
    if kind.is_integer:
        return lambda seconds: numbers.long(seconds * calendar.MICROS, "the time")
    if kind.kind is Kind.DECIMAL:
        return _exact_seconds
    return lambda seconds: numbers.saturated(seconds * calendar.MICROS) if math.isfinite(seconds) else None


def _exact_seconds(seconds: Decimal) -> int:
    micros = numbers.EXACT.multiply(seconds, Decimal(calendar.MICROS))
    if micros != micros.to_integral_value():
        raise DataError(
            f"{seconds:f} seconds are no whole number of microseconds", code="inexact", hint="round(…, 6)"
        )
    return numbers.long(int(micros), "the time")


def _part(unit: int, below: int | None) -> Callable[[int], int]:
    """A field of an interval, signed as the interval."""

    def field(interval: int) -> int:
        size = abs(interval) if below is None else abs(interval) % below
        return int(math.copysign(1, interval)) * (size // unit)

    return field


FUNCTIONS: dict[str, Strict] = {
    "year": plain(_year),
    "quarter": plain(lambda date: (_month(date) + 2) // 3),
    "month": plain(_month),
    "day": plain(lambda date: calendar.civil(date // calendar.DAY)[2]),
    "dayofweek": plain(lambda date: (_weekday(date) + 1) % 7 + 1),
    "weekday": plain(_weekday),
    "dayofyear": plain(_day_of_year),
    "weekofyear": plain(lambda date: _week(date)[1]),
    "yearofweek": plain(lambda date: _week(date)[0]),
    "hour": plain(lambda time: time // calendar.HOUR % 24),
    "minute": plain(lambda time: time // calendar.MINUTE % 60),
    "second": plain(lambda time: time // calendar.MICROS % 60),
    "exact_second": plain(lambda time: Decimal(time % calendar.MINUTE).scaleb(-6)),
    "date_trunc": plain(lambda unit, time, *place: numbers.long(_truncated(unit, time, *place), "the time")),
    "to_timestamp": plain(_read),
    "try_to_timestamp": plain(lambda text, pattern: time_patterns.reader(pattern)(text)),
    "from_utc_timestamp": plain(lambda time, name: numbers.long(zone(name).local(time), "the time")),
    "to_utc_timestamp": plain(lambda time, name: numbers.long(zone(name).shifted(time), "the time")),
    "date_format": plain(lambda time, pattern: time_patterns.written(time_patterns.compiled(pattern), time)),
    "trunc": plain(lambda date, unit: truncate(unit, date)),
    "date_add": plain(_moved),
    "date_sub": plain(lambda date, by: _moved(date, -by)),
    "add_months": plain(add_months),
    "datediff": plain(lambda end, start: arithmetic.wrapped((end - start) // calendar.DAY, 32)),
    "last_day": plain(_last_day),
    "make_date": plain(_make_date),
    "unix_date": plain(lambda date: date // calendar.DAY),
    "date_from_unix_date": plain(lambda day: day * calendar.DAY),
    "unix_seconds": plain(lambda time: time // calendar.MICROS),
    "unix_millis": plain(lambda time: time // 1000),
    "unix_micros": plain(lambda time: time),
    "timestamp_seconds": _timestamp_seconds,
    "timestamp_millis": plain(lambda millis: numbers.long(millis * 1000, "the time")),
    "timestamp_micros": plain(lambda micros: micros),
    "from_unixtime": plain(
        lambda seconds: calendar.timestamp_text(
            arithmetic.wrapped(seconds * calendar.MICROS, 64) // calendar.MICROS * calendar.MICROS
        )
    ),
    "interval_day": plain(_part(calendar.DAY, None)),
    "interval_hour": plain(_part(calendar.HOUR, calendar.DAY)),
    "interval_minute": plain(_part(calendar.MINUTE, calendar.HOUR)),
    "interval_second": plain(lambda interval: Decimal(_part(1, calendar.MINUTE)(interval)).scaleb(-6)),
}
