"""The running join synopsis (RJ): for each interval, the results that expire with it or before.

An (n, n)-join is all results less those of the oldest b − n intervals. When an interval expires, its results
are subtracted from all totals.

Card: running join
    requirements  subtractable states
    time          probe: 2 totals for each length; update: every total
    space         b totals
    source        thesis, 8.3.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from windrow.sharing.synopses.joins.synopsis import JoinSynopsis
from windrow.sharing.synopses.states import EMPTY
from windrow.sharing.synopses.synopsis import Kind

if TYPE_CHECKING:
    import polars as pl

    from windrow.sharing.synopses.states import States


class RunningJoin(JoinSynopsis):
    """`_totals[i]` has the results of the i + 1 intervals that expire first."""

    kind = Kind.RUNNING_JOIN

    def __init__(self, states: States, b: int, end: int) -> None:
        super().__init__(states, b, end)
        self._totals: list[pl.DataFrame] = [EMPTY] * b

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        found = {}
        for length in lengths:
            older = EMPTY if length == self.b else self._totals[self.b - length - 1]
            found[length] = self.states.subtracted(self._totals[-1], older)
            self.reads += 2
        return found

    def _expire(self, first: int) -> None:
        gone = self._totals[0]
        kept = [self.states.subtracted(total, gone) for total in self._totals[1:]]
        self._totals = [*kept, kept[-1] if kept else EMPTY]

    def _merge(self, results: Mapping[int, pl.DataFrame]) -> None:
        new = EMPTY
        for place in range(self.b):
            more = results.get(self.end - self.b + place)
            new = new if more is None else self.states.merged([new, more])
            if new.height:
                self._totals[place] = self.states.merged([self._totals[place], new])
