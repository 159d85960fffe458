"""Tallies: counts of values, cells of sketches and lists of frequent values, kept once for several queries.

They belong to a ledger as its sheets do, one for each argument and condition, but are tables and no matrices:
how many values a group has is not known, and most are in few intervals.

    pane | k0 … (the grouping) | v0 … (the value) | rows.0 …

Of an interval that is over, a tally of FREQUENT keeps the list of its most frequent values. Its intervals are
the sub-windows of the queries, so only queries with the same ones share it, whatever their RANGE is.

Card: shared counts
    requirements  cells whose states can be combined
    time          the distinct values of each window, where sums are kept (`windrow.kernels.shared.sums`);
                  else once per epoch the cells of the intervals that windows need, numbered, then for each
                  query as for windows of its own (`windrow.kernels.panes.slide.sparse`)
    space         one state per live interval, group and value, for all queries together; of FREQUENT at most
                  k + 1 counts per interval and group
    source        frequency counts as synopses: Golab 2006, 8.3.1, and Algorithm 6; panes of holistic
                  aggregates: Li et al. 2005
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.aggregates.partials import Rows
from windrow.kernels.aggregates.value_tables import Cells, layout_of
from windrow.kernels.columnar.numbering import cut_lanes, number, rows_of_ids, with_groups
from windrow.kernels.layouts import PANE, Layout
from windrow.kernels.panes.slide import Shape, sparse
from windrow.kernels.shared.shared_state import Sheet

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.shared.request import Asker

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tally(Sheet):
    """A sheet without entries: cells by interval and group, of the rows for which `where` holds."""

    label: str
    cells: Cells
    args: tuple[Expression, ...]
    where: Expression
    #: the lengths of windows that are asked for
    spans: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its grid, and itself."""
        return f"{super().name} {self.label}"

    def layout(self, keys: int) -> Layout:
        return layout_of(self.cells, [f"k{place}" for place in range(keys)], len(self.args))

    def fitted(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
        """Tables of all times are alike."""
        return frame

    def parts(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """Several, so that few intervals are opened to find those that leave."""
        return [part for _, part in frame.group_by(pl.col(PANE) // -(-self.length // 8), maintain_order=True)]

    def lift(
        self, known: Sequence[pl.Series], args: tuple[pl.Series, ...], chosen: pl.Series
    ) -> pl.DataFrame:
        """Rows as cells by interval and group: `known` are their intervals and groups."""
        pane, *keys = known
        layout = self.layout(len(keys))
        ones = pl.Series("rows.0", [1], dtype=pl.Int64).new_from_index(0, len(pane))
        frame = self.cells.table([*known, ones], Rows(args, chosen, pl.DataFrame(), pane))
        kept = [name for name in frame.columns if name[0] not in "kv" and name != pane.name]
        return layout.merge(frame.select(pane.name, *layout.keys, *kept), [pane.name, *layout.keys])


class Tallied:
    """The cells of a tally in an epoch, numbered once for all queries that ask."""

    def __init__(self, tally: Tally, table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> None:
        self.tally = tally
        self.table = number(table, tally.layout(len(keys)), groups, keys)

    def values(self, groups: tuple[int, int]) -> int:
        """How many values some groups have, each with its group."""
        first, stop = self.table.ids_of(*groups)
        return stop - first

    def windows(self, asker: Asker, ends: Ints, groups: tuple[int, int]) -> pl.DataFrame:
        """The cells of the windows with these ends: the place of the end (`w`), group, value, states."""
        table, width = self.table, self.tally.width
        first, stop = table.ids_of(*groups)
        rows = rows_of_ids(table, first, stop)
        ids, panes = table.ids[rows] - first, table.panes[rows]
        lanes = cut_lanes(table.encoded.lanes, rows)
        found = [table.framed(ends[:0], ids[:0], cut_lanes(lanes, slice(0, 0)))]
        for run in _runs(ends, max(asker.range, asker.slide)):
            count = int(run[-1] - run[0]) // asker.slide + 1
            shape = Shape(asker.range // width, asker.slide // width, count)
            places = panes - (self.tally.index(int(run[0])) - shape.length)
            inside = (places >= 0) & (places < shape.panes)
            mine = ids[inside], places[inside], cut_lanes(lanes, inside)
            w, id_, states = sparse(*mine, table.layout.combiners, shape, stop - first)
            at = run[0] + w * asker.slide
            asked = np.isin(at, run)
            place = np.searchsorted(ends, at[asked])
            found.append(table.framed(place, id_[asked] + first, cut_lanes(states, asked)))
        return pl.concat(found)


class Summed:
    """The same where windows are known by their sums, each under its end."""

    def __init__(
        self, tally: Tally, sums: Mapping[int, pl.DataFrame], groups: pl.DataFrame, keys: Sequence[str]
    ) -> None:
        self.tally = tally
        layout = tally.layout(len(keys))
        self._values = [name for name in layout.keys if name not in keys]
        self._sums = {end: with_groups(each, groups, keys) for end, each in sums.items() if each.height}

    def values(self, groups: tuple[int, int]) -> int:
        """How many values some groups have at most, each with its group."""
        return max((each.height for each in self._sums.values()), default=0)

    def windows(self, asker: Asker, ends: Ints, groups: tuple[int, int]) -> pl.DataFrame | None:
        """The cells of the windows with these ends, as above; None if there are none."""
        found = []
        for place, end in enumerate(self.tally.panes_of(ends).tolist()):
            if end in self._sums:
                mine = self._sums[end].filter((pl.col("g") >= groups[0]) & (pl.col("g") < groups[1]))
                w = pl.lit(place, pl.Int64).alias("w")
                found.append(mine.select(w, "g", *self._values, pl.exclude("g", PANE, *self._values)))
        return pl.concat(found) if found else None


def _runs(ends: Ints, apart: int) -> Iterator[Ints]:
    """Ends in runs, with no more than so much between two of one run.

    >>> [run.tolist() for run in _runs(np.array([2, 4, 6, 90, 92]), 10)]
    [[2, 4, 6], [90, 92]]
    """
    yield from (run for run in np.split(ends, np.flatnonzero(np.diff(ends) > apart) + 1) if len(run))
