"""Functions of DATE and TIMESTAMP on columns: integer arithmetic on microseconds in UTC.

The arithmetic of the calendar and of most fields is that of `windrow.algebra.functions`, which works on
arrays of integers as it does on integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.expressions import Call, Literal
from windrow.algebra.functions.calendar import DAY, HOUR, MICROS, MINUTE, MOST_DAYS, civil, days
from windrow.algebra.types import decimal
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.functions import base
from windrow.windows.domain import Flags, Ints

_FIXED_UNITS = {
    "DAY": DAY,
    "HOUR": HOUR,
    "MINUTE": MINUTE,
    "SECOND": MICROS,
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_MONTHS_PER_UNIT = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_LONG_MAX = (1 << 63) - 1
_SECONDS = decimal(8, 6)


def _civil(day: Ints) -> tuple[Ints, Ints, Ints]:
    on_arrays: Any = civil
    year, month, day_of_month = on_arrays(day)
    return year, month, day_of_month


def _days(year: Ints, month: Ints, day: Ints | int) -> Ints:
    on_arrays: Any = days
    return np.asarray(on_arrays(year.copy(), month, day), dtype=np.int64)


def _month_length(year: Ints, month: Ints) -> Ints:
    last = month == 12
    return _days(year + last, np.where(last, 1, month + 1), 1) - _days(year, month, 1)


def _weekday(day: Ints) -> Ints:
    """0 for Monday; the epoch was a Thursday."""
    return (day + 3) % 7


def _of_time(field: Callable[[Ints], Ints]) -> base.Strict:
    return base.plain(lambda time: pl.Series(field(base.longs(time))))


def _first_day(unit: str, day: Ints) -> Ints:
    """The first day of the unit, a week or longer, that a day lies in."""
    if unit == "WEEK":
        return day - _weekday(day)
    year, month, _ = _civil(day)
    width = _MONTHS_PER_UNIT[unit]
    return _days(year, (month - 1) // width * width + 1, 1)


def _date_trunc(call: Call) -> base.Operation | None:
    unit = call.args[0]
    assert isinstance(unit, Literal)
    width = _FIXED_UNITS.get(unit.value)
    if len(call.args) > 2:
        return None

    def operation(_: pl.Series, time: pl.Series) -> base.Outcome:
        instants = base.longs(time)
        if width is not None:
            start = instants - instants % width
            return base.Outcome(pl.Series(start), start > instants)
        day = _first_day(unit.value, instants // DAY)
        out = day < -MOST_DAYS
        return base.Outcome(pl.Series(np.where(out, 0, day) * DAY), out)

    return operation


def _trunc(call: Call) -> base.Operation | None:
    unit = call.args[1]
    assert isinstance(unit, Literal)
    return lambda date, _: base.Outcome(base.from_days(_first_day(unit.value, base.longs(date) // DAY)))


def _within_int(day: Ints, known: Flags | bool = True) -> base.Outcome:
    """DATEs, checked: Spark counts days in 32 bits."""
    failed = ~((day >= -(1 << 31)) & (day < 1 << 31) & known)
    return base.Outcome(base.from_days(np.where(failed, 0, day)), failed)


def _add_months(date: pl.Series, months: pl.Series) -> base.Outcome:
    year, month, day = _civil(base.longs(date) // DAY)
    years, month = np.divmod(year * 12 + month - 1 + base.longs(months), 12)
    return _within_int(_days(years, month + 1, np.minimum(day, _month_length(years, month + 1))))


def _last_day(day: Ints) -> Ints:
    year, month, _ = _civil(day)
    return _days(year, month, _month_length(year, month))


def _make_date(year: pl.Series, month: pl.Series, day: pl.Series) -> base.Outcome:
    years, months, of_month = base.longs(year), base.longs(month), base.longs(day)
    known = (months >= 1) & (months <= 12)
    months = np.where(known, months, 1)
    known = known & (of_month >= 1) & (of_month <= _month_length(years, months))
    return _within_int(_days(years, months, np.where(known, of_month, 1)), known)


def _moved(date: pl.Series, by: Ints) -> pl.Series:
    return base.from_days((base.longs(date) // DAY + by).astype(np.int32).astype(np.int64))


def _times(unit: int) -> base.Operation:
    """Whole units of time as microseconds."""
    most = _LONG_MAX // unit

    def operation(count: pl.Series) -> base.Outcome:
        counted = base.longs(count)
        out = (counted > most) | (counted < -most)
        return base.Outcome(pl.Series(np.where(out, 0, counted) * unit), out)

    return operation


def _part(interval: Ints, unit: int, below: int | None = None) -> Ints:
    """A field of an interval, signed as the interval."""
    rest = interval if below is None else np.fmod(interval, below)
    return (rest - np.fmod(rest, unit)) // unit


def _exact_seconds(micros: Callable[[Ints], Ints]) -> base.Strict:
    return base.plain(lambda time: decimals.decimal_column(micros(base.longs(time)), _SECONDS))


_FIELDS = (
    *("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek"),
    *(
        "hour",
        "minute",
        "second",
        "unix_date",
        "unix_seconds",
        "unix_millis",
        "unix_micros",
        "timestamp_micros",
    ),
)

FUNCTIONS: dict[str, base.Strict] = {
    **dict.fromkeys(_FIELDS, base.as_on_integers),
    "exact_second": _exact_seconds(lambda time: time % MINUTE),
    "date_trunc": _date_trunc,
    "trunc": _trunc,
    "date_add": base.plain(lambda date, by: _moved(date, base.longs(by))),
    "date_sub": base.plain(lambda date, by: _moved(date, -base.longs(by))),
    "add_months": lambda _: _add_months,
    "datediff": base.plain(
        lambda a, b: pl.Series((base.longs(a) // DAY - base.longs(b) // DAY).astype(np.int32))
    ),
    "last_day": base.plain(lambda date: base.from_days(_last_day(base.longs(date) // DAY))),
    "make_date": lambda _: _make_date,
    "date_from_unix_date": base.plain(lambda day: base.from_days(base.longs(day))),
    "timestamp_seconds": lambda call: _times(MICROS) if call.args[0].type.is_integer else None,
    "timestamp_millis": lambda _: _times(1000),
    "interval_day": _of_time(lambda interval: _part(interval, DAY)),
    "interval_hour": _of_time(lambda interval: _part(interval, HOUR, DAY)),
    "interval_minute": _of_time(lambda interval: _part(interval, MINUTE, HOUR)),
    "interval_second": _exact_seconds(lambda interval: np.fmod(interval, MINUTE)),
}
