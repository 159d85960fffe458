"""Synopses (thesis, 2.3.4): states over intervals of a stream, for windows of n of them.

A synopsis has s, the length of an interval; b, the most intervals a window may have; and f, what is kept.

| kind           | keeps                              | probe of n             | for                     |
|----------------|------------------------------------|------------------------|-------------------------|
| running        | b + 1 totals since the beginning   | 2 of them, subtracted  | subtractable aggregates |
| interval       | intervals of s, 2s, 4s, …          | at most 2·log b        | few queries at a time   |
| basic interval | b intervals of s                   | n; the longest for all | many queries at a time  |

Which kind to keep (8.3.1 and 8.4.4): running totals of what is subtractable and of constant size. Of all
else an interval synopsis reads log b intervals for each query, a basic one at most b for all of them
together, so that it is better where at least b / log b queries run together.

>>> choose(64, 11.0, subtractable=False), choose(64, 10.0, subtractable=False)
(<SynopsisKind.BASIC: 'basic interval'>, <SynopsisKind.INTERVAL: 'interval'>)
>>> choose(64, 1.0, subtractable=True)
<SynopsisKind.RUNNING: 'running'>
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd


@dataclass(frozen=True)
class SharedGrid:
    """The intervals of a synopsis: interval i is [phase + i·width, phase + (i+1)·width).

    Windows of all its queries are whole numbers of them.

    >>> SharedGrid.of(600, 120), SharedGrid.of(840, 180), SharedGrid.of(600, 120, origin=50)
    (SharedGrid(width=120, phase=0), SharedGrid(width=60, phase=0), SharedGrid(width=120, phase=50))
    >>> SharedGrid.of(600, 120).meet(SharedGrid.of(840, 180))
    SharedGrid(width=60, phase=0)
    """

    width: int
    phase: int = 0

    @classmethod
    def of(cls, length: int, slide: int, origin: int = 0) -> SharedGrid:
        """The coarsest grid on which windows of this length begin and end."""
        width = gcd(slide, length)
        return cls(width, origin % width)

    def meet(self, other: SharedGrid) -> SharedGrid:
        """The coarsest grid that has the points of both."""
        width = gcd(self.width, other.width, self.phase - other.phase)
        return SharedGrid(width, self.phase % width)

    def has(self, other: SharedGrid) -> bool:
        """Whether every point of the other is one of this."""
        return other.width % self.width == 0 and (other.phase - self.phase) % self.width == 0

    def index(self, instant: int) -> int:
        """The interval that an instant is in."""
        return (instant - self.phase) // self.width

    def begin(self, index: int) -> int:
        """Where an interval begins."""
        return self.phase + index * self.width


#: no query's intervals are cut into more parts than these for the sake of others, who then get their own
MOST_PARTS = 8


def clustered(grids: Sequence[SharedGrid]) -> list[SharedGrid]:
    """Grids to share, one for each of those wanted; equal ones are one synopsis.

    Coarse ones go first. Each joins those with which the common intervals are longest, unless these would be
    much shorter than its own or theirs. Here the two of whole minutes share, and the third does not make them
    read seconds:

    >>> [grid.width for grid in clustered([SharedGrid(120), SharedGrid(180), SharedGrid(7)])]
    [60, 60, 7]
    """
    clusters: list[list[SharedGrid]] = []
    shared: list[SharedGrid] = []
    for mine in sorted(dict.fromkeys(grids), key=lambda grid: -grid.width):
        joined = {number: grid.meet(mine) for number, grid in enumerate(shared)}
        # the first of a cluster is its widest
        cheap = [n for n, met in joined.items() if met.width * MOST_PARTS >= clusters[n][0].width]
        if cheap:
            best = max(cheap, key=lambda number: joined[number].width)
            shared[best] = joined[best]
            clusters[best].append(mine)
        else:
            shared.append(mine)
            clusters.append([mine])
    found = {member: grid for grid, members in zip(shared, clusters, strict=True) for member in members}
    return [found[grid] for grid in grids]


class SynopsisKind(Enum):
    """The kinds of synopses."""

    RUNNING = "running"
    INTERVAL = "interval"
    #: one pass, from the youngest interval to the oldest, serves windows of all lengths
    BASIC = "basic interval"


#: so many updates are looked at to see which queries meet
_HORIZON = 2520


def choose(b: int, together: float, *, subtractable: bool) -> SynopsisKind:
    """The kind for windows of up to b intervals, if so many queries run together on average."""
    if subtractable:
        return SynopsisKind.RUNNING
    return SynopsisKind.BASIC if together >= b / max(1.0, math.log2(b)) else SynopsisKind.INTERVAL


def expected_together(periods: Sequence[int]) -> float:
    """How many queries run together on average, if each runs every so many updates and none is moved.

    >>> expected_together([2, 2, 2]), expected_together([1, 2]), round(expected_together([2, 3]), 2)
    (3.0, 1.5, 1.25)
    """
    horizon = min(_HORIZON, math.lcm(*periods)) if periods else 1
    runs = [sum(1 for period in periods if update % period == 0) for update in range(1, horizon + 1)]
    busy = [count for count in runs if count]
    return sum(busy) / len(busy) if busy else 0.0
