"""The interval join synopsis (IJ): intervals of s, 2s, 4s, … by which results expire.

Every new result is merged into one interval of each length, so an update changes them all.

Card: interval join
    requirements  states that can be combined
    time          probe: at most 2·log2 b intervals for each length; update: every interval
    space         less than 2b intervals
    source        thesis, 8.3.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from windrow.sharing.synopses.joins.synopsis import JoinSynopsis, merged_into
from windrow.sharing.synopses.levels import Levels
from windrow.sharing.synopses.synopsis import Kind

if TYPE_CHECKING:
    import polars as pl

    from windrow.sharing.synopses.states import States


class IntervalJoin(JoinSynopsis):
    """Tables by (level, number): number i of level l is [i·2^l, (i+1)·2^l). b is made a power of two."""

    kind = Kind.INTERVAL_JOIN

    def __init__(self, states: States, b: int, end: int) -> None:
        self._levels = Levels(b)
        super().__init__(states, self._levels.longest, end)

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        found, reads = self._levels.probe(self.states, self.end, lengths)
        self.reads += reads
        return found

    def _expire(self, first: int) -> None:
        for level in range(self._levels.count):
            if (first - 1) % (1 << level) == 0:
                self._levels.tables.pop((level, (first - 1) >> level), None)

    def _merge(self, results: Mapping[int, pl.DataFrame]) -> None:
        """Long intervals that have begun to expire are not read any more, and not kept."""
        oldest = self.end - self.b
        for interval, table in results.items():
            for level in range(self._levels.count):
                part = level, interval >> level
                if part[1] << level >= oldest:
                    self._levels.tables[part] = merged_into(self.states, self._levels.tables.get(part), table)
