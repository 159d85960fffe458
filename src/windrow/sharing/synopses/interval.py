"""The interval synopsis: intervals of s, 2s, 4s, … up to bs, few of which make any window.

    t−8s                                  t
     |                 8s                 |         a window of 7s, ending at t:
     |        4s        |        4s       |         [s][ 2s ][   4s   ]
     |   2s   |   2s    |   2s   |   2s   |
     | s | s  | s  | s  | s | s  | s | s  |

Long intervals lie where their number says, at multiples of their length; a window that ends between these
needs some on both sides.

Card: interval synopsis
    requirements  states that can be combined, in any order
    time          probe: at most 2·log2 b intervals for each length; update: amortised 2 merges
    space         less than 2b intervals
    source        Arasu and Widom 2004; thesis, 2.3.4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.sharing.synopses.levels import Levels
from windrow.sharing.synopses.states import EMPTY, States
from windrow.sharing.synopses.synopsis import Kind, Stored, Synopsis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


class IntervalSynopsis(Synopsis):
    """Intervals by (level, number): number i of level l is [i·2^l, (i+1)·2^l). b is made a power of two."""

    kind = Kind.INTERVAL

    def __init__(self, states: States, b: int, end: int) -> None:
        self._levels = Levels(b)
        super().__init__(states, self._levels.longest, end)

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        found, reads = self._levels.probe(self.states, self.end, lengths)
        self.reads += reads
        return found

    def intervals(self) -> list[pl.DataFrame]:
        return [self._levels.tables.get((0, self.end - back), EMPTY) for back in range(1, self.b + 1)]

    def _insert(self, table: pl.DataFrame) -> None:
        at, tables = self.end, self._levels.tables
        if table.height:
            tables[0, at] = table
        for level in range(1, self._levels.count):
            if (at + 1) % (1 << level):
                break
            number = at >> level
            halves = [(level - 1, 2 * number), (level - 1, 2 * number + 1)]
            halved = [self._levels.tables[half] for half in halves if half in self._levels.tables]
            if halved:
                self._levels.tables[level, number] = (
                    self.states.merged(halved) if len(halved) > 1 else halved[0]
                )
        gone = at - self.b
        for level in range(self._levels.count):
            if gone % (1 << level) == 0:
                tables.pop((level, gone >> level), None)

    def _clear(self) -> None:
        self._levels.tables = {}

    def _named(self) -> dict[str, pl.DataFrame]:
        return {f"{level}.{number}": table for (level, number), table in self._levels.tables.items()}

    def _take(self, stored: Stored) -> None:
        named = ((name.split("."), table) for name, table in stored.tables.items())
        self._levels.tables = {(int(level), int(number)): table for (level, number), table in named}
