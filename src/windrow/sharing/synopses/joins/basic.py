"""The basic interval join synopsis (BIJ): one state for each interval in which results expire.

Card: basic interval join
    requirements  states that can be combined
    time          probe: one pass from the interval that expires last; update: every interval
    space         b intervals
    source        thesis, 8.3.2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from windrow.sharing.synopses.joins.synopsis import JoinSynopsis, empty, merged_into
from windrow.sharing.synopses.synopsis import Kind

if TYPE_CHECKING:
    import polars as pl

    from windrow.sharing.synopses.states import States


class BasicIntervalJoin(JoinSynopsis):
    """Tables by interval."""

    kind = Kind.BASIC_JOIN

    def __init__(self, states: States, b: int, end: int) -> None:
        super().__init__(states, b, end)
        self._tables: dict[int, pl.DataFrame] = {}

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        longest = max(lengths, default=0)
        self.reads += longest
        tables = [empty(self._tables.get(self.end - 1 - back)) for back in range(longest)]
        return self.states.from_youngest(tables, lengths)

    def _expire(self, first: int) -> None:
        self._tables.pop(first - 1, None)

    def _merge(self, results: Mapping[int, pl.DataFrame]) -> None:
        for interval, table in results.items():
            self._tables[interval] = merged_into(self.states, self._tables.get(interval), table)
