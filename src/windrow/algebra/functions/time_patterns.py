"""Patterns of times as Spark writes them: `date_format(ts, 'yyyy-MM-dd HH:mm')`, in English and UTC.

>>> written(compiled("EEEE, d MMM yyyy 'at' h:mm a"), 1_709_212_455_000_000)
'Thursday, 29 Feb 2024 at 1:14 PM'
>>> compiled("yyyy-ww")
Traceback (most recent call last):
windrow.errors.QueryError: no letter `w` in a pattern of time (there are y M d D E a h H m s S)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from windrow.algebra.functions.calendar import DAY, HOUR, MICROS, MINUTE, civil, days
from windrow.errors import QueryError

_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

Part = Callable[[int], str]


@cache
def compiled(pattern: str) -> tuple[Part, ...]:
    """What writes each part of a pattern; a QueryError if a letter means nothing."""
    parts: list[Part] = []
    place = 0
    while place < len(pattern):
        match = _PIECE.match(pattern, place)
        if match is None:
            message = f"a quote in the pattern `{pattern}` is never closed"
            raise QueryError(message, code="bad-pattern", hint="add a '")
        parts.append(_part(match[0], match[1]))
        place = match.end()
    return tuple(parts)


def written(parts: tuple[Part, ...], time: int) -> str:
    """A time by a compiled pattern."""
    return "".join(part(time) for part in parts)


def _part(text: str, literal: str | None) -> Part:
    if literal is not None:
        shown = literal.replace("''", "'") or "'"
        return lambda time: shown
    if not text[0].isalpha():
        return lambda time: text
    return _letters(text[0], len(text))


def _letters(letter: str, count: int) -> Part:
    most = _MOST.get(letter)
    if most is None:
        raise QueryError(
            f"no letter `{letter}` in a pattern of time",
            code="bad-pattern",
            hint="there are y M d D E a h H m s S",
        )
    if count > most:
        raise QueryError(
            f"`{letter * count}` is no part of a pattern of time",
            code="bad-pattern",
            hint=f"`{letter}` stands at most {most} times in a row",
        )
    if letter == "y":
        return lambda time: _year(time, count)
    if letter in "ME":
        return lambda time: _name(letter, count, time)
    if letter == "S":
        return lambda time: f"{time % MICROS:06}".ljust(9, "0")[:count]
    if letter == "a":
        return lambda time: "PM" if time // HOUR % 24 >= 12 else "AM"
    return lambda time: f"{_NUMBERS[letter](time):0{count}}"


def _year(time: int, count: int) -> str:
    """The year of its era, which has no year 0; one that exceeds four letters or more carries a sign."""
    year = civil(time // DAY)[0]
    of_era = year if year > 0 else 1 - year
    if count == 2:
        return f"{of_era % 100:02}"
    return ("+" if count >= 4 and of_era >= 10**count else "") + f"{of_era:0{count}}"


def _name(letter: str, count: int, time: int) -> str:
    names, number = (
        (_MONTHS, civil(time // DAY)[1] - 1) if letter == "M" else (_WEEKDAYS, (time // DAY + 3) % 7)
    )
    if letter == "M" and count < 3:
        return f"{number + 1:0{count}}"
    return names[number] if count == 4 else names[number][:3]


_MOST = {"y": 6, "M": 4, "d": 2, "D": 3, "E": 4, "a": 1, "h": 2, "H": 2, "m": 2, "s": 2, "S": 9}
_NUMBERS: dict[str, Callable[[int], int]] = {
    "d": lambda time: civil(time // DAY)[2],
    "D": lambda time: time // DAY - days(civil(time // DAY)[0], 1, 1) + 1,
    "H": lambda time: time // HOUR % 24,
    "h": lambda time: (time // HOUR % 24 + 11) % 12 + 1,
    "m": lambda time: time // MINUTE % 60,
    "s": lambda time: time // MICROS % 60,
}
