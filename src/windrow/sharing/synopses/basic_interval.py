"""The basic interval synopsis: the last b intervals, combined from the youngest to the oldest.

Windows of all lengths are answered on the way, so that one pass serves any number of queries.

Card: basic interval synopsis
    requirements  states that can be combined, in any order
    time          probe: as many intervals as the longest window has, once for all lengths; update: nothing
    space         b intervals
    source        thesis, 2.3.4; panes: Li et al. 2005, "No Pane, No Gain"
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from windrow.sharing.synopses.states import EMPTY
from windrow.sharing.synopses.synopsis import Kind, Stored, Synopsis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from windrow.sharing.synopses.states import States


class BasicIntervalSynopsis(Synopsis):
    """The tables of the last b intervals, youngest first."""

    kind = Kind.BASIC

    def __init__(self, states: States, b: int, end: int) -> None:
        super().__init__(states, b, end)
        self._tables: deque[pl.DataFrame] = deque(maxlen=b)

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        longest = max(lengths, default=0)
        self.reads += longest
        return self.states.from_youngest(list(self._tables)[:longest], lengths)

    def intervals(self) -> list[pl.DataFrame]:
        return list(self._tables)

    def _insert(self, table: pl.DataFrame) -> None:
        self._tables.appendleft(table)

    def _clear(self) -> None:
        self._tables.clear()

    def _named(self) -> dict[str, pl.DataFrame]:
        numbered = enumerate(self._tables, start=1)
        return {str(self.end - back): table for back, table in numbered if table.height}

    def _take(self, stored: Stored) -> None:
        known = (stored.tables.get(str(self.end - back), EMPTY) for back in range(1, self.b + 1))
        self._tables = deque(known, maxlen=self.b)
