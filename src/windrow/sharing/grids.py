"""Grids: the intervals of a synopsis, such that the windows of all its queries are whole numbers of them.

The interval of one query is gcd(RANGE, SLIDE) long. Queries with other windows can share it if the common
divisor is not much finer; those that need finer intervals get a synopsis of their own, and do not make all
others pay for them.

>>> SharedGrid.of((600,), 120), SharedGrid.of((840,), 180), SharedGrid.of((600,), 120, origin=50)
(SharedGrid(width=120, phase=0), SharedGrid(width=60, phase=0), SharedGrid(width=120, phase=50))
>>> SharedGrid.of((600,), 120).meet(SharedGrid.of((840,), 180))
SharedGrid(width=60, phase=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class SharedGrid:
    """Interval i is [phase + i·width, phase + (i+1)·width)."""

    width: int
    phase: int = 0

    @classmethod
    def of(cls, lengths: Sequence[int], slide: int, origin: int = 0) -> SharedGrid:
        """The coarsest grid on which windows of these lengths begin and end."""
        width = gcd(slide, *lengths)
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


#: no query's intervals are cut into more parts than these for the sake of others
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
