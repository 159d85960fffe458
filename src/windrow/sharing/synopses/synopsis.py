"""What a synopsis is (thesis, 2.3.4): states over intervals of a stream, for windows of n of them.

Its parameters are s, the length of an interval; b, the most intervals a window may have; and f, what is kept
of each. Intervals are numbered; `update` inserts the next one and lets go of what no window holds any more,
`probe` gives the states over the last n intervals, for several n at once.

| kind           | keeps                              | probe of n             | for                     |
|----------------|------------------------------------|------------------------|-------------------------|
| running        | b + 1 totals since the beginning   | 2 of them, subtracted  | subtractable aggregates |
| interval       | intervals of s, 2s, 4s, …          | at most 2·log b        | few queries at a time   |
| basic interval | b intervals of s                   | n; the longest for all | many queries at a time  |
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
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
        return self in (Kind.BASIC, Kind.BASIC_JOIN)

    @property
    def is_join(self) -> bool:
        return self in (Kind.RUNNING_JOIN, Kind.INTERVAL_JOIN, Kind.BASIC_JOIN)

    @property
    def of_join(self) -> Kind:
        """The same for joins."""
        return {
            Kind.RUNNING: Kind.RUNNING_JOIN,
            Kind.INTERVAL: Kind.INTERVAL_JOIN,
            Kind.BASIC: Kind.BASIC_JOIN,
        }.get(self, self)
