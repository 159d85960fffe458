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
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from windrow.kernels.columnar.combiners import segmented
from windrow.kernels.columnar.numbering import cut_lanes, number, number_groups
from windrow.kernels.state import PANE, TableLayout

EMPTY = pl.DataFrame()


class BasicIntervalSynopsis:
    """The tables of the last b intervals, youngest first: each has a row for each group."""

    def __init__(self, layout: TableLayout, b: int) -> None:
        self._layout = layout
        self._tables: deque[pl.DataFrame] = deque(maxlen=b)

    def update(self, table: pl.DataFrame) -> None:
        """Insert the next interval; the oldest one goes."""
        self._tables.appendleft(table)

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        """The states over the last n intervals, for each n, by one pass from the youngest on."""
        tables = list(self._tables)[: max(lengths, default=0)]
        placed = [_placed(table, place) for place, table in enumerate(tables) if table.height]
        if not placed:
            return dict.fromkeys(lengths, EMPTY)
        keys = [name for name in self._layout.keys if name.startswith("k")]
        groups = number_groups(placed, keys)
        table = number(pl.concat(placed), self._layout, groups, keys)
        pairs = zip(self._layout.combiners, table.encoded.lanes, strict=True)
        scanned = [segmented(combiner, lanes, table.runs) for combiner, lanes in pairs]
        width = len(tables) + 1
        places, ids = table.ids * width + table.panes, np.unique(table.ids)
        found = {}
        for length in lengths:
            last = np.searchsorted(places, ids * width + min(length, len(tables))) - 1
            mine = (last >= 0) & (table.ids[np.maximum(last, 0)] == ids)
            rows = last[mine]
            zeros = np.zeros(len(rows), dtype=np.int64)
            found[length] = table.stored(groups, zeros, ids[mine], cut_lanes(scanned, rows))
        return found


def _placed(table: pl.DataFrame, pane: int) -> pl.DataFrame:
    return table.with_columns(pl.lit(pane, pl.Int64).alias(PANE))
