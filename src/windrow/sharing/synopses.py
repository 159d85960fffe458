"""What rules compare: a synopsis that is held, and what a query wants.

What a synopsis is (thesis, 2.3.4): states over intervals of a stream, for windows of n of them.

Its parameters are s, the length of an interval; b, the most intervals a window may have; and f, what is kept
of each. Intervals are numbered; `update` inserts the next one and lets go of what no window holds any more,
`probe` gives the states over the last n intervals, for several n at once.

| kind           | keeps                              | probe of n             | for                     |
|----------------|------------------------------------|------------------------|-------------------------|
| running        | b + 1 totals since the beginning   | 2 of them, subtracted  | subtractable aggregates |
| interval       | intervals of s, 2s, 4s, …          | at most 2·log b        | few queries at a time   |
| basic interval | b intervals of s                   | n; the longest for all | many queries at a time  |

Which kind of synopsis to keep (thesis, 8.3.1 and 8.4.4).

Subtractable states of constant size are kept as running totals. For all others: an interval synopsis reads
log b intervals for each query, a basic one at most b for all of them together and in half of the space. So
the basic one is better where at least b / log b queries run together.

>>> [least_together(b) for b in (2, 8, 64, 1024)]
[2.0, 2.6666666666666665, 10.666666666666666, 102.4]
>>> choose(64, 11.0, subtractable=False), choose(64, 10.0, subtractable=False)
(<SynopsisKind.BASIC: 'basic interval'>, <SynopsisKind.INTERVAL: 'interval'>)
>>> choose(64, 1.0, subtractable=True)
<SynopsisKind.RUNNING: 'running'>
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import gcd

from windrow.algebra.expressions import TRUE
from windrow.sharing.predicates import Predicate, predicate_of

# ------------------------------------------------------------ grids
#
# Grids: the intervals of a synopsis, such that the windows of all its queries are whole numbers of them.
#
# The interval of one query is gcd(RANGE, SLIDE) long. Queries with other windows can share it if the common
# divisor is not much finer; those that need finer intervals get a synopsis of their own, and do not make all
# others pay for them.


@dataclass(frozen=True)
class SharedGrid:
    """Interval i is [phase + i·width, phase + (i+1)·width).

    >>> SharedGrid.of((600,), 120), SharedGrid.of((840,), 180), SharedGrid.of((600,), 120, origin=50)
    (SharedGrid(width=120, phase=0), SharedGrid(width=60, phase=0), SharedGrid(width=120, phase=50))
    >>> SharedGrid.of((600,), 120).meet(SharedGrid.of((840,), 180))
    SharedGrid(width=60, phase=0)
    """

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


# ------------------------------------------------------------ synopses


class SynopsisKind(Enum):
    """The kinds of synopses; those for joins go by the time at which results expire."""

    RUNNING = "running"
    INTERVAL = "interval"
    BASIC = "basic interval"
    RUNNING_JOIN = "running join"
    INTERVAL_JOIN = "interval join"
    BASIC_JOIN = "basic interval join"

    @property
    def is_basic(self) -> bool:
        """Whether one pass, from the youngest interval to the oldest, serves windows of all lengths."""
        return self in (SynopsisKind.BASIC, SynopsisKind.BASIC_JOIN)

    @property
    def is_join(self) -> bool:
        return self in (SynopsisKind.RUNNING_JOIN, SynopsisKind.INTERVAL_JOIN, SynopsisKind.BASIC_JOIN)

    @property
    def of_join(self) -> SynopsisKind:
        """The same for joins."""
        return {
            SynopsisKind.RUNNING: SynopsisKind.RUNNING_JOIN,
            SynopsisKind.INTERVAL: SynopsisKind.INTERVAL_JOIN,
            SynopsisKind.BASIC: SynopsisKind.BASIC_JOIN,
        }.get(self, self)


#: so many updates are looked at to see which queries meet
_HORIZON = 2520


def least_together(b: int) -> float:
    """b / log b: so many queries at a time make a basic interval synopsis the better one."""
    return b / max(1.0, math.log2(b))


def choose(b: int, together: float, *, subtractable: bool) -> SynopsisKind:
    """The kind for windows of up to b intervals, if so many queries run together on average."""
    if subtractable:
        return SynopsisKind.RUNNING
    return SynopsisKind.BASIC if together >= least_together(b) else SynopsisKind.INTERVAL


def expected_together(periods: Sequence[int]) -> float:
    """How many queries run together on average, if each runs every so many updates and none is moved.

    >>> expected_together([2, 2, 2]), expected_together([1, 2]), round(expected_together([2, 3]), 2)
    (3.0, 1.5, 1.25)
    """
    horizon = min(_HORIZON, math.lcm(*periods)) if periods else 1
    runs = [sum(1 for period in periods if update % period == 0) for update in range(1, horizon + 1)]
    busy = [count for count in runs if count]
    return sum(busy) / len(busy) if busy else 0.0


# ------------------------------------------------------------ synopsis facts


EVERYTHING = predicate_of(TRUE)


@dataclass(frozen=True)
class Family:
    """What synopses must have in common to be used together, but for their conditions: the input (a stream,
    or a join of several), the grouping, and the data per interval."""

    source: Hashable
    datum: Hashable
    keys: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """Data over windows of these lengths, one for each stream of the input, every `slide`."""

    family: Family
    lengths: tuple[int, ...]
    slide: int
    origin: int = 0
    predicate: Predicate = EVERYTHING
    #: whether a row that is counted twice does harm
    is_sensitive: bool = True
    #: whether what is too much can be subtracted again
    is_subtractable: bool = False
    #: whether states of rows of different conditions may be put together
    adds_up: bool = True

    @property
    def grid(self) -> SharedGrid:
        """The coarsest grid for it."""
        return SharedGrid.of(self.lengths, self.slide, self.origin)


@dataclass(frozen=True)
class Held:
    """A synopsis with its parameters: s (the grid), b, and g for joins of windows of unequal lengths."""

    name: str
    family: Family
    grid: SharedGrid
    b: int
    kind: SynopsisKind
    predicate: Predicate = field(default=EVERYTHING)
    g: int = 0

    def is_aligned(self, wanted: Wanted) -> bool:
        """Whether windows begin and end where intervals do."""
        return self.grid.has(wanted.grid)

    def intervals(self, wanted: Wanted) -> tuple[int, ...]:
        """The lengths of the windows, in intervals."""
        return tuple(length // self.grid.width for length in wanted.lengths)

    def is_long_enough(self, wanted: Wanted) -> bool:
        """Whether windows have at most b intervals."""
        return all(n <= self.b for n in self.intervals(wanted))
