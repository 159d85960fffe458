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

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from windrow.sharing.synopses.states import EMPTY

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from windrow.sharing.synopses.states import States


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


@dataclass(frozen=True)
class Stored:
    """A synopsis as it is written: tables by name, each never changed under that name, and a few numbers.

    The totals of a running synopsis change their names when they are subtracted from, every b updates.
    """

    kind: Kind
    b: int
    meta: Mapping[str, int]
    tables: Mapping[str, pl.DataFrame]


class Synopsis(ABC):
    """States over the last `b` intervals before number `end`."""

    kind: Kind

    def __init__(self, states: States, b: int, end: int) -> None:
        self.states = states
        self.b = b
        self.end = end
        #: how many intervals have been read by probes
        self.reads = 0
        self._filled: int | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no interval that it holds has any rows."""
        return self._filled is None or self.end - self._filled > self.b

    def update(self, table: pl.DataFrame) -> None:
        """Insert the interval `end`; the oldest one goes."""
        if table.height:
            self._filled = self.end
        self._insert(table)
        self.end += 1

    def skip_to(self, end: int) -> None:
        """Nothing came in the intervals before `end`."""
        if self.is_empty:
            self._clear()
            self.end = max(self.end, end)
        while self.end < end:
            self.update(EMPTY)
            if self.is_empty:
                self.skip_to(end)

    @abstractmethod
    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        """The states over the last n intervals, for each n, 1 ≤ n ≤ b."""

    def stored(self) -> Stored:
        """All of it, to be written."""
        filled = {} if self._filled is None else {"filled": self._filled}
        return Stored(self.kind, self.b, {"end": self.end, **filled, **self._meta()}, self._named())

    def restore(self, stored: Stored) -> None:
        """Become what was written."""
        self.end, self._filled = stored.meta["end"], stored.meta.get("filled")
        self._take(stored)

    @abstractmethod
    def intervals(self) -> list[pl.DataFrame]:
        """The states of the single intervals it holds, youngest first."""

    @abstractmethod
    def _insert(self, table: pl.DataFrame) -> None: ...

    @abstractmethod
    def _clear(self) -> None: ...

    @abstractmethod
    def _named(self) -> dict[str, pl.DataFrame]: ...

    @abstractmethod
    def _take(self, stored: Stored) -> None: ...

    def _meta(self) -> dict[str, int]:
        return {}
