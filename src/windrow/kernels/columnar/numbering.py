"""Numbering: keys become small integers, so that kernels compute with arrays.

Groups are numbered 0, 1, … over all tables of a call (`g`). In a table of values each (group, value) has a
number of its own (`id`), in the order of the groups, so that a block of groups is a block of ids in every
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.kernels.columnar import columns, combiners
from windrow.kernels.state import PANE, Encoded, TableLayout
from windrow.windows.domain import Ints


@dataclass(frozen=True)
class Numbered:
    """A table of states as arrays. `catalog` tells what an id stands for: its `g`, and perhaps its value."""

    layout: TableLayout
    catalog: pl.DataFrame
    ids: Ints
    panes: Ints
    encoded: Encoded

    def of_groups(self, groups: tuple[int, int]) -> tuple[int, int, slice]:
        """The ids of the groups from one up to another, from the first up to a last one; and their rows."""
        first, stop = np.searchsorted(self.catalog["g"].to_numpy(), groups).tolist()
        return first, stop, slice(*np.searchsorted(self.ids, (first, stop)).tolist())

    def framed(self, w: Ints, ids: Ints, lanes: Sequence[combiners.Lanes]) -> pl.DataFrame:
        """States of windows as a frame: w, g, perhaps the value, and the partials."""
        keys = columns.picked(self.catalog, ids)
        return pl.DataFrame([pl.Series("w", w), *keys.get_columns(), *self.encoded.decode(lanes)])

    def stored(
        self, groups: pl.DataFrame, panes: Ints, ids: Ints, lanes: Sequence[combiners.Lanes]
    ) -> pl.DataFrame:
        """States as a table of the layout again, groups by their keys."""
        keys = columns.picked(self.catalog, ids)
        keys = keys.with_columns(columns.picked(groups.drop("g"), keys["g"]).get_columns()).select(
            self.layout.keys
        )
        return pl.DataFrame([pl.Series(PANE, panes), *keys.get_columns(), *self.encoded.decode(lanes)])

    @property
    def runs(self) -> Ints:
        """Where the rows of each id begin."""
        return np.flatnonzero(np.diff(self.ids, prepend=-1))

    def scanned(self, runs: Ints, backwards: bool = False) -> list[combiners.Lanes]:
        """The state of each row with all before it in its run; or, `backwards`, with all after it."""
        pairs = zip(self.layout.combiners, self.encoded.lanes, strict=True)
        return [combiners.segmented(combiner, lanes, runs, backwards) for combiner, lanes in pairs]


def number_groups(frames: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The groups of some frames, any of which may be empty, each with its number `g`.

    >>> number_groups([pl.DataFrame({"k0": ["b", None, "b"]})], ["k0"]).shape
    (2, 2)
    """
    if not keys:
        return pl.DataFrame({"g": pl.Series([0], dtype=pl.Int64)})
    some = [frame.select(keys) for frame in frames if frame.height]
    groups = pl.concat(some).unique() if some else pl.DataFrame()
    return groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("g"))


def with_groups(frame: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The frame with the numbers of its groups in place of their keys."""
    if not keys:
        return frame.with_columns(pl.lit(0, pl.Int64).alias("g"))
    return frame.drop(keys).with_columns(columns.looked_up(frame.select(keys), groups, "g"))


def number(frame: pl.DataFrame, layout: TableLayout, groups: pl.DataFrame, keys: Sequence[str]) -> Numbered:
    """A table of states as arrays, sorted by id and pane."""
    values = [name for name in layout.keys if name not in keys]
    known = with_groups(frame, groups, keys)
    if values:
        catalog = known.select("g", *values).unique().sort("g")
        catalog = catalog.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("id"))
        known = known.with_columns(columns.looked_up(known.select("g", *values), catalog, "id"))
        catalog = catalog.drop("id")
    else:
        catalog = groups.select("g")
        known = known.with_columns(pl.col("g").alias("id"))
    known = known.sort("id", PANE)
    encoded = layout.encode(known)
    return Numbered(layout, catalog, known["id"].to_numpy(), known[PANE].to_numpy(), encoded)


def number_each(
    tables: Mapping[str, pl.DataFrame],
    layouts: Mapping[str, TableLayout],
    groups: pl.DataFrame,
    keys: Sequence[str],
) -> dict[str, Numbered]:
    """Each table that has rows as arrays."""
    return {
        name: number(frame, layouts[name], groups, keys) for name, frame in tables.items() if frame.height
    }


def number_all(
    tables: Mapping[str, pl.DataFrame], layouts: Mapping[str, TableLayout], keys: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, Numbered]]:
    """The groups of all tables, and each table as arrays."""
    groups = number_groups(list(tables.values()), keys)
    return groups, number_each(tables, layouts, groups, keys)


def cut_lanes(lanes: Sequence[combiners.Lanes], part: Any) -> list[combiners.Lanes]:
    """The same part of every lane."""
    return [tuple(lane[part] for lane in group) for group in lanes]
