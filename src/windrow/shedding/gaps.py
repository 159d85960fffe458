"""What is missing from an answer: runs of windows that were dropped, by where they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from windrow.shedding.phases import Phases
    from windrow.windows.grid import SlideGrid


@dataclass(frozen=True, slots=True)
class Gap:
    """Windows in a row without an answer: `first` and `last` are where the first and the last one end."""

    first: int
    last: int
    windows: int
    #: the query was suspended; otherwise MAX GAP holds
    suspended: bool = False

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        return [self.first, self.last, self.windows, self.suspended]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Self:
        """What `to_json` wrote."""
        return cls(*stored)


def gaps(phases: Phases, grid: SlideGrid, after: int, until: int) -> list[Gap]:
    """The gaps among the windows that end in (after, until].

    >>> from windrow.shedding.phases import Cycles, Phases
    >>> from windrow.windows.grid import SlideGrid
    >>> phases = Phases().then(0, Cycles(0, 10, batch=3), p=0.75, seed=1)
    >>> gaps(phases, SlideGrid(5), 0, 80)
    [Gap(first=15, last=40, windows=6, suspended=False), Gap(first=55, last=80, windows=6, suspended=False)]
    """
    found = []
    for run in phases.runs(after, until):
        missing = grid.instants(run.after, run.until)
        if missing:
            found.append(Gap(missing[0], missing[-1], len(missing), run.suspended))
    return found


def joined(known: Sequence[Gap], new: Iterable[Gap], slide: int) -> list[Gap]:
    """Gaps in order; where one goes on in the next, they are one.

    >>> joined([Gap(10, 20, 2)], [Gap(30, 40, 2), Gap(60, 60, 1)], slide=10)
    [Gap(first=10, last=40, windows=4, suspended=False), Gap(first=60, last=60, windows=1, suspended=False)]
    """
    found = list(known)
    for gap in new:
        last = found[-1] if found else None
        if last is not None and last.last + slide == gap.first and last.suspended == gap.suspended:
            found[-1] = Gap(last.first, gap.last, last.windows + gap.windows, gap.suspended)
        else:
            found.append(gap)
    return found
