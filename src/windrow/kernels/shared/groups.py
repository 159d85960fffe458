"""The sheets of a ledger as arrays: groups numbered once for all, and matrices of blocks of groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.numbering import number_groups, with_groups
from windrow.kernels.layouts import PANE
from windrow.kernels.shared.combination import encoded, place_of, terms_of
from windrow.kernels.shared.matrices import Matrix

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.aggregates.partials import Decoder
    from windrow.kernels.columnar.combiners import Lanes
    from windrow.kernels.shared.shared_state import Ledger, Sheet

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Page:
    """The rows of a sheet, and its intervals, each once."""

    sheet: Sheet
    table: pl.DataFrame
    panes: Ints


def page_of(sheet: Sheet, frames: Sequence[pl.DataFrame], ledger: Ledger) -> Page:
    """All rows of a sheet; where there are none, one that counts nowhere, for the types."""
    some = [frame for frame in frames if frame.height]
    if not some:
        keys = [pl.Series(name, [None], dtype=polars_type(kind)) for name, kind in ledger.key_types.items()]
        some = [pl.DataFrame([pl.Series(PANE, [0]), *keys, *sheet.nothing.values()])]
    table = pl.concat(some)
    return Page(sheet, table, np.unique(table[PANE].to_numpy()))


#: states of so many windows and groups are remembered by a block, for whoever asks for the same
REMEMBERED = 1 << 21


class Block:
    """Some groups of a sheet, as matrices that are made when they are asked for.

    What was asked for is remembered: SUM, COUNT and AVG over the same windows are computed once.
    """

    def __init__(self, page: Page, book: Book, groups: tuple[int, int]) -> None:
        self.page, self._book, self._groups = page, book, groups
        rows = slice(*np.searchsorted(book.ids[page.sheet.name], groups))
        self._rows = rows
        self._intervals = book.places[page.sheet.name][rows]
        self._columns = book.ids[page.sheet.name][rows] - groups[0]
        self._matrices: dict[str, list[Matrix]] = {}
        self._asked: dict[tuple[str, bytes, bytes], list[Lanes]] = {}
        self._cells = 0

    def windows(self, entry: str, begins: Ints, ends: Ints) -> list[Lanes]:
        """The states of an entry over some runs of intervals, for all groups of the block."""
        key = entry, begins.tobytes(), ends.tobytes()
        if key not in self._asked:
            self._cells += len(begins) * (self._groups[1] - self._groups[0])
            if self._cells > REMEMBERED:
                self._asked, self._cells = {}, 0
            self._asked[key] = [matrix.windows(begins, ends) for matrix in self._made(entry)]
        return self._asked[key]

    def _made(self, entry: str) -> list[Matrix]:
        if entry not in self._matrices:
            shape = len(self.page.panes), self._groups[1] - self._groups[0]
            at = self._intervals, self._columns, shape
            lanes = [tuple(lane[self._rows] for lane in group) for group in self._book.lanes[entry]]
            pairs = zip(self._book.shapes[entry], lanes, strict=True)
            self._matrices[entry] = [Matrix.of(combiner, group, *at) for combiner, group in pairs]
        return self._matrices[entry]


class Book:
    """All pages with the groups numbered once, rows in the order of the groups."""

    def __init__(
        self,
        ledger: Ledger,
        pages: Sequence[Page],
        recipes: Collection[str] = (),
        others: Sequence[pl.DataFrame] = (),
    ) -> None:
        self.pages, keys = pages, list(ledger.key_types)
        self.groups = number_groups([*(page.table for page in pages), *others], keys)
        if keys:
            order = self.groups.select(pl.arg_sort_by([pl.col(name) for name in keys])).to_series()
            sorted_keys = self.groups.select(pl.col(keys).gather(order))
            self.groups = sorted_keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("g"))
        self.ids: dict[str, Ints] = {}
        self.places: dict[str, Ints] = {}
        self.lanes: dict[str, list[Lanes]] = {}
        self.shapes = {e.name: e.shape.combiners for page in pages for e in page.sheet.entries}
        self.decoders: dict[str, Decoder] = {}
        self.sheets = {entry.name: page for page in pages for entry in page.sheet.entries}
        tables: dict[str, pl.DataFrame] = {}
        for page in pages:
            numbered = with_groups(page.table, self.groups, keys).sort("g")
            self.ids[page.sheet.name] = numbered["g"].to_numpy()
            self.places[page.sheet.name] = np.searchsorted(page.panes, numbered[PANE].to_numpy())
            for entry in page.sheet.entries:
                self.lanes[entry.name], self.decoders[entry.name] = entry.shape.encode(numbered)
                tables[entry.name] = numbered
        for recipe in recipes:
            if recipe not in self.lanes:
                self._combine(recipe, tables)

    def _combine(self, recipe: str, tables: Mapping[str, pl.DataFrame]) -> None:
        """States of several entries, that are to be combined."""
        names = [name for name, _ in terms_of(recipe)]
        entries = {entry.name: entry for page in self.pages for entry in page.sheet.entries}
        found = encoded(entries[names[0]].shape, {name: tables[name] for name in names})
        self.decoders[recipe] = found.decoder
        for name, lanes in found.lanes.items():
            self.lanes[place_of(recipe, name)] = lanes
            self.shapes[place_of(recipe, name)] = self.shapes[name]

    @property
    def cells(self) -> int:
        """How many cells a matrix of each sheet has."""
        return self.groups.height * sum(len(page.panes) for page in self.pages)
