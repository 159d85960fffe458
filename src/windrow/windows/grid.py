"""Slide instants: when windows that slide in time are reported.

Equally spaced ones are E = origin + (w+1)*period for every integer w (WID 3.3). ORIGIN is a phase, not a
beginning: the grid reaches to both infinities.

     w:      -2      -1       0       1
     E:  ----|-------|-------|-------|----
                  origin
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windrow.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


#: more rows than this are not made at once
MOST = 1 << 27


class Grid(ABC):
    """Instants in order; each ends the extent of an id w."""

    #: the longest time from one to the next
    period: int

    @abstractmethod
    def end(self, w: int) -> int:
        """Where the extent `w` ends."""

    @abstractmethod
    def last_ending(self, instant: int) -> int:
        """The greatest w whose extent ends at or before the instant."""

    @abstractmethod
    def ending_in(self, after: int, until: int) -> Sequence[int]:
        """The ids w with after < E <= until."""

    @abstractmethod
    def instants(self, after: int, until: int) -> Sequence[int]:
        """The slide instants E with after < E <= until."""

    @abstractmethod
    def nexts(self, instants: Ints) -> Ints:
        """The first slide instant later than each."""

    @abstractmethod
    def lasts(self, instants: Ints) -> Ints:
        """The last slide instant at or before each."""

    @abstractmethod
    def within(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """(row, E) for each slide instant in [low, high) of each row."""

    def first_after(self, instant: int) -> int:
        """The first slide instant later than `instant`."""
        return self.end(self.last_ending(instant) + 1)


@dataclass(frozen=True)
class SlideGrid(Grid):
    """Equally spaced instants.

    >>> grid = SlideGrid(60, origin=0)
    >>> grid.first_after(59), grid.first_after(60), list(grid.instants(0, 180))
    (60, 120, [60, 120, 180])
    """

    period: int
    origin: int = 0

    def is_within(self, other: SlideGrid) -> bool:
        """Whether all its instants are instants of the other.

        >>> SlideGrid(60).is_within(SlideGrid(20)), SlideGrid(60, 5).is_within(SlideGrid(20))
        (True, False)
        """
        return self.period % other.period == 0 and (self.origin - other.origin) % other.period == 0

    def end(self, w: int) -> int:
        return self.origin + (w + 1) * self.period

    def last_ending(self, instant: int) -> int:
        return (instant - self.origin) // self.period - 1

    def ending_in(self, after: int, until: int) -> range:
        return range(self.last_ending(after) + 1, self.last_ending(until) + 1)

    def around(self, first: int, last: int) -> range:
        """The ids from the first extent that can hold `first` to the first that can hold `last`."""
        return range(self.last_ending(first) + 1, self.last_ending(last) + 2)

    def instants(self, after: int, until: int) -> Sequence[int]:
        return range(self.first_after(after), until + 1, self.period)

    def nexts(self, instants: Ints) -> Ints:
        """The first slide instant later than each.

        >>> SlideGrid(60).nexts(np.array([-1, 0, 59])).tolist()
        [0, 60, 60]
        """
        return np.asarray(self.origin + ((instants - self.origin) // self.period + 1) * self.period)

    def lasts(self, instants: Ints) -> Ints:
        return np.asarray(self.origin + (instants - self.origin) // self.period * self.period)

    def within(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        first, stop = (-(-(bound - self.origin) // self.period) for bound in (low, high))
        row, number = covered(first, stop)
        return row, self.origin + number * self.period


def refuse_too_many(answers: float) -> None:
    """An error where memory would be full of answers that say the same."""
    if answers > MOST:
        raise DataError(
            f"{answers:,.0f} answers are too many at once: one for each SLIDE of a gap without rows",
            code="too-many-answers",
            hint="write a longer SLIDE; or SELECT ISTREAM(…), to be told changes only",
        )


def covered(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, number) for every number in the range [low, high) of each row.

    >>> [found.tolist() for found in covered(np.array([0, 2]), np.array([2, 3]))]
    [[0, 0, 1], [0, 1, 2]]
    """
    counts = np.maximum(high - low, 0)
    refuse_too_many(counts.sum(dtype=np.float64))
    row = np.repeat(np.arange(len(low)), counts)
    since = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, low[row] + since
