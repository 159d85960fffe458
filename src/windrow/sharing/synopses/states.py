"""What synopses do with states, whatever they are: merge, subtract, and combine from the youngest on.

A table of states has a row for each group (and cell), as the kernels have it: `pane`, keys, parts of the
state. All groups are computed at once. A group that a table does not have, has the state of no rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.kernels.layout import PANE, Layout, gathered
from windrow.kernels.numbering import cut_lanes, number, number_groups
from windrow.kernels.scans import segmented

EMPTY = pl.DataFrame()


@dataclass(frozen=True)
class States:
    """The algebra of one kind of state, over tables of a layout."""

    layout: Layout
    #: whether the first part counts rows, so that what has none of them does not exist
    counts_rows: bool = False

    @property
    def is_subtractable(self) -> bool:
        """Is f(X − Y) = f(X) − f(Y), exactly? Not if merging leaves anything out."""
        return self.layout.prune is None and all(each.invertible for each in self.layout.combiners)

    def merged(self, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The states of all rows of all tables."""
        rows = gathered(tables)
        if rows is None:
            return EMPTY
        return self.layout.merge(_placed(rows, 0), [PANE, *self.layout.keys])

    def subtracted(self, whole: pl.DataFrame, part: pl.DataFrame) -> pl.DataFrame:
        """The states of the rows of `whole` that are not in `part`; states of zeros are left out."""
        assert self.is_subtractable
        if not part.height:
            return self._left(whole)
        return self._left(self.merged([whole, self._negative(part)]))

    def differences(
        self, whole: pl.DataFrame, parts: Mapping[int, pl.DataFrame]
    ) -> Mapping[int, pl.DataFrame]:
        """`whole` without each of the parts, all at once."""
        rows = [table for part in parts.values() for table in (whole, self._negative(part))]
        numbers = [number for number in parts for _ in range(2)]
        placed = gathered(_placed(table, number) for table, number in zip(rows, numbers, strict=True))
        if placed is None:
            return dict.fromkeys(parts, EMPTY)
        left = self._left(self.layout.merge(placed, [PANE, *self.layout.keys]))
        found = left.partition_by(PANE, as_dict=True)
        return {number: found.get((number,), EMPTY) for number in parts}

    def _negative(self, table: pl.DataFrame) -> pl.DataFrame:
        if not table.height:
            return table
        names = [name for name in table.columns if name != PANE and name not in self.layout.keys]
        return table.with_columns(-pl.col(name) for name in names)

    def _left(self, table: pl.DataFrame) -> pl.DataFrame:
        if not table.height:
            return table
        parts = table.drop([PANE, *self.layout.keys])
        if self.counts_rows:
            return table.filter(parts.to_series(0) > 0)
        return table.filter(parts.select(pl.any_horizontal(pl.all() != 0)).to_series())

    def from_youngest(
        self, tables: Sequence[pl.DataFrame], lengths: Sequence[int]
    ) -> Mapping[int, pl.DataFrame]:
        """The states over the first so many tables, for each length, by one pass from the first table on."""
        placed = [_placed(table, place) for place, table in enumerate(tables) if table.height]
        if not placed:
            return dict.fromkeys(lengths, EMPTY)
        keys = [name for name in self.layout.keys if name.startswith("k")]
        groups = number_groups(placed, keys)
        table = number(pl.concat(placed), self.layout, groups, keys)
        pairs = zip(self.layout.combiners, table.encoded.lanes, strict=True)
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
    return table.with_columns(pl.lit(pane, pl.Int64).alias(PANE)) if table.height else table
