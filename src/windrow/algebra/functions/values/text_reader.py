"""Text read as values, by the grammar of Spark's ANSI casts. None means: it is not of that form."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from windrow.algebra.functions.calendar import DAY, HOUR, MICROS, MINUTE, civil, days, month_length
from windrow.algebra.functions.values.numbers import EXACT, LONG_MAX, LONG_MIN, one_nan, single

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
_GREATEST_OFFSET = 18 * HOUR


def integer(text: str) -> int | None:
    """A whole number; a fraction is not cut off silently."""
    text = text.strip(BLANK)
    return int(text) if _INTEGER.fullmatch(text) and len(text) < 400 else None


def double(text: str) -> float | None:
    """A double, by Java's grammar: `1e3`, `.5`, `1.0d`, `NaN`, `inf` in any case."""
    text = text.strip(_JAVA_BLANK)
    if _REAL.fullmatch(text):
        return one_nan(float(text if text[-1:] in "yN" else text.rstrip("fFdD")))
    if _HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.rstrip("fFdD"))
    return _NAMED_REALS.get(text.lower())


def float_(text: str) -> float | None:
    value = double(text)
    return None if value is None else single(value)


def decimal(text: str) -> Decimal | None:
    text = text.strip(_JAVA_BLANK)
    return EXACT.create_decimal(text) if _DECIMAL.fullmatch(text) and len(text) < 400 else None


def boolean(text: str) -> bool | None:
    return _TRUTH.get(text.strip(BLANK).lower())


def date(text: str) -> int | None:
    """`y-m-d`, whatever follows a blank or T after it, or less of it."""
    match = _DATE.fullmatch(text.strip(BLANK))
    if not match:
        return None
    sign, year, month, day = match.groups()
    day_number = _day(sign, year, month, day)
    return None if day_number is None or not -(1 << 31) <= day_number < 1 << 31 else day_number * DAY


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
    local = day_number * DAY + clock + int((fraction or "")[:6].ljust(6, "0"))
    offset = _offset(zone.strip(), local) if zone else 0
    if offset is None or not LONG_MIN <= local - offset <= LONG_MAX:
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
    size = int(day) * DAY + clock + int((fraction or "")[:6].ljust(6, "0"))
    return size if (outer == "-") == (inner == "-") else -size


def _day(sign: str, year: str, month: str | None, day: str | None) -> int | None:
    y, m, d = int(sign + year), int(month or 1), int(day or 1)
    return days(y, m, d) if 1 <= m <= 12 and 1 <= d <= month_length(y, m) else None


def _clock(hour: str | None, minute: str | None, second: str | None) -> int | None:
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    return h * HOUR + m * MINUTE + s * MICROS if h < 24 and m < 60 and s < 60 else None


def _offset(zone: str, local: int) -> int | None:
    """How far local time is ahead of UTC."""
    if zone in _UTC_NAMES:
        return 0
    if match := _OFFSET.fullmatch(zone):
        sign, hours, minutes, seconds, minute = match.groups()
        if int(minutes or 0) > 59 or int(seconds or 0) > 59:
            return None
        size = int(hours) * HOUR + int(minutes or minute or 0) * MINUTE + int(seconds or 0) * MICROS
        return None if size > _GREATEST_OFFSET else -size if sign == "-" else size
    return _region_offset(zone, local)


def _region_offset(zone: str, local: int) -> int | None:
    if "/" not in zone or not 1 < civil(local // DAY)[0] < 9999:
        return None
    try:
        region = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        return None
    wall = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None) + timedelta(microseconds=local)
    offset = wall.replace(tzinfo=region).utcoffset()
    assert offset is not None
    return offset // timedelta(microseconds=1)
