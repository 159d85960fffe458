"""The sheets of a ledger as arrays: groups numbered once for all, and matrices of blocks of groups.

A sheet as matrices, one row for each interval that has rows and one column for each group.

Windows of all lengths follow from what is computed once: totals that can be subtracted are the difference of
two running totals. All else is combined from blocks of 1, 2, 4, … intervals: MIN and MAX of two that overlap,
anything else of as many as the length has binary ones. Nothing inexact is ever subtracted.

Card: dense sheets
    requirements  associative combine with neutral element; few enough intervals and groups for a matrix
    time          once per epoch: a cell for each interval and group, times log b where blocks are needed; per
                  window and group: one subtraction; one combination for MIN and MAX, else at most log b
    space         a cell, times log b where blocks are needed
    source        running and interval synopses: Golab 2006, 8.3.1; intervals shared by several queries:
                  Li et al. 2005
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.combiners import Combiner, Lanes, subtract, take
from windrow.kernels.columnar.numbering import number_groups, with_groups
from windrow.kernels.layouts import PANE
from windrow.kernels.shared.shared_state import encoded, place_of, terms_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.aggregates.partials import Decoder
    from windrow.kernels.shared.shared_state import Ledger, Sheet

    Ints = npt.NDArray[np.int64]


@dataclass
class Matrix:
    """The states of one combiner: lane values at (interval, group)."""

    combiner: Combiner
    cells: Lanes
    _totals: Lanes | None = None
    _blocks: list[Lanes] = field(default_factory=list)

    @classmethod
    def of(
        cls, combiner: Combiner, lanes: Lanes, rows: Ints, columns: Ints, shape: tuple[int, int]
    ) -> Matrix:
        """States at some places; those of no rows elsewhere.

        >>> from windrow.kernels.columnar.combiners import LEAST, TOTAL
        >>> at = np.array([0, 1, 2, 4]), np.zeros(4, dtype=np.int64)
        >>> least = Matrix.of(LEAST, (np.array([5, 3, 9, 7]),), *at, (5, 1))
        >>> least.windows(np.array([0, 2, 0]), np.array([1, 5, 5]))[0].ravel().tolist()
        [5, 7, 3]
        >>> total = Matrix.of(TOTAL, (np.array([5, 3, 9, 7]),), *at, (5, 1))
        >>> total.windows(np.array([0, 2]), np.array([3, 5]))[0].ravel().tolist()
        [17, 16]
        """
        cells = combiner.identity(shape)
        for cell, lane in zip(cells, lanes, strict=True):
            cell[rows, columns] = lane
        return cls(combiner, cells)

    def windows(self, begins: Ints, ends: Ints) -> Lanes:
        """The states of the intervals from each begin up to its end, for all groups."""
        if self.combiner.invertible:
            return subtract(take(self.totals, ends), take(self.totals, begins))
        found = self.combiner.identity((len(begins), self.cells[0].shape[1]))
        if self.combiner.chooses:
            self._choose(found, begins, ends)
            return found
        lengths = ends - begins
        place = begins.copy()
        for level in reversed(range(int(lengths.max(initial=0)).bit_length())):
            mine = np.flatnonzero(lengths >> level & 1)
            if not len(mine):
                continue
            more = take(self._block(level), place[mine])
            if len(mine) == len(begins):
                found = self.combiner.combine(found, more)
            else:
                both = self.combiner.combine(take(found, mine), more)
                for lane, value in zip(found, both, strict=True):
                    lane[mine] = value
            place[mine] += 1 << level
        return found

    def _choose(self, found: Lanes, begins: Ints, ends: Ints) -> None:
        """The largest block that begins with the window, and the one of that size that ends with it."""
        lengths = ends - begins
        for level in range(int(lengths.max(initial=0)).bit_length()):
            mine = np.flatnonzero(lengths >> level == 1)
            if len(mine):
                block = self._block(level)
                last = ends[mine] - (1 << level)
                both = self.combiner.combine(take(block, begins[mine]), take(block, last))
                for lane, value in zip(found, both, strict=True):
                    lane[mine] = value

    @property
    def totals(self) -> Lanes:
        """Running totals, beginning with nothing."""
        if self._totals is None:
            self._totals = tuple(
                np.concatenate([np.zeros_like(cell[:1]), np.cumsum(cell, axis=0)]) for cell in self.cells
            )
        return self._totals

    def _block(self, level: int) -> Lanes:
        """The states of 2^level intervals from each one on."""
        if not self._blocks:
            self._blocks.append(self.cells)
        while len(self._blocks) <= level:
            half, below = 1 << (len(self._blocks) - 1), self._blocks[-1]
            left, right = take(below, slice(None, -half)), take(below, slice(half, None))
            self._blocks.append(self.combiner.combine(left, right))
        return self._blocks[level]


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
