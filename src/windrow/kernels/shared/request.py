"""What a query asks of a shared state: its windows, and the entries that its states are made of.

Queries that differ only in their windows and conditions have the same *form*: what is selected of the same
aggregates. All answers of a form are made of states at once.

Queries that ask what another one asks, only less often (CS8): their answers are among the other's.

Their windows are as long as the other's and end at some of the same instants, so that what a follower answers
are those rows of its leader that are about its own instants.

>>> every_third = Follower("f", slide=30, origin=0, begin=60)
>>> every_third.wants(np.array([30, 40, 60, 70, 90])).tolist()
[False, False, True, False, True]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.kernels.panes.cuts import Cut
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.clock import PaneClock
    from windrow.kernels.shared.shared_state import PaneGrid

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Follower:
    """A query and the instants it answers; windows that end before `begin` are not complete for it."""

    query: str
    slide: int
    origin: int
    begin: int | None = None

    @property
    def instants(self) -> tuple[int, int, int | None]:
        """What decides which rows it takes."""
        return self.slide, self.origin % self.slide, self.begin

    def wants(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of some instants are its own."""
        mine = (at - self.origin) % self.slide == 0
        return np.asarray(mine if self.begin is None else mine & (at >= self.begin))

    def rows(self, table: pa.Table) -> pa.Table:
        """Its rows among those of its leader, whose first column is the instant."""
        return table.filter(pa.array(self.wants(instants(table))))

    def to_json(self) -> list[Any]:
        """For the manifest."""
        return [self.query, self.slide, self.origin, self.begin]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Follower:
        """What `to_json` wrote."""
        return cls(*stored)


def instants(table: pa.Table) -> npt.NDArray[np.int64]:
    """The first column of a table of answers, as ticks."""
    return np.asarray(table.column(0).cast(pa.int64()).to_numpy())


@dataclass(frozen=True)
class WindowRequest:
    """A query: its windows [E-range, E), and where its states are."""

    query: str
    #: the number of its form
    form: int
    range: int
    slide: int
    origin: int
    #: the entry, or several combined, that counts the rows of its groups
    exists: str
    #: for each partial of its form, the entries, or several combined, that its columns are in
    parts: tuple[tuple[str, ...], ...]
    #: windows that begin earlier are not answered
    complete_from: int | None = None
    #: of all windows that are due, only the last one is answered
    newest: bool = False
    #: whether the windows that end at an instant are left out; None: none is
    drops: Callable[[int], bool] | None = None
    #: queries whose answers are among its own
    followers: tuple[Follower, ...] = ()
    #: for each table of cells of its form, the value counter that it is in
    value_counters: tuple[tuple[str, str], ...] = ()

    @cached_property
    def cut(self) -> Cut:
        """Where its windows end."""
        return Cut(self.range, self.slide, self.origin)

    @property
    def entries(self) -> tuple[str, ...]:
        """All that it asks for."""
        return (self.exists, *(entry for entries in self.parts for entry in entries))

    def is_due(self, clock: PaneClock) -> bool:
        """Whether the clock passes the end of a window."""
        return clock.is_due(self.cut)

    def windows(self, panes: Ints, pane_grid: PaneGrid, clock: PaneClock) -> Ints:
        """The ends of the windows that are due and have any of these intervals, in order."""
        begins = pane_grid.phase + panes * pane_grid.width - self.origin
        first = -(-(begins + pane_grid.width) // self.slide) - 1
        last = (begins + self.range) // self.slide - 1
        if clock.before != -INFINITY:
            first = np.maximum(first, int(self.cut.due(clock.before)) + 1)
        if self.complete_from is not None:
            first = np.maximum(first, -((self.origin - self.complete_from - self.range) // self.slide) - 1)
        if clock.now != INFINITY:
            last = np.minimum(last, int(self.cut.due(clock.now)))
        first = np.maximum(first, np.append(first[:1], last[:-1] + 1))
        counts = np.maximum(last - first + 1, 0)
        since = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(self.origin + (np.repeat(first, counts) + since + 1) * self.slide)

    def wanted(self, ends: Ints, clock: PaneClock) -> Ints:
        """Of the windows that end at some instants, in order, those that are answered."""
        if self.newest and clock.now != INFINITY:
            ends = ends[ends == self.origin + (int(self.cut.due(clock.now)) + 1) * self.slide]
        elif self.newest:
            ends = ends[-1:]
        if self.drops is None:
            return ends
        wanted: Ints = ends[np.array([not self.drops(end) for end in ends.tolist()], dtype=bool)]
        return wanted
