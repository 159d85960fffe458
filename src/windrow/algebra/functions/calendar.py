"""The proleptic Gregorian calendar over all of Spark's timestamps, which Python's `datetime` cannot hold.

Days and microseconds count from 1970-01-01 UTC. The arithmetic shifts the year to begin in March, so
that the leap day is the last day of a year (Howard Hinnant, *chrono-compatible low-level date algorithms*).

>>> civil(0), civil(-719_529)
((1970, 1, 1), (-1, 12, 31))
>>> timestamp_text(-1)
'1969-12-31 23:59:59.999999'
"""

from __future__ import annotations

from windrow.algebra.expressions import Call, Cast, Expression, Literal

MICROS = 1_000_000
MINUTE = 60 * MICROS
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: the last day, counted from 1970; the first is as far away
MOST_DAYS = ((1 << 63) - 1) // DAY

#: functions that only hand on the dates they are given
_CHOICES = frozenset({"case", "if", "coalesce", "greatest", "least"})

_ERA_DAYS = 146_097
_ERA_YEARS = 400


def may_leave_the_calendar(part: Expression) -> bool:
    """Whether a date of some row may be beyond the first day or the last."""
    if isinstance(part, Literal):
        return part.value is not None and abs(part.value) > MOST_DAYS * DAY
    return isinstance(part, Cast) or (isinstance(part, Call) and part.function not in _CHOICES)


def days(year: int, month: int, day: int) -> int:
    """Days since the epoch of a date; a day beyond the month runs on into the next.

    >>> days(2000, 3, 1) - days(2000, 2, 28)
    2
    """
    year -= month <= 2
    era, year_of_era = divmod(year, _ERA_YEARS)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - 719_468


def civil(since_epoch: int) -> tuple[int, int, int]:
    """Year, month and day of a day counted from the epoch."""
    era, day_of_era = divmod(since_epoch + 719_468, _ERA_DAYS)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = (shifted + 2) % 12 + 1
    return era * _ERA_YEARS + year_of_era + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """How many days the month has."""
    following = (year, month + 1) if month < 12 else (year + 1, 1)
    return days(*following, 1) - days(year, month, 1)


def date_text(micros: int) -> str:
    """A DATE as Spark writes it; years beyond four digits carry a sign."""
    year, month, day = civil(micros // DAY)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def timestamp_text(micros: int) -> str:
    """A TIMESTAMP as Spark writes it: no more digits of a second than it has."""
    return f"{date_text(micros)} {time_text(micros % DAY)}"


def time_text(micros: int) -> str:
    """A time of day, or a span below a day."""
    seconds, fraction = divmod(micros, MICROS)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if not fraction else f"{text}.{fraction:06}".rstrip("0")


def interval_text(micros: int) -> str:
    """An INTERVAL as Spark writes it.

    >>> interval_text(-90_000_000)
    "INTERVAL '-0 00:01:30' DAY TO SECOND"
    """
    size = abs(micros)
    return f"INTERVAL '{'-' if micros < 0 else ''}{size // DAY} {time_text(size % DAY)}' DAY TO SECOND"
