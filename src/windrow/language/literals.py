"""Points in time and spans of it as text: `'07:00:00'`, `'2024-01-01 07:00'`, `'1 hour 30 minutes'`.

Times without a zone are UTC. Months and years have no fixed length and are no INTERVAL here.

Number literals, with Spark's suffixes for their types: 10L, 1.5D, 2BD.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from windrow.errors import QueryError, Span
from windrow.language.syntax import CastTo, Constant, Node, words
from windrow.language.tokens import Token, at, mistake, refuse
from windrow.windows.domain import MICROSECONDS, unit_name

DAY = MICROSECONDS["DAYS"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?"
_TIME_OF_DAY = re.compile(_TIME, re.ASCII)
_DATE_AND_TIME = re.compile(
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?:[ T]{_TIME}(?:\s*(?:Z|UTC|[+-]\d{{2}}:?\d{{2}}))?)?",
    re.ASCII | re.IGNORECASE,
)
_SPAN_PART = re.compile(r"\s*([+-]?)\s*(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]+)\s*", re.ASCII)
_DAY_TO_SECOND = re.compile(rf"([+-]?)\s*(?:(\d{{1,9}})\s+)?{_TIME}", re.ASCII)
_ZONED = re.compile(r":[0-9.]+\s*(?:Z|UTC|[+-]\d{2}:?\d{2})$", re.IGNORECASE)
CALENDAR = words("MONTH MONTHS YEAR YEARS QUARTER QUARTERS")


def instant(text: str, span: Span, day: int = 0) -> int:
    """The microsecond a text names; a bare time of day is on the given day (its first microsecond).

    >>> instant("00:00:01", Span(0, 0)), instant("1970-01-02", Span(0, 0)) == DAY
    (1000000, True)
    """
    written = text.strip()
    try:
        if match := _TIME_OF_DAY.fullmatch(written):
            return day + _time_of_day(match.groups(), hours=24)
        if _DATE_AND_TIME.fullmatch(written):
            normal = written.upper().replace(" ", "T", 1) if ":" in written else written
            moment = datetime.fromisoformat(re.sub(r"\s+", "", re.sub(r"\s*UTC$", "Z", normal)))
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        pass
    raise mistake(
        span,
        f"'{_short(written)}' is not a point in time",
        "bad-time",
        "write '2024-01-31', '2024-01-31 07:00:00' or '07:00:00'",
    )


def has_zone(text: str) -> bool:
    """Whether a point in time says in which zone it is."""
    written = text.strip()
    return bool(_DATE_AND_TIME.fullmatch(written)) and _ZONED.search(written) is not None


def interval(text: str, units: tuple[str, ...], span: Span) -> int:
    """The microseconds of an interval; `units` is what follows the text, such as (DAY, SECOND).

    >>> interval("5", ("SECONDS",), Span(0, 0))
    5000000
    >>> interval("1 2:03:04", ("DAY", "SECOND"), Span(0, 0)) == DAY + 7_384_000_000
    True
    >>> interval("1 hour 30 minutes", (), Span(0, 0)) // MICROSECONDS["MINUTES"]
    90
    """
    refused = next((unit for unit in units if unit.upper() in CALENDAR), None)
    if len(units) == 2 and not refused:
        return _day_to_second(text, units, span)
    return _sum_of_parts(f"{text} {units[0]}" if units else text, span)


def _sum_of_parts(text: str, span: Span) -> int:
    total, place = 0, 0
    while match := _SPAN_PART.match(text, place):
        sign, number, unit = match.groups()
        if unit.upper() in CALENDAR:
            refuse(
                span,
                f"an interval in {unit.upper()} has no fixed length",
                "bad-interval",
                "write it in DAYS or WEEKS",
            )
        total += _ticks(Decimal(number), unit, span) * (-1 if sign == "-" else 1)
        place = match.end()
    if place == 0 or place != len(text):
        raise _bad_interval(text, span)
    return total


def _ticks(number: Decimal, unit: str, span: Span) -> int:
    try:
        ticks = number * MICROSECONDS[unit_name(unit)]
    except (QueryError, KeyError):
        raise _bad_interval(f"{number} {unit}", span) from None
    if ticks != int(ticks):
        raise _bad_interval(f"{number} {unit}", span)
    return int(ticks)


def _day_to_second(text: str, units: tuple[str, ...], span: Span) -> int:
    match = _DAY_TO_SECOND.fullmatch(text.strip())
    with at(span):
        names = tuple(unit_name(unit) for unit in units)
    begins_with_day = names[0] == "DAYS"
    if match is None or names not in _COMPOUND or (match[2] is not None) != begins_with_day:
        raise _bad_interval(f"{text} {units[0]} TO {units[1]}", span)
    sign, days, *time = match.groups()
    try:
        total = int(days or 0) * DAY + _time_of_day(tuple(time), hours=24 if begins_with_day else 100)
    except ValueError:
        raise _bad_interval(text, span) from None
    return -total if sign == "-" else total


_COMPOUND = {(first, last) for first in ("DAYS", "HOURS") for last in ("MINUTES", "SECONDS")}


def _time_of_day(parts: tuple[str | None, ...], hours: int) -> int:
    hour, minute, second, fraction = parts
    if int(hour or 0) >= hours or int(minute or 0) >= 60 or int(second or 0) >= 60:
        raise ValueError("no such time")
    seconds = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    return seconds * MICROSECONDS["SECONDS"] + int((fraction or "0").ljust(6, "0"))


def _bad_interval(text: str, span: Span) -> QueryError:
    return mistake(
        span,
        f"`{_short(text)}` is not an interval",
        "bad-interval",
        "write INTERVAL '5' SECOND, INTERVAL 5 SECONDS or INTERVAL '1 02:03:04' DAY TO SECOND",
    )


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


_SUFFIXED = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_TYPES = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT"}
_LONGEST = 100
_LONGEST_QUANTITY = 40


def number(token: Token) -> Node:
    """The constant a number token stands for.

    >>> from windrow.language.tokens import scan
    >>> number(scan("10L")[0]).type_text
    'BIGINT'
    """
    if len(token.text) > _LONGEST:
        refuse(
            token,
            f"a number of more than {_LONGEST} digits",
            "bad-number",
            "write it with an exponent, as in 1e120",
        )
    match = _SUFFIXED.fullmatch(token.text)
    assert match is not None
    constant = Constant(token.span, match[1], "NUMBER")
    if match[2] is None:
        return constant
    return CastTo(token.span, constant, _TYPES.get(match[2].upper()) or _decimal(token, match[1]))


def plain_number(text: str, span: Span) -> tuple[int | Decimal, str]:
    """A number of a quantity, and the unit in a suffix that Spark would take for the number's type.

    >>> plain_number("2.5", Span(0, 3)), plain_number("5s", Span(0, 2))
    ((Decimal('2.5'), ''), (5, 's'))
    """
    digits = text.rstrip("sSdDlLyYfFbB")
    suffix = text[len(digits) :]
    if suffix.upper() not in ("", "S", "D") or "e" in digits.lower() or len(digits) > _LONGEST_QUANTITY:
        refuse(
            span,
            f"`{text[:_LONGEST_QUANTITY]}` is no plain number",
            "bad-number",
            "write the number without an exponent, and behind it the unit",
        )
    return (int(digits) if digits.isdigit() else Decimal(digits)), suffix


def _decimal(token: Token, text: str) -> str:
    whole, _, fraction = text.partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    if "e" in text.lower() or digits > 38:
        refuse(
            token,
            f"`{token.text}` is no exact decimal",
            "bad-number",
            "write at most 38 digits, without an exponent",
        )
    return f"DECIMAL({max(digits, 1)},{len(fraction)})"


def negated(node: Node, span: Span) -> Node | None:
    """The constant with a minus before it; None for anything that is no positive number."""
    if isinstance(node, CastTo) and node.span == node.arg.span:
        inner = negated(node.arg, span)
        return replace(node, arg=inner, span=span) if inner else None
    if isinstance(node, Constant) and node.kind == "NUMBER" and not node.value.startswith("-"):
        return Constant(span, "-" + node.value, "NUMBER")
    return None
