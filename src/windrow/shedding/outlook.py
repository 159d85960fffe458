"""The epochs to come: how long each will take, if this share of what can be given up is given up.

Sources hand over all that waits. So rows that come in a long epoch make the next one long, and the epochs
follow each other by a simple law, with F the seconds an epoch takes without rows, and r the work that comes
in a second:

    next = F + r * (1 - share of it that is saved) * this one

Below r = 1 they come to F / (1 - r), whatever they began with: a backlog goes away by itself. Above, each
is longer than the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

_STEPS = 30
#: so many epochs are looked ahead
AHEAD = 3


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known at the end of an epoch.

    >>> outlook = Outlook(fixed=0.5, arriving=0.75, waiting=3.0, interval=1.0, on_rows=1.0)
    >>> outlook.epochs(0.0), outlook.settled(0.0)
    ([3.5, 3.125, 2.84375], 2.0)
    >>> outlook.epochs(1.0)
    [0.5, 0.5, 0.5]
    """

    #: seconds an epoch takes without rows
    fixed: float
    #: seconds of work that come in a second
    arriving: float
    #: seconds of work on the rows that wait
    waiting: float
    #: epochs begin no more often than this
    interval: float
    #: the shares of the work on rows, and of the rest, that can be saved at most
    on_rows: float
    on_rest: float = 0.0
    #: seconds of work that wait in the source beyond the next epoch
    beyond: float = 0.0

    def next(self, share: float) -> float:
        """How long the next epoch takes."""
        return self._fixed(share) + self.waiting * (1 - share * self.on_rows)

    def epochs(self, share: float) -> list[float]:
        """How long the next epochs take."""
        found = [self.next(share)]
        while len(found) < AHEAD:
            came = self.arriving * max(found[-1], self.interval)
            found.append(self._fixed(share) + came * (1 - share * self.on_rows))
        return found

    def longest(self, share: float) -> float:
        """The longest of the next epochs, and what waits beyond them."""
        return max(self.epochs(share)) + self.beyond * (1 - share * self.on_rows)

    def settled(self, share: float) -> float:
        """What the epochs come to in the end."""
        fixed, work = self._fixed(share), self.arriving * (1 - share * self.on_rows)
        short = fixed + work * self.interval
        if short <= self.interval:
            return short
        return fixed / (1 - work) if work < 1 else inf

    def eased(self, share: float) -> Outlook:
        """The same, if less work should come."""
        return replace(self, arriving=self.arriving * (1 - share))

    def least(self, holds: Callable[[float], bool]) -> float:
        """The least share for which something holds, and for all greater ones; all, if it never does."""
        if holds(0.0):
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _fixed(self, share: float) -> float:
        return self.fixed * (1 - share * self.on_rest)
