"""What a query asks of a ledger: its windows, and the entries that its states are made of.

Queries that differ only in their windows and conditions have the same *form*: what is selected of the same
aggregates. All answers of a form are made of states at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.panes.cuts import Cut
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.clock import Clock
    from windrow.kernels.shared.followers import Follower
    from windrow.kernels.shared.shared_state import Sheet

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asker:
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
    #: for each table of cells of its form, the tally that it is in
    tallies: tuple[tuple[str, str], ...] = ()

    @cached_property
    def cut(self) -> Cut:
        """Where its windows end."""
        return Cut(self.range, self.slide, self.origin)

    @property
    def entries(self) -> tuple[str, ...]:
        """All that it asks for."""
        return (self.exists, *(entry for entries in self.parts for entry in entries))

    def is_due(self, clock: Clock) -> bool:
        """Whether the clock passes the end of a window."""
        return clock.is_due(self.cut)

    def windows(self, panes: Ints, sheet: Sheet, clock: Clock) -> Ints:
        """The ends of the windows that are due and have any of these intervals, in order."""
        begins = sheet.phase + panes * sheet.width - self.origin
        first = -(-(begins + sheet.width) // self.slide) - 1
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

    def wanted(self, ends: Ints, clock: Clock) -> Ints:
        """Of the windows that end at some instants, in order, those that are answered."""
        if self.newest and clock.now != INFINITY:
            ends = ends[ends == self.origin + (int(self.cut.due(clock.now)) + 1) * self.slide]
        elif self.newest:
            ends = ends[-1:]
        if self.drops is None:
            return ends
        wanted: Ints = ends[np.array([not self.drops(end) for end in ends.tolist()], dtype=bool)]
        return wanted
