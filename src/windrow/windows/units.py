"""Quantities as a user writes them, `6.4 SECONDS` or `1000 ROWS`, and the ticks they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from windrow.errors import QueryError, nearest
from windrow.windows.domain import MAX_INT64, Domain

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
