"""Patterns of times as Spark writes them: `date_format(ts, 'yyyy-MM-dd HH:mm')`, in English and UTC.

Times are read by the same patterns, and by some letters that only say where clocks were: an offset or a zone.
What a pattern does not have is that of 1970-01-01 00:00:00.

>>> written(compiled("EEEE, d MMM yyyy 'at' h:mm a"), 1_709_212_455_000_000)
'Thursday, 29 Feb 2024 at 1:14 PM'
>>> reader("dd/MMM/yyyy:HH:mm:ss Z")("29/Feb/2024:14:14:15 +0100")
1709212455000000
>>> compiled("yyyy-ww")
Traceback (most recent call last):
windrow.errors.QueryError: no letter `w` in a pattern of time (there are y M d D E a h H m s S)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from windrow.algebra.functions.calendar import DAY, HOUR, MICROS, MINUTE, civil, days, month_length
from windrow.errors import QueryError
from windrow.windows.zones import Zone, zone

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
    return tuple(_part(*piece) for piece in _pieces(pattern))


def _pieces(pattern: str) -> Iterator[tuple[str, str | None]]:
    """The parts of a pattern, each with what is in its quotes."""
    place = 0
    while place < len(pattern):
        match = _PIECE.match(pattern, place)
        if match is None:
            message = f"a quote in the pattern `{pattern}` is never closed"
            raise QueryError(message, code="bad-pattern", hint="add a '")
        yield match[0], match[1]
        place = match.end()


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


# Reading.


@dataclass(frozen=True)
class PatternReader:
    """Reads texts by a pattern; times without an offset are of the zone."""

    pattern: str
    zone: Zone
    fits: re.Pattern[str]
    letters: tuple[str, ...]

    def __call__(self, text: str) -> int | None:
        """The instant of a text; None where it does not fit."""
        found = self.fits.fullmatch(text)
        return None if found is None else _instant(self.letters, found.groups(), self.zone)

    @property
    def names_zone(self) -> bool:
        """Whether texts say themselves of which offset or zone they are."""
        return any(letter in _PLACES for letter in self.letters)


@cache
def reader(pattern: str, zone_name: str = "UTC") -> PatternReader:
    """What reads texts by a pattern; a QueryError if a letter means nothing."""
    letters: list[str] = []
    expression = "".join(_reading(*piece, letters) for piece in _pieces(pattern))
    fits = re.compile(expression, re.ASCII | re.IGNORECASE)
    return PatternReader(pattern, zone(zone_name), fits, tuple(letters))


def _reading(text: str, literal: str | None, letters: list[str]) -> str:
    if literal is not None:
        return re.escape(literal.replace("''", "'") or "'")
    if not text[0].isalpha():
        return re.escape(text)
    letter, count = text[0], len(text)
    if letter in _PLACES:
        if count > len(_PLACES[letter]) or not _PLACES[letter][count - 1]:
            message = f"`{text}` is no part of a pattern of time"
            raise QueryError(message, code="bad-pattern", hint="for example Z, XXX or VV")
        letters.append(letter)
        return f"({_PLACES[letter][count - 1]})"
    _letters(letter, count)
    letters.append(letter)
    if (letter == "M" and count > 2) or letter == "E":
        names = _MONTHS if letter == "M" else _WEEKDAYS
        return "(" + "|".join(name if count == 4 else name[:3] for name in names) + ")"
    if letter == "a":
        return "([AP]M)"
    if letter == "S":
        return rf"(\d{{1,{count}}})"
    if letter == "y":
        letters[-1] = "yy" if count == 2 else "y"
        return (
            r"(\d{2})" if count == 2 else rf"([+-]?\d{{{count},}})" if count != 4 else r"(\d{4}|[+-]\d{4,6})"
        )
    return rf"(\d{{{count}}})" if count > 1 else r"(\d{1,3})" if letter == "D" else r"(\d{1,2})"


_HOURS = r"[+-]\d{2}"
_PLACES = {
    "Z": [rf"{_HOURS}\d{{2}}"] * 3 + [r"GMT(?:[+-]\d{2}:\d{2})?", rf"Z|{_HOURS}:\d{{2}}"],
    "X": [rf"Z|{_HOURS}(?:\d{{2}})?", rf"Z|{_HOURS}\d{{2}}", rf"Z|{_HOURS}:\d{{2}}"],
    "x": [rf"{_HOURS}(?:\d{{2}})?", rf"{_HOURS}\d{{2}}", rf"{_HOURS}:\d{{2}}"],
    "V": ["", r"[A-Za-z][A-Za-z0-9_+/-]*|[+-]\d{2}:\d{2}"],
}
_LIMITS = {"M": 12, "d": 31, "D": 366, "H": 23, "h": 12, "m": 59, "s": 59}


def _instant(letters: Sequence[str], texts: tuple[str, ...], own: Zone) -> int | None:
    """The instant of the parts that were found; None if there is no such time."""
    known: dict[str, int] = {}
    for letter, text in zip(letters, texts, strict=True):
        if letter in _PLACES:
            try:
                own = zone("UTC" if text.upper() in ("Z", "GMT") else text)
            except QueryError:
                return None
        else:
            value = _number(letter, text)
            if known.setdefault(letter[0], value) != value or value > _LIMITS.get(letter, value):
                return None
    day = _day_of(known)
    if day is None:
        return None
    hour = known.get("H", known.get("h", 0) % 12 + 12 * known.get("a", 0))
    local = day * DAY + hour * HOUR + known.get("m", 0) * MINUTE + known.get("s", 0) * MICROS
    return own.shifted(local + known.get("S", 0))


def _number(letter: str, text: str) -> int:
    match letter:
        case "S":
            return int(text.ljust(6, "0")[:6])
        case "a":
            return int(text.upper() == "PM")
        case "yy":
            return 2000 + int(text)
        case "E":
            return [name[:3].upper() for name in _WEEKDAYS].index(text[:3].upper())
        case "M" if text[0].isalpha():
            return [name[:3].upper() for name in _MONTHS].index(text[:3].upper()) + 1
    return int(text)


def _day_of(known: dict[str, int]) -> int | None:
    """The day since 1970; None if the parts contradict each other, or the month has no such day."""
    year = known.get("y", 1970)
    if "D" in known:
        day = days(year, 1, 1) + known["D"] - 1
        fits = known["D"] >= 1 and civil(day)[0] == year
        fits = fits and civil(day) == (year, known.get("M", civil(day)[1]), known.get("d", civil(day)[2]))
    else:
        month, of_month = known.get("M", 1), known.get("d", 1)
        fits = month >= 1 and 1 <= of_month <= month_length(year, month)
        day = days(year, month, of_month) if fits else 0
    return day if fits and known.get("E", (day + 3) % 7) == (day + 3) % 7 else None
