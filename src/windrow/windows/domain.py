"""What a windowing attribute measures, and its instants (WID 3.2: any totally ordered attribute).

An instant is one tick of the attribute: a microsecond of a TIMESTAMP or DATE, one of an integer, the declared
RESOLUTION of a DOUBLE or DECIMAL. Every
stream also has two attributes it did not declare: `row_num` counts its rows from 1, `arrival_ts` is
when each was stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

from windrow.errors import DataError, QueryError

ROW_NUM = "row_num"
ARRIVAL_TS = "arrival_ts"

#: an integer tick, or one of the two infinities
Instant: TypeAlias = int | float
INFINITY = math.inf

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
