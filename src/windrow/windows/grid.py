"""The slide instants of a periodic window: E = origin + (w+1)*period for every integer w (WID 3.3).

ORIGIN is a phase, not a beginning: the grid reaches to both infinities.

     w:      -2      -1       0       1
     E:  ----|-------|-------|-------|----
                  origin
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SlideGrid:
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
        """Where the extent `w` ends."""
        return self.origin + (w + 1) * self.period

    def last_ending(self, instant: int) -> int:
        """The greatest w whose extent ends at or before the instant."""
        return (instant - self.origin) // self.period - 1

    def ending_in(self, after: int, until: int) -> range:
        """The ids w with after < E <= until."""
        return range(self.last_ending(after) + 1, self.last_ending(until) + 1)

    def around(self, first: int, last: int) -> range:
        """The ids from the first extent that can hold `first` to the first that can hold `last`."""
        return range(self.last_ending(first) + 1, self.last_ending(last) + 2)

    def first_after(self, instant: int) -> int:
        """The first slide instant later than `instant`."""
        return self.end(self.last_ending(instant) + 1)

    def instants(self, after: int, until: int) -> Sequence[int]:
        """The slide instants E with after < E <= until."""
        return range(self.first_after(after), until + 1, self.period)
