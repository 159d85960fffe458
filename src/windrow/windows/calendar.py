"""Calendar windows: lengths in days, weeks, months and years, by the clocks of a zone.

The k-th end is ORIGIN + k slides in local time, each counted from ORIGIN; its extent begins RANGE earlier,
in local time too, at the last day of a month that is too short. Both become instants afterwards, so days of
23 and 25 hours, and months of 28 to 31 days, are what they are:

    RANGE 1 MONTH SLIDE 1 MONTH      |--- Jan ---|-- Feb --|--- Mar ---|
    RANGE 1 MONTH SLIDE 1 DAY                [--- until Mar 15 ---)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from windrow.errors import QueryError
from windrow.windows.domain import DAYS, MICROSECONDS, MONTHS, Element, Instant, Ints
from windrow.windows.patterns import Label, Pattern
from windrow.windows.spec import Grid, OwnInterval, covered, require_near, require_positive
from windrow.windows.zones import zone

DAY = MICROSECONDS[DAYS]
#: (number, unit): months, days, or elapsed microseconds
Length = tuple[int, str]


@dataclass(frozen=True)
class CalendarGrid(Grid):
    """The instants at which clocks of a zone show origin + k steps; equal ones count once.

    >>> grid = CalendarGrid((1, MONTHS), "UTC")
    >>> [grid.end(w) // DAY for w in (-1, 0, 1)], grid.last_ending(31 * DAY)
    ([0, 31, 59], 0)
    """

    step: Length
    zone: str
    #: local time
    origin: int = 0

    @property
    def period(self) -> int:  # type: ignore[override]
        return longest(self.step) + DAY

    def local(self, k: Ints) -> Ints:
        """What clocks are to show at the k-th ends."""
        return moved(np.full(len(k), self.origin, dtype=np.int64), self.step, k)

    def at(self, k: Ints) -> Ints:
        """The k-th ends."""
        return instants_of(self.zone, self.local(k))

    def numbers(self, instants: Ints) -> Ints:
        """The greatest k whose end is at or before each instant."""
        return greatest(self.at, self.step, instants - self.origin, instants)

    def firsts(self, k: Ints) -> Ints:
        """Of numbers with equal ends, the least."""
        k = k.copy()
        while (again := self.at(k - 1) == self.at(k)).any():
            k -= again
        return k

    def end(self, w: int) -> int:
        return int(self.at(np.array([w + 1]))[0])

    def last_ending(self, instant: int) -> int:
        return int(self.firsts(self.numbers(np.array([instant])))[0]) - 1

    def ending_in(self, after: int, until: int) -> Sequence[int]:
        k = np.arange(self.numbers(np.array([after]))[0], self.numbers(np.array([until]))[0]) + 1
        return [int(w) for w in k[self.at(k - 1) < self.at(k)] - 1]

    def first_after(self, instant: int) -> int:
        return int(self.nexts(np.array([instant]))[0])

    def nexts(self, instants: Ints) -> Ints:
        return self.at(self.numbers(instants) + 1)

    def lasts(self, instants: Ints) -> Ints:
        return self.at(self.numbers(instants))

    def within(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        row, k = covered(self.numbers(low - 1) + 1, self.numbers(high - 1) + 1)
        once = self.at(k - 1) < self.at(k)
        return row[once], self.at(k[once])


@dataclass(frozen=True)
class CalendarWindow(OwnInterval):
    """The rows of the last months, days, or microseconds before each end of a calendar's grid.

    >>> january = CalendarWindow((1, MONTHS), (1, MONTHS), "Europe/Berlin").bounds(30 * DAY + 23 * DAY // 24)
    >>> january[0] // (DAY // 24), (january[1] - january[0]) // DAY
    (-1, 31)
    """

    length: Length
    step: Length
    zone: str
    #: local time
    origin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        zone(self.zone)
        require_positive("RANGE", self.length[0])
        require_positive("SLIDE", self.step[0])
        require_near("RANGE", longest(self.length))
        require_near("SLIDE", longest(self.step))
        require_near("ORIGIN", self.origin)
        day_of_month = self.origin // DAY - int(_month_begins(_months(np.array([self.origin])))[0])
        if self.step[1] == MONTHS and day_of_month > 27:
            raise QueryError(
                "a SLIDE in months needs an ORIGIN that every month has: on day 1 to 28",
                code="window-origin",
                hint="move ORIGIN to the 28th, or to the 1st of the next month",
            )

    @property
    def grid(self) -> CalendarGrid:
        return CalendarGrid(self.step, self.zone, self.origin)

    has_bounds = True

    @property
    def depth(self) -> int:
        return longest(self.length) + DAY

    @property
    def typical_length(self) -> float:
        return mean(self.length)

    @property
    def coverage(self) -> float:
        return min(1.0, mean(self.length) / mean(self.step))

    label = Label(Pattern.WK, "days and months of a calendar differ in length, in FIFO order", fifo=True)

    @property
    def period(self) -> tuple[Hashable, int | None, int]:
        return (self.length, self.step, self.zone), None, self.origin

    def starts(self, k: Ints) -> Ints:
        """Where the extents of the k-th ends begin."""
        number, unit = self.length
        if unit not in (MONTHS, DAYS):
            return np.asarray(self.grid.at(k) - number)
        back = moved(self.grid.local(k), self.length, np.full(len(k), -1))
        return instants_of(self.zone, back)

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        """From the first end after each instant until an extent begins after it."""
        since = t + mean(self.length) - self.origin
        leaves = greatest(self.starts, self.step, since, t) + 1
        # one end by two numbers is that of the first, whose extent is the longer
        again = self.grid.firsts(leaves) < leaves
        ends = self.grid.at(leaves)
        return self.grid.nexts(t), np.where(again, self.grid.nexts(ends), ends)

    def span(self, row: Element) -> tuple[int, Instant]:
        vs, ve = self.spans(np.array([row.t]))
        return int(vs[0]), int(ve[0])

    def bounds_of(self, ends: Ints) -> tuple[Ints, Ints]:
        return self.starts(self.grid.firsts(self.grid.numbers(ends))), ends

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        return int(self.bounds_of(np.array([end]))[0][0]), end


def longest(length: Length) -> int:
    """The most ticks that a length can be, but for clocks that are changed."""
    number, unit = length
    return number * {MONTHS: 31 * DAY, DAYS: DAY}.get(unit, 1)


def mean(length: Length) -> int:
    """How many ticks a length is on average."""
    number, unit = length
    return number * {MONTHS: 146_097 * DAY // 4800, DAYS: DAY}.get(unit, 1)


def greatest(at: Callable[[Ints], Ints], step: Length, since: Ints, instants: Ints) -> Ints:
    """The greatest k with at(k) <= instant; `since` is how far from ORIGIN it is to be looked for."""
    k = since // mean(step)
    while (less := at(k + 1) <= instants).any():
        k = k + less
    while (more := at(k) > instants).any():
        k = k - more
    return np.asarray(k)


def moved(local: Ints, step: Length, times: Ints) -> Ints:
    """Local times so many steps later; months keep the day, or take their last.

    >>> (moved(np.array([30 * DAY]), (1, MONTHS), np.array([1])) // DAY).tolist()
    [58]
    """
    number, unit = step
    if unit != MONTHS:
        return np.asarray(local + times * number * DAY)
    months = _months(local)
    day, later = local - _month_begins(months) * DAY, months + times * number
    last = (_month_begins(later + 1) - _month_begins(later) - 1) * DAY + local % DAY
    return np.asarray(_month_begins(later) * DAY + np.minimum(day, last))


def _months(local: Ints) -> Ints:
    return np.asarray((local // DAY).astype("M8[D]").astype("M8[M]").astype(np.int64))


def _month_begins(months: Ints) -> Ints:
    return np.asarray(months.astype("M8[M]").astype("M8[D]").astype(np.int64))


def instants_of(name: str, local: Ints) -> Ints:
    """The instants of local times, each distinct one looked up once."""
    distinct, back = np.unique(local, return_inverse=True)
    found = np.array([_instant(name, int(each)) for each in distinct], dtype=np.int64)
    return np.asarray(found[back] if len(found) else local)


@lru_cache(maxsize=1 << 16)
def _instant(name: str, local: int) -> int:
    return zone(name).instant(local)
