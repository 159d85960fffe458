"""The kernel of a shared state: takes in what is new, and answers all queries that are due together.

An epoch merges the intervals that close, makes matrices of what is kept, block of groups by block of groups,
and asks them for the windows of one query after the other: of those together that want the same of other
windows. The answers of queries of one form are made together.

A matrix has one row for each interval that has rows and one column for each group. Windows of all lengths
follow from what is computed once: totals that can be subtracted are the difference of two running totals.
All else is combined from blocks of 1, 2, 4, … intervals: MIN and MAX of two that overlap, anything else of as
many as the length has binary ones. Nothing inexact is ever subtracted.

Card: dense pane grids
    requirements  associative combine with neutral element; few enough intervals and groups for a matrix
    time          once per epoch: a cell for each interval and group, times log b where blocks are needed; per
                  window and group: one subtraction; one combination for MIN and MAX, else at most log b
    space         a cell, times log b where blocks are needed
    source        running and interval synopses: Golab 2006, 8.3.1; intervals shared by several queries:
                  Li et al. 2005
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra.shipments import unpacked
from windrow.algebra.types import DataType
from windrow.kernels.aggregates import measures, partials
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.combiners import Combiner, Lanes, put, running, subtract, take
from windrow.kernels.columnar.numbering import cut_lanes, number_groups, with_groups
from windrow.kernels.panes.pane_tables import PaneAnswers
from windrow.kernels.panes.query import SlidingQuery
from windrow.kernels.shared import shared_state, shared_state as shared, value_counts
from windrow.kernels.state import PANE, Chunk, State
from windrow.windows.domain import Ints


@dataclass
class Matrix:
    """The states of one combiner: lane values at (interval, group)."""

    combiner: Combiner
    cells: Lanes
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
        put(cells, (rows, columns), lanes)
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
                put(found, mine, self.combiner.combine(take(found, mine), more))
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
                put(found, mine, self.combiner.combine(take(block, begins[mine]), take(block, last)))

    @cached_property
    def totals(self) -> Lanes:
        """Running totals of the intervals."""
        return running(self.cells)

    def _block(self, level: int) -> Lanes:
        """The states of 2^level intervals from each one on."""
        if not self._blocks:
            self._blocks.append(self.cells)
        while len(self._blocks) <= level:
            half, below = 1 << (len(self._blocks) - 1), self._blocks[-1]
            left, right = take(below, slice(None, -half)), take(below, slice(half, None))
            self._blocks.append(self.combiner.combine(left, right))
        return self._blocks[level]


class PaneGridRows:
    """All rows of a pane grid, and its intervals, each once. Without rows there is one that counts nowhere,
    for the types."""

    def __init__(
        self,
        pane_grid: shared_state.PaneGrid,
        frames: Sequence[pl.DataFrame],
        key_types: Mapping[str, DataType],
    ) -> None:
        some = [frame for frame in frames if frame.height]
        if not some:
            keys = [pl.Series(name, [None], dtype=polars_type(kind)) for name, kind in key_types.items()]
            some = [pl.DataFrame([pl.Series(PANE, [0]), *keys, *pane_grid.nothing.values()])]
        self.pane_grid, self.table = pane_grid, pl.concat(some)
        self.panes = np.unique(self.table[PANE].to_numpy())

    def sort(self, groups: pl.DataFrame, keys: Sequence[str]) -> None:
        """The rows in the order of their groups: `ids`; `places` are those of their intervals."""
        self.table = with_groups(self.table, groups, keys).sort("g")
        self.ids: Ints = self.table["g"].to_numpy()
        self.places = np.searchsorted(self.panes, self.table[PANE].to_numpy())


@dataclass(frozen=True)
class EntryStates:
    """The states of an entry in the rows of its page as lanes, and the way back."""

    entry: shared_state.Entry
    page: PaneGridRows
    lanes: list[Lanes]
    decoder: partials.Decoder


#: states of so many windows and groups are remembered by a block, for whoever asks for the same
REMEMBERED = 1 << 21


class Block:
    """Some groups of a pane grid, as matrices that are made when they are asked for.

    What was asked for is remembered: SUM, COUNT and AVG over the same windows are computed once.
    """

    def __init__(
        self, page: PaneGridRows, states: Mapping[str, EntryStates], groups: tuple[int, int]
    ) -> None:
        self.page, self._states, self._groups = page, states, groups
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
            page, states, (first, stop) = self.page, self._states[entry], self._groups
            rows = slice(*np.searchsorted(page.ids, self._groups))
            at = page.places[rows], page.ids[rows] - first, (len(page.panes), stop - first)
            pairs = zip(states.entry.shape.combiners, cut_lanes(states.lanes, rows), strict=True)
            self._matrices[entry] = [Matrix.of(combiner, lanes, *at) for combiner, lanes in pairs]
        return self._matrices[entry]


class Book:
    """All pages with the groups numbered once, rows in the order of the groups."""

    def __init__(
        self,
        key_types: Mapping[str, DataType],
        pages: Sequence[PaneGridRows],
        recipes: Collection[str],
        others: Sequence[pl.DataFrame],
    ) -> None:
        self.pages, keys = pages, list(key_types)
        self.groups = number_groups([*(page.table for page in pages), *others], keys)
        if keys:
            order = self.groups.select(pl.arg_sort_by([pl.col(name) for name in keys])).to_series()
            sorted_keys = self.groups.select(pl.col(keys).gather(order))
            self.groups = sorted_keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("g"))
        self.states: dict[str, EntryStates] = {}
        for page in pages:
            page.sort(self.groups, keys)
            for entry in page.pane_grid.entries:
                self.states[entry.name] = EntryStates(entry, page, *entry.shape.encode(page.table))
        for recipe in recipes:
            if recipe not in self.states:
                self._combine(recipe)

    def _combine(self, recipe: str) -> None:
        """States of several entries of one shape, that are to be combined. They are encoded as one, so that
        values that have codes (the greatest text) are comparable."""
        entries = [self.states[name] for name, _ in shared_state.terms_of(recipe)]
        shape, parts = entries[0].entry.shape, []
        for each in entries:
            name, table = each.entry.name, each.page.table
            own = [column for column in table.columns if column.startswith(f"{name}.")]
            parts.append(table.select(pl.col(c).alias(shape.label + c.removeprefix(name)) for c in own))
        lanes, decoder = shape.encode(pl.concat(parts))
        begin = 0
        for each in entries:
            rows = slice(begin, begin + each.page.table.height)
            mine = EntryStates(each.entry, each.page, cut_lanes(lanes, rows), decoder)
            self.states[shared_state.place_of(recipe, each.entry.name)] = mine
            begin = rows.stop

    @property
    def cells(self) -> int:
        """How many cells a matrix of each pane grid has."""
        return self.groups.height * sum(len(page.panes) for page in self.pages)


#: a block of groups has at most this many cells (intervals × groups, windows × groups)
CELLS = 1 << 19
#: so many states become rows at a time
ROWS = 1 << 20


@dataclass(frozen=True)
class Windows:
    """Where some windows end, and how long each is."""

    ends: Ints
    lengths: Ints

    def distinct(self) -> tuple[Windows, Ints]:
        """The windows, each once; and which of them each one is.

        >>> windows, which = Windows(np.array([9, 6, 9, 9]), np.array([3, 3, 3, 5])).distinct()
        >>> windows.ends.tolist(), windows.lengths.tolist(), which.tolist()
        ([6, 9, 9], [3, 3, 5], [1, 0, 1, 2])
        """
        ends, at = np.unique(self.ends, return_inverse=True)
        lengths, long = np.unique(self.lengths, return_inverse=True)
        codes, which = np.unique(at * len(lengths) + long, return_inverse=True)
        return Windows(ends[codes // len(lengths)], lengths[codes % len(lengths)]), which


@dataclass(frozen=True)
class WindowBlock:
    """States of some windows of queries that ask together, query by query."""

    askers: tuple[shared_state.WindowRequest, ...]
    #: of each state: which query asks, where its window ends and how long it is, which of the windows that
    #: is, its group, and how many rows it has
    states: Lanes
    windows: int
    #: for each partial, for each entry of it
    parts: tuple[tuple[list[Lanes], ...], ...]
    #: for each table of cells, those of the windows
    cells: Mapping[str, pl.DataFrame]

    @property
    def who(self) -> Ints:
        """Which query asks for each state."""
        return self.states[0]

    def of(self, number: int) -> WindowBlock:
        """What one of the queries asked for."""
        mine = slice(*np.searchsorted(self.who, [number, number + 1]))
        parts = tuple(
            tuple([take(lanes, mine) for lanes in states] for states in partial) for partial in self.parts
        )
        return replace(self, states=take(self.states, mine), parts=parts)


@dataclass(frozen=True)
class Pack:
    """Answers of several queries in one table, one query after the other."""

    table: pa.Table
    #: each query, and how many of the rows are its own
    queries: tuple[tuple[str, int], ...]


class Answering:
    """All queries that are due: those of one form and the same entries are asked together."""

    def __init__(
        self,
        turn: shared_state.SharedEpoch,
        due: Sequence[shared_state.WindowRequest],
        pages: Sequence[PaneGridRows],
        faults: dict[str, Exception],
        windows: Mapping[str, Ints],
        counted: value_counts.CountedValues,
    ) -> None:
        self.turn, self.faults, self.windows = turn, faults, windows
        key_types, recipes = turn.shared_state.key_types, {each for asker in due for each in asker.entries}
        self.book = Book(key_types, pages, recipes, counted.tables)
        self.value_counters = counted.numbered(self.book.groups, list(key_types))
        self.due = sorted(due, key=_alike)

    def run(self) -> Iterator[Pack]:
        """The answers of all queries, in tables of bounded size."""
        book = self.book
        choirs = [tuple(alike) for _, alike in groupby(self.due, key=_alike)]
        width = max(1, CELLS // max(len(page.panes) for page in book.pages))
        count = book.groups.height
        for first in range(0, count, width):
            groups = first, min(first + width, count)
            blocks = {page.pane_grid.name: Block(page, book.states, groups) for page in book.pages}
            waiting: list[WindowBlock] = []
            for askers in choirs:
                for piece in self._pieces(askers, blocks, groups):
                    other = waiting and waiting[0].askers[0].form != piece.askers[0].form
                    if other or _size(waiting) > ROWS:
                        yield from self._answers(waiting)
                        waiting = []
                    waiting.append(piece)
            yield from self._answers(waiting)

    def _pieces(
        self,
        askers: tuple[shared_state.WindowRequest, ...],
        blocks: Mapping[str, Block],
        groups: tuple[int, int],
    ) -> Iterator[WindowBlock]:
        """What queries of one form and the same entries ask for, a bounded number of windows at a time."""
        asker = askers[0]
        keys = [(table, (label, asker.range)) for table, label in asker.value_counters]
        mine = [(table, self.value_counters[key]) for table, key in keys if key in self.value_counters]
        longest = max(1, CELLS // max(groups[1] - groups[0], *(each.values(groups) for _, each in mine), 1))
        due = [self.windows[asker.query] for asker in askers]
        who = np.repeat(np.arange(len(askers)), [len(ends) for ends in due])
        ends, lengths = np.concatenate(due), np.array([asker.range for asker in askers])[who]
        for begin in range(0, len(ends), longest):
            known = take((who, ends, lengths), slice(begin, begin + longest))
            windows, which = Windows(*known[1:]).distinct()
            ((count,),) = self._states(asker.exists, windows, blocks)
            w, g = np.nonzero((count > 0)[which])
            if len(w):
                at = which[w], g
                parts = tuple(
                    tuple(
                        [take(lanes, at) for lanes in self._states(entry, windows, blocks)] for entry in each
                    )
                    for each in asker.parts
                )
                found = {table: each.windows(asker, known[1], groups) for table, each in mine}
                cells = {table: frame for table, frame in found.items() if frame is not None}
                states = *take(known, w), w, g + groups[0], count[at]
                yield WindowBlock(askers, states, len(known[0]), parts, cells)

    def _states(self, entry: str, windows: Windows, blocks: Mapping[str, Block]) -> list[Lanes]:
        """The states of an entry, or of several combined, in some windows."""
        found: list[Lanes] = []
        for name, is_added in shared_state.terms_of(entry):
            states = self.book.states[name]
            page, pane_grid = states.page, states.page.pane_grid
            stop = pane_grid.panes_of(windows.ends)
            begins = np.searchsorted(page.panes, stop - windows.lengths // pane_grid.width)
            stops = np.searchsorted(page.panes, stop)
            more = blocks[pane_grid.name].windows(shared_state.place_of(entry, name), begins, stops)
            if found:
                both = zip(states.entry.shape.combiners, found, more, strict=True)
                more = [c.combine(a, b) if is_added else subtract(a, b) for c, a, b in both]
            found = more
        return found

    def _answers(self, pieces: Sequence[WindowBlock]) -> Iterator[Pack]:
        """Rows of several queries of one form; where that fails, of each by itself, to see which it is."""
        if not pieces:
            return
        try:
            found = self._rows(pieces)
        except Exception as error:  # noqa: BLE001  whatever is wrong with one query must not stop the others
            alone = [(piece, number) for piece in pieces for number in np.unique(piece.who).tolist()]
            if len(alone) == 1:
                ((piece, number),) = alone
                self.faults[piece.askers[number].query] = error
                return
            for piece, number in alone:
                yield from self._answers([piece.of(number)])
            return
        yield found

    def _rows(self, pieces: Sequence[WindowBlock]) -> Pack:
        form = _answers_of(self.turn.forms[pieces[0].askers[0].form])
        layouts = form.measures.layouts
        askers = [asker for piece in pieces for asker in piece.askers]
        who, ends, lengths, places, groups, rows = map(
            np.concatenate, zip(*(piece.states for piece in pieces), strict=True)
        )
        # queries and windows of different pieces have different numbers
        sizes = [len(piece.who) for piece in pieces]
        before = np.cumsum([0, *(len(piece.askers) for piece in pieces)])[:-1]
        offsets = np.cumsum([0, *(piece.windows for piece in pieces)])[:-1]
        hidden = [
            pl.Series("#asker", who + np.repeat(before, sizes)),
            pl.Series("#at", ends),
            pl.Series("#window_start", ends - lengths),
            pl.Series("#window_end", ends),
        ]
        columns = [
            pl.Series("w", places + np.repeat(offsets, sizes)),
            pl.Series("g", groups),
            pl.Series("rows.0", rows),
        ]
        for number, partial in enumerate(layouts[measures.GROUPS].partials[1:]):
            parts = self._columns(pieces, number)
            columns += [column.alias(f"{partial.label}.{place}") for place, column in enumerate(parts)]
        frames = {measures.GROUPS: pl.DataFrame(columns)}
        for table in layouts.keys() - {measures.GROUPS}:
            placed = [(p.cells[table], at) for p, at in zip(pieces, offsets, strict=True) if table in p.cells]
            found = [cells.with_columns(pl.col("w") + at) for cells, at in placed]
            frames |= {table: pl.concat(found)} if found else {}
        answers = form.rows(self.book.groups, frames, hidden)
        asker = answers["#asker"].to_numpy()
        starts = np.flatnonzero(np.diff(asker, prepend=-1))
        counts = np.diff(np.append(starts, len(asker))).tolist()
        queries = [askers[number].query for number in asker[starts].tolist()]
        table = answers.drop("#asker", "#window_start", "#window_end").to_arrow()
        return Pack(table, tuple(zip(queries, counts, strict=True)))

    def _columns(self, pieces: Sequence[WindowBlock], number: int) -> list[pl.Series]:
        """The columns of a partial, those of queries that share its entries decoded at once."""
        found: list[list[pl.Series]] = []
        begin = 0
        while begin < len(pieces):
            entries = pieces[begin].askers[0].parts[number]
            stop = begin + 1
            while stop < len(pieces) and pieces[stop].askers[0].parts[number] == entries:
                stop += 1
            run = [piece.parts[number] for piece in pieces[begin:stop]]
            decoded: list[pl.Series] = []
            for place, entry in enumerate(entries):
                lanes = [
                    tuple(np.concatenate(same) for same in zip(*alike, strict=True))
                    for alike in zip(*(part[place] for part in run), strict=True)
                ]
                first, _ = shared_state.terms_of(entry)[0]
                decoded += self.book.states[shared_state.place_of(entry, first)].decoder(lanes)
            found.append(decoded)
            begin = stop
        if len(found) == 1:
            return found[0]
        return [pl.concat([part.alias("") for part in parts]) for parts in zip(*found, strict=True)]


@lru_cache(maxsize=4096)
def _answers_of(form: bytes) -> PaneAnswers:
    """What makes rows of states: the same for all queries that select the same of the same aggregates."""
    query = SlidingQuery.of(unpacked(form))
    return PaneAnswers(query, measures.Measures(query.aggregate))


def _alike(asker: shared_state.WindowRequest) -> tuple[int, str, tuple[tuple[str, ...], ...], str]:
    """The same for queries whose states are the same ones, of other windows; each with cells is by itself."""
    return asker.form, asker.exists, asker.parts, asker.query if asker.value_counters else ""


def _size(pieces: Sequence[WindowBlock]) -> int:
    return sum(len(piece.who) + sum(map(len, piece.cells.values())) for piece in pieces)


@dataclass
class Answered:
    """What an epoch of a shared state gives: answers as they are made, and the queries that failed."""

    state: State
    packs: Iterator[Pack]
    faults: dict[str, Exception] = field(default_factory=dict)
    #: how many cells its matrices have
    cells: int = 0


def advance(turn: shared_state.SharedEpoch, state: State, delta: Mapping[str, pl.DataFrame]) -> Answered:
    """The next state, and the answers of all that is due."""
    due = [asker for asker in turn.askers if asker.is_due(turn.clock)]
    keys = tuple(turn.shared_state.key_types)
    chunks: dict[str, tuple[Chunk, ...]] = {}
    tables: dict[str, list[pl.DataFrame]] = {}
    for pane_grid in turn.shared_state.pane_grids:
        moved = shared.Moved.of(pane_grid, keys, state, delta.get(pane_grid.name), turn.clock)
        chunks |= moved.kept(turn.clock)
        tables[pane_grid.name] = moved.frames(shared.lowest(due, pane_grid, turn.clock)) if due else []
    pages: list[PaneGridRows] = []
    windows: dict[str, Ints] = {}
    if any(frame.height for frames in tables.values() for frame in frames):
        key_types = turn.shared_state.key_types
        pages = [PaneGridRows(each, tables[each.name], key_types) for each in turn.shared_state.pane_grids]
        windows = windows_of(due, pages, turn.clock)
    counted = value_counts.counted_in(turn, state, delta, due, windows)
    chunks |= counted.chunks
    after = State({name: some for name, some in chunks.items() if some}, counted.meta)
    found = Answered(after, iter(()))
    if pages:
        answering = Answering(turn, due, pages, found.faults, windows, counted)
        found.cells, found.packs = answering.book.cells, answering.run()
    return found


def windows_of(
    due: Sequence[shared_state.WindowRequest], pages: Sequence[PaneGridRows], clock: PaneClock
) -> dict[str, Ints]:
    """The ends of the windows of each query that are to be answered: those with rows of any of the entries
    that its groups are in."""
    of = {entry.name: page for page in pages for entry in page.pane_grid.entries}
    windows: dict[str, Ints] = {}
    for asker in due:
        mine = [of[name] for name, is_added in shared_state.terms_of(asker.exists) if is_added]
        different = {page.pane_grid.name: page for page in mine}.values()
        found = [asker.windows(page.panes, page.pane_grid, clock) for page in different]
        ends = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        windows[asker.query] = asker.wanted(ends, clock)
    return windows
