"""The running synopsis: totals since the beginning, two of which make a window by subtraction.

    f([1,t])  f([1,t−s])  f([1,t−2s])  …  f([1,t−bs])        f((t−ns, t]) = f([1,t]) − f([1,t−ns])

The beginning moves on: every b updates the oldest total is subtracted from all, so that totals stay small and
groups that are long gone do not stay at all.

Card: running synopsis
    requirements  subtractable states (counts, totals of exact numbers)
    time          probe: 2 totals for each length; update: the groups of a total
    space         b + 1 totals
    source        Arasu and Widom 2004; thesis, 2.3.4
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from windrow.sharing.synopses.states import EMPTY, States
from windrow.sharing.synopses.synopsis import Kind, Stored, Synopsis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


class RunningSynopsis(Synopsis):
    """b + 1 running totals, youngest first."""

    kind = Kind.RUNNING

    def __init__(self, states: States, b: int, end: int) -> None:
        super().__init__(states, b, end)
        self._totals: deque[pl.DataFrame] = deque([EMPTY], maxlen=b + 1)
        self._since = 0
        #: how often totals were subtracted from
        self._rebased = 0

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        self.reads += 2 * len(lengths)
        oldest = len(self._totals) - 1
        return self.states.differences(
            self._totals[0], {length: self._totals[min(length, oldest)] for length in lengths}
        )

    def intervals(self) -> list[pl.DataFrame]:
        pairs = zip(self._totals, list(self._totals)[1:], strict=False)
        return [self.states.subtracted(whole, before) for whole, before in pairs]

    def _insert(self, table: pl.DataFrame) -> None:
        total = self.states.merged([self._totals[0], table]) if table.height else self._totals[0]
        self._totals.appendleft(total)
        self._since += 1
        if self._since > self.b:
            self._rebase()

    def _rebase(self) -> None:
        oldest = self._totals[-1]
        if oldest.height:
            rest = (self.states.subtracted(total, oldest) for total in self._totals)
            self._totals = deque(rest, maxlen=self.b + 1)
            self._rebased += 1
        self._since = 0

    def _clear(self) -> None:
        self._totals = deque([EMPTY], maxlen=self.b + 1)
        self._since = 0

    def _meta(self) -> dict[str, int]:
        return {"since": self._since, "rebased": self._rebased, "totals": len(self._totals)}

    def _named(self) -> dict[str, pl.DataFrame]:
        named = enumerate(self._totals)
        return {f"{self._rebased}.{self.end - back}": table for back, table in named if table.height}

    def _take(self, stored: Stored) -> None:
        self._since, self._rebased = stored.meta["since"], stored.meta["rebased"]
        names = (f"{self._rebased}.{self.end - back}" for back in range(stored.meta["totals"]))
        self._totals = deque((stored.tables.get(name, EMPTY) for name in names), maxlen=self.b + 1)
