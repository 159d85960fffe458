"""What a windowing attribute measures, its instants, and quantities (WID 3.2: any totally ordered attribute).

An instant is one tick of the attribute: a microsecond of a TIMESTAMP or DATE, one of an integer, the declared
RESOLUTION of a DOUBLE or DECIMAL. Every stream also has two attributes it did not declare: `row_num` counts
its rows from 1, `arrival_ts` is when each was stored.

Quantities are what a user writes, `6.4 SECONDS` or `1000 ROWS`, and stand for so many ticks.

What a window knows of a row is an `Element`; what it says about one is a half-open interval of validity
[vs, ve). Intervals carry every window kind through the algebra in one form. A row that is never in its window
has no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, QueryError, nearest

ROW_NUM = "row_num"
ARRIVAL_TS = "arrival_ts"

#: an integer tick, or one of the two infinities
Instant: TypeAlias = int | float
INFINITY = math.inf
#: columns of instants and counts, of truth values, of DOUBLEs, and of numbers of any type
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]

MAX_INT64 = 2**63 - 1
#: one past the last instant that exists: ids of windows that never close end here
FOREVER = MAX_INT64 + 1
#: an end that never comes, in columns of instants: sums with it fit 64 bits
NO_END = 1 << 62
#: instants lie within ±FARTHEST, and no window is longer: sums of an instant and some sizes are still far
#: from what stands for infinity in 64-bit integers. In microseconds that is beyond the year 38000.
FARTHEST = 1 << 60
#: ticks of a DOUBLE, times the numerator of its resolution, lie within this
EXACT = 1 << 50


def check_instant(instant: Instant | None, whose: str) -> None:
    """Refuse an instant that windows cannot be told about.

    >>> check_instant(12, "`ts` of stream `s`")
    """
    if instant is not None and abs(instant) > FARTHEST and abs(instant) != INFINITY:
        raise too_far(int(instant), whose)


def too_far(instant: int, whose: str) -> DataError:
    """The error about an instant that is out of reach."""
    return DataError(
        f"{whose} is {instant}: instants lie between -2^60 and 2^60 ({-FARTHEST} and {FARTHEST})",
        code="instant-range",
        hint="filter such rows out before, or order the stream by another attribute",
    )


def write_instant(instant: Instant) -> int | str:
    """An instant as JSON, which has no word for infinity."""
    return str(instant) if math.isinf(instant) else int(instant)


def read_instant(stored: int | str) -> Instant:
    """What `write_instant` wrote.

    >>> read_instant(write_instant(-INFINITY)), read_instant(write_instant(2**63))
    (-inf, 9223372036854775808)
    """
    return float(stored) if isinstance(stored, str) else stored


@dataclass(frozen=True)
class Domain:
    """What one tick of an attribute is: a microsecond, one, or the declared resolution q of a DOUBLE or a
    DECIMAL, whose tick k stands for the value k·q.

    >>> tenths = Domain("number", Fraction(1, 10))
    >>> tenths.tick(0.3), tenths.tick(0.35), tenths.at(3), Domain("number", Fraction(1, 4), 2).at(3)
    (3, None, 0.3, Decimal('0.75'))
    """

    TIME: ClassVar[Domain]
    NUMBER: ClassVar[Domain]

    value: str
    resolution: Fraction | None = None
    #: digits after the point of a DECIMAL; None for a DOUBLE
    scale: int | None = None

    @property
    def name(self) -> str:
        """What a state directory knows it by."""
        digits = "" if self.scale is None else f" of {self.scale} digits"
        return self.value if self.resolution is None else f"{self.value} by {self.resolution}{digits}"

    @property
    def step(self) -> Decimal | None:
        """The resolution with its digits."""
        if self.resolution is None:
            return None
        n, d = self.resolution.as_integer_ratio()
        return Decimal(n) / d

    @property
    def reach(self) -> int:
        """Ticks lie within ± so many: those of a DOUBLE where each has a value of its own, and arithmetic on
        DOUBLEs finds it."""
        if self.resolution is None:
            return FARTHEST
        return min(FARTHEST, (EXACT if self.scale is None else FARTHEST) // self.resolution.numerator)

    def tick(self, value: Any) -> int | None:
        """The tick that a value of the attribute is: the only k, within reach, with the value nearest to k·q;
        None if there is none."""
        if self.resolution is None:
            return int(value)
        if not math.isfinite(value):
            return None
        k = round(Fraction(value) / self.resolution)
        return k if abs(k) <= self.reach and self.at(k) == value else None

    def at(self, tick: int) -> Any:
        """The value k·q of a tick."""
        if self.resolution is None:
            return tick
        n, d = self.resolution.as_integer_ratio()
        if self.scale is None:
            return tick * n / d
        return Decimal(f"{tick * n * 10**self.scale // d}e-{self.scale}")


Domain.TIME = Domain("time")
Domain.NUMBER = Domain("number")


def refuse_resolution(domain: Domain, what: str) -> None:
    """Refuse what is only for windowing attributes whose ticks are their values."""
    if domain.resolution is not None:
        raise QueryError(
            f"{what} does not go with a windowing attribute that is a DOUBLE or a DECIMAL",
            code="bad-resolution",
            hint="declare the attribute as an integer, counted in its RESOLUTION, or as a TIMESTAMP",
        )


#: the attributes every stream has besides its columns
IMPLICIT = {ROW_NUM: Domain.NUMBER, ARRIVAL_TS: Domain.TIME}


ROWS = "ROWS"
DAYS, MONTHS = "DAYS", "MONTHS"

#: ticks (microseconds) of each unit of time
MICROSECONDS = {
    "MICROSECONDS": 1,
    "MILLISECONDS": 1_000,
    "SECONDS": 1_000_000,
    "MINUTES": 60_000_000,
    "HOURS": 3_600_000_000,
    "DAYS": 86_400_000_000,
    "WEEKS": 604_800_000_000,
}
#: units of the calendar, whose lengths in time differ: days and months in each
CALENDAR = {"DAYS": (1, DAYS), "WEEKS": (7, DAYS), "MONTHS": (1, MONTHS), "YEARS": (12, MONTHS)}
_SHORT = {
    "US": "MICROSECONDS",
    "MS": "MILLISECONDS",
    "SEC": "SECONDS",
    "S": "SECONDS",
    "MIN": "MINUTES",
    "M": "MINUTES",
    "H": "HOURS",
    "D": "DAYS",
    "W": "WEEKS",
}
_NAMES = tuple(dict.fromkeys((*MICROSECONDS, *CALENDAR, ROWS)))
_UNITS = _SHORT | {name: name for name in _NAMES} | {name[:-1]: name for name in _NAMES}


def is_unit(word: str) -> bool:
    """Whether a word is a unit, in any spelling.

    >>> is_unit("min"), is_unit("slyde")
    (True, False)
    """
    return word.upper() in _UNITS


def unit_name(word: str) -> str:
    """The one name of a unit that has many spellings.

    >>> unit_name("min"), unit_name("Hour"), unit_name("ROW")
    ('MINUTES', 'HOURS', 'ROWS')
    """
    name = _UNITS.get(word.upper())
    if name is None:
        raise QueryError(f"no unit `{word}`", code="window-unit", hint=nearest(word, _NAMES))
    return name


@dataclass(frozen=True)
class Quantity:
    """A number with the unit it was written in; None is a bare number.

    >>> Quantity(Decimal("6.4"), "seconds").ticks(Domain.TIME)
    6400000
    >>> Quantity(1000, "row").count()
    1000
    >>> print(Quantity(5, "min"), Quantity(1, "h"), Quantity(5, None))
    5 MINUTES 1 HOUR 5
    """

    value: int | Decimal
    unit: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, float) or (isinstance(self.value, Decimal) and not self.value.is_finite()):
            raise QueryError(
                f"{self.value!r} is not an exact number", code="window-size", hint="write an int or a Decimal"
            )
        if self.unit is not None:
            object.__setattr__(self, "unit", unit_name(self.unit))

    @property
    def in_rows(self) -> bool:
        return self.unit == ROWS

    @property
    def is_calendar(self) -> bool:
        """In months or years."""
        return self.unit in CALENDAR and self.unit not in MICROSECONDS

    @property
    def is_duration(self) -> bool:
        return self.unit in MICROSECONDS

    def __str__(self) -> str:
        unit = self.unit and (self.unit.removesuffix("S") if self.value == 1 else self.unit)
        return f"{self.value} {unit}" if unit else str(self.value)

    @classmethod
    def of_time(cls, micros: int) -> Quantity:
        """A length of time in the greatest unit that divides it.

        >>> print(Quantity.of_time(90_000_000), Quantity.of_time(-60_000_000))
        90 SECONDS -1 MINUTES
        """
        size, unit = max((size, unit) for unit, size in MICROSECONDS.items() if micros % size == 0)
        return cls(micros // size, unit)

    def ticks(self, domain: Domain) -> int:
        """This much of an attribute of the domain, in ticks."""
        if domain is Domain.TIME:
            if self.is_calendar:
                raise QueryError(
                    f"{self} has no fixed length",
                    code="window-unit",
                    hint="write DAYS or WEEKS; months are for windows as [RANGE 1 MONTH SLIDE 1 DAY]",
                )
            if not self.is_duration:
                raise QueryError(
                    f"{self} does not measure a time attribute",
                    code="window-unit",
                    hint=f"add a unit of time, as in `{self.value} SECONDS`",
                )
            return self._whole(MICROSECONDS[self.unit or ""], "microseconds")
        if self.unit is not None:
            raise QueryError(
                f"{self} does not measure a numeric attribute",
                code="window-unit",
                hint=f"write a bare number, as in `{self.value}`",
            )
        if domain.resolution is not None:
            return self._whole(1 / domain.resolution, f"steps of {domain.at(1)}, the attribute's RESOLUTION")
        return self._whole(1, "ticks of the attribute")

    def count(self) -> int:
        """This many rows; a bare number may count too."""
        if self.is_duration:
            raise QueryError(
                f"{self} is not a number of rows", code="window-unit", hint=f"write `{self.value} ROWS`"
            )
        return self._whole(1, "rows")

    def _whole(self, scale: int | Fraction, what: str) -> int:
        numerator, denominator = (Fraction(self.value) * scale).as_integer_ratio()
        ticks, rest = divmod(numerator, denominator)
        if rest:
            raise QueryError(
                f"{self} is not a whole number of {what}", code="window-size", hint="use a multiple of one"
            )
        if abs(ticks) > MAX_INT64:
            raise QueryError(
                f"{self} is more than a 64-bit integer of {what} can hold",
                code="window-overflow",
                hint=f"at most {MAX_INT64} {what}; for a window that never ends use UNBOUNDED",
            )
        return ticks


# ------------------------------------------------------------ rows and their validity


@dataclass(frozen=True)
class Element:
    """A row as windows see it.

    `t` is the windowing attribute, `row_num` the arrival position from 1, `key` the PARTITION BY values,
    `order` a sort key of all columns (it settles ties of `t`), `lifetime` what the LIFETIME expression gave,
    in its own unit. A late row that is kept is not visible earlier than `not_before`.
    """

    t: int
    row_num: int = 0
    key: tuple[Any, ...] = ()
    order: tuple[Any, ...] = ()
    lifetime: int | None = None
    not_before: Instant = -INFINITY


@dataclass(frozen=True, order=True)
class Interval:
    """The instants from `vs` up to, not including, `ve`.

    >>> 4 in Interval(4, 9), 9 in Interval(4, 9)
    (True, False)
    """

    vs: int
    ve: Instant

    def __contains__(self, instant: Instant) -> bool:
        return self.vs <= instant < self.ve


@dataclass(frozen=True)
class Report:
    """One extent that is reported by itself: when, its bounds, its partition, its rows in window order."""

    at: int
    start: int
    end: int
    key: tuple[Any, ...]
    elements: tuple[Element, ...]


def visible(element: Element, vs: int, ve: Instant) -> Interval | None:
    """[vs, ve) cut to what a kept late row may show; an empty interval vanishes.

    >>> visible(Element(3), 3, 3), visible(Element(3, not_before=5), 3, 8)
    (None, Interval(vs=5, ve=8))
    """
    if element.not_before > vs:
        if element.not_before >= ve:
            return None
        vs = int(element.not_before)
    return Interval(vs, ve) if vs < ve else None


def sort_key(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    """A key that sorts column values: NULL first, NaN last, and -0.0 before the 0.0 it equals; inside arrays
    and structs too.

    >>> sorted([(2.0,), (float("nan"),), (0.0,), (None,), (-0.0,)], key=sort_key)
    [(None,), (-0.0,), (0.0,), (2.0,), (nan,)]
    >>> sorted([((float("nan"),),), ((2.0, 1.0),), ((2.0, None),), (None,)], key=sort_key)
    [(None,), ((2.0, None),), ((2.0, 1.0),), ((nan,),)]
    """
    return tuple(
        (0, 0)
        if v is None
        else (1, sort_key(v))
        if isinstance(v, tuple)
        else (2, 0)
        if v != v
        else (1, v, _sign_of_zero(v))
        for v in values
    )


def _sign_of_zero(value: Any) -> float:
    return math.copysign(1, value) if isinstance(value, float) and value == 0 else 0


def place_of(element: Element, rows: Sequence[Element]) -> int:
    """Where in `rows` this very element is, or else one equal to it."""
    for place, row in enumerate(rows):
        if row is element:
            return place
    return rows.index(element)
