"""The kernel of a ledger: takes in what is new, and answers all queries that are due together.

State is a run of closed chunks for each sheet, oldest first, which are only read, and the intervals that are
still open. An epoch merges the intervals that close, makes matrices of what is kept, block of groups by block
of groups, and asks them for the windows of one query after the other. Answers of queries of one form become
rows together.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.answers import Answers
from windrow.kernels.columns import polars_type
from windrow.kernels.layout import PANE
from windrow.kernels.measures import GROUPS, Measures
from windrow.kernels.numbering import number_groups, with_groups
from windrow.kernels.panes import merge_panes
from windrow.kernels.query import SlidingQuery
from windrow.kernels.shared.matrices import Matrix
from windrow.kernels.state import Chunk, State, chunked, split_at
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from windrow.kernels.clocks import Clock
    from windrow.kernels.combiners import Lanes
    from windrow.kernels.partials import Decoder
    from windrow.kernels.shared.asking import Asker
    from windrow.kernels.shared.ledger import Ledger, Sheet

    Ints = npt.NDArray[np.int64]

CLOSED, OPEN = ".closed", ".open"
#: more chunks of a sheet than these are put together
MOST_CHUNKS = 24
#: a block of groups has at most this many cells (intervals × groups, windows × groups)
CELLS = 1 << 19
#: so many states become rows at a time
ROWS = 1 << 20


@dataclass(frozen=True)
class Turn:
    """An epoch of a ledger. `forms` are the queries, pickled, that the askers' forms are taken from."""

    ledger: Ledger
    clock: Clock
    askers: tuple[Asker, ...]
    forms: tuple[bytes, ...]


@dataclass
class Answered:
    """What an epoch of a ledger gives: answers by query as they are made, and the queries that failed."""

    state: State
    tables: Iterator[tuple[str, pa.Table]]
    faults: dict[str, Exception] = field(default_factory=dict)
    #: how many cells its matrices have
    cells: int = 0


def advance(turn: Turn, state: State, delta: Mapping[str, pl.DataFrame]) -> Answered:
    """The next state, and the answers of all that is due."""
    due = [asker for asker in turn.askers if asker.is_due(turn.clock)]
    chunks: dict[str, tuple[Chunk, ...]] = {}
    tables: dict[str, list[pl.DataFrame]] = {}
    for sheet in turn.ledger.sheets:
        moved = _Moved.of(turn, sheet, state, delta.get(sheet.name))
        chunks |= moved.kept(turn.clock)
        lowest = _lowest(due, sheet, turn.clock)
        tables[sheet.name] = moved.frames(lowest) if due else []
    found = Answered(State({name: some for name, some in chunks.items() if some}), iter(()))
    if due:
        if any(frame.height for frames in tables.values() for frame in frames):
            pages = [_page(sheet, tables[sheet.name], turn.ledger) for sheet in turn.ledger.sheets]
            answering = _Answering(turn, due, pages, found.faults)
            found.cells, found.tables = answering.book.cells, answering.run()
    return found


# ---------------------------------------------------------------- what is kept


@dataclass(frozen=True)
class _Moved:
    """A sheet whose clock has moved: what was closed before and closes now, and what is still open."""

    sheet: Sheet
    keys: tuple[str, ...]
    closed: tuple[Chunk, ...]
    open: tuple[Chunk, ...]

    @classmethod
    def of(cls, turn: Turn, sheet: Sheet, state: State, new: pl.DataFrame | None) -> _Moved:
        keys = tuple(turn.ledger.key_types)
        layout, now = sheet.layout(len(keys)), turn.clock.now
        waiting = (*state.of(sheet.name + OPEN), *chunked([] if new is None else [new]))
        closed = state.of(sheet.name + CLOSED)
        stop = _BEFORE_ALL if now == -INFINITY else _AFTER_ALL if now == INFINITY else sheet.index(int(now))
        closing, rest = split_at(waiting, stop)
        if closing:
            fitted = [sheet.fitted(frame, keys) for frame in closing]
            closed = (*closed, *chunked([merge_panes(fitted, layout)]))
        if len(rest) > MOST_CHUNKS:
            fitted = [sheet.fitted(chunk.frame, keys) for chunk in rest]
            rest = list(chunked([merge_panes(fitted, layout)]))
        return cls(sheet, keys, closed, tuple(rest))

    def frames(self, lowest: int) -> list[pl.DataFrame]:
        """What is closed, from an interval on; each interval and group once."""
        found = []
        for chunk in self.closed:
            if chunk.last >= lowest:
                frame = self.sheet.fitted(chunk.frame, self.keys)
                found.append(frame.filter(pl.col(PANE) >= lowest) if chunk.first < lowest else frame)
        return found

    def kept(self, clock: Clock) -> dict[str, tuple[Chunk, ...]]:
        """What windows after the clock need."""
        name = self.sheet.name
        if clock.now == INFINITY:
            return {}
        closed = self.closed
        if clock.now != -INFINITY:
            first = self.sheet.index(int(clock.now)) - self.sheet.length
            closed = tuple(chunk for chunk in closed if chunk.last >= first)
            if len(closed) > MOST_CHUNKS:
                closed = chunked([pl.concat(self.frames(first))])
        return {name + CLOSED: closed, name + OPEN: self.open}


def _lowest(due: Sequence[Asker], sheet: Sheet, clock: Clock) -> int:
    """The first interval that any window needs."""
    if clock.before == -INFINITY or not due:
        return _BEFORE_ALL
    return sheet.index(int(clock.before) - max(asker.range for asker in due))


# ---------------------------------------------------------------- matrices


@dataclass(frozen=True)
class _Page:
    """The rows of a sheet, and its intervals, each once."""

    sheet: Sheet
    table: pl.DataFrame
    panes: Ints


def _page(sheet: Sheet, frames: Sequence[pl.DataFrame], ledger: Ledger) -> _Page:
    """All rows of a sheet; where there are none, one that counts nowhere, for the types."""
    some = [frame for frame in frames if frame.height]
    if not some:
        keys = [
            pl.Series(name, [None], dtype=polars_type(kind)) for name, kind in ledger.key_types.items()
        ]
        some = [pl.DataFrame([pl.Series(PANE, [0]), *keys, *sheet.nothing.values()])]
    table = pl.concat(some)
    return _Page(sheet, table, np.unique(table[PANE].to_numpy()))


class _Block:
    """Some groups of a sheet, as matrices that are made when they are asked for."""

    def __init__(self, page: _Page, book: _Book, groups: tuple[int, int]) -> None:
        self.page, self._book, self._groups = page, book, groups
        rows = slice(*np.searchsorted(book.ids[page.sheet.name], groups))
        self._rows = rows
        self._intervals = book.places[page.sheet.name][rows]
        self._columns = book.ids[page.sheet.name][rows] - groups[0]
        self._matrices: dict[str, list[Matrix]] = {}

    def windows(self, entry: str, begins: Ints, ends: Ints) -> list[Lanes]:
        """The states of an entry over some runs of intervals, for all groups of the block."""
        if entry not in self._matrices:
            shape = len(self.page.panes), self._groups[1] - self._groups[0]
            at = self._intervals, self._columns, shape
            lanes = [tuple(lane[self._rows] for lane in group) for group in self._book.lanes[entry]]
            pairs = zip(self._book.shapes[entry], lanes, strict=True)
            self._matrices[entry] = [Matrix.of(combiner, group, *at) for combiner, group in pairs]
        return [matrix.windows(begins, ends) for matrix in self._matrices[entry]]


class _Book:
    """All pages with the groups numbered once, rows in the order of the groups."""

    def __init__(self, ledger: Ledger, pages: Sequence[_Page]) -> None:
        self.pages, keys = pages, list(ledger.key_types)
        self.groups = number_groups([page.table for page in pages], keys)
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
        for page in pages:
            numbered = with_groups(page.table, self.groups, keys).sort("g")
            self.ids[page.sheet.name] = numbered["g"].to_numpy()
            self.places[page.sheet.name] = np.searchsorted(page.panes, numbered[PANE].to_numpy())
            for entry in page.sheet.entries:
                self.lanes[entry.name], self.decoders[entry.name] = entry.shape.encode(numbered)

    @property
    def cells(self) -> int:
        """How many cells a matrix of each sheet has."""
        return self.groups.height * sum(len(page.panes) for page in self.pages)


# ---------------------------------------------------------------- answers


@dataclass(frozen=True)
class _Piece:
    """States of some windows of a query: ends and groups of its rows, how many rows, and the other lanes."""

    asker: Asker
    ends: Ints
    groups: Ints
    rows: Ints
    #: for each partial, for each entry of it
    parts: tuple[tuple[list[Lanes], ...], ...]


class _Answering:
    """All queries that are due, asked one after the other."""

    def __init__(
        self, turn: Turn, due: Sequence[Asker], pages: Sequence[_Page], faults: dict[str, Exception]
    ) -> None:
        self.turn, self.faults = turn, faults
        self.book = _Book(turn.ledger, pages)
        # those of one form and the same entries follow each other, so that their states are decoded together
        self.due = sorted(due, key=lambda asker: (asker.form, asker.exists, asker.parts))

    def run(self) -> Iterator[tuple[str, pa.Table]]:
        """The answers of each query, in tables of bounded size."""
        book = self.book
        windows = {
            asker.query: asker.windows(page.panes, page.sheet, self.turn.clock)
            for asker, page in ((asker, book.sheets[asker.exists]) for asker in self.due)
        }
        width = max(1, CELLS // max(len(page.panes) for page in book.pages))
        count = book.groups.height
        for first in range(0, count, width):
            groups = first, min(first + width, count)
            blocks = {page.sheet.name: _Block(page, book, groups) for page in book.pages}
            waiting: list[_Piece] = []
            for asker in self.due:
                if waiting and (waiting[0].asker.form != asker.form or _size(waiting) > ROWS):
                    yield from self._answers(waiting)
                    waiting = []
                waiting += self._pieces(asker, windows[asker.query], blocks, groups)
            yield from self._answers(waiting)

    def _pieces(
        self, asker: Asker, ends: Ints, blocks: Mapping[str, _Block], groups: tuple[int, int]
    ) -> Iterator[_Piece]:
        longest = max(1, CELLS // (groups[1] - groups[0]))
        for begin in range(0, len(ends), longest):
            part = ends[begin : begin + longest]
            ((count,),) = self._states(asker.exists, asker, part, blocks)
            w, g = np.nonzero(count > 0)
            if len(w):
                states = tuple(
                    tuple(
                        [tuple(lane[w, g] for lane in lanes) for lanes in self._states(e, asker, part, blocks)]
                        for e in entries
                    )
                    for entries in asker.parts
                )
                yield _Piece(asker, part[w], g + groups[0], count[w, g], states)

    def _states(self, entry: str, asker: Asker, ends: Ints, blocks: Mapping[str, _Block]) -> list[Lanes]:
        page = self.book.sheets[entry]
        sheet = page.sheet
        stop = sheet.panes_of(ends)
        begins = np.searchsorted(page.panes, stop - asker.range // sheet.width)
        return blocks[sheet.name].windows(entry, begins, np.searchsorted(page.panes, stop))

    def _answers(self, pieces: Sequence[_Piece]) -> Iterator[tuple[str, pa.Table]]:
        """The rows of several queries of one form; where that fails, of each by itself, to see which it is."""
        if not pieces:
            return
        try:
            found = list(self._rows(pieces))
        except Exception as error:  # noqa: BLE001  whatever is wrong with one query must not stop the others
            queries = list(dict.fromkeys(piece.asker.query for piece in pieces))
            if len(queries) == 1:
                self.faults[queries[0]] = error
                return
            for query in queries:
                yield from self._answers([piece for piece in pieces if piece.asker.query == query])
            return
        yield from found

    def _rows(self, pieces: Sequence[_Piece]) -> Iterator[tuple[str, pa.Table]]:
        form = _form(self.turn.forms[pieces[0].asker.form])
        ends = np.concatenate([piece.ends for piece in pieces])
        sizes = [len(piece.ends) for piece in pieces]
        lengths = np.repeat([piece.asker.range for piece in pieces], sizes)
        at = pl.Series("#at", ends)
        hidden = [
            pl.Series("#asker", np.repeat(np.arange(len(pieces)), sizes)),
            at,
            pl.Series("#window_start", ends - lengths),
            at.alias("#window_end"),
        ]
        columns = [
            pl.Series("g", np.concatenate([piece.groups for piece in pieces])),
            pl.Series("rows.0", np.concatenate([piece.rows for piece in pieces])),
        ]
        for number, label in enumerate(form.labels):
            parts = self._columns(pieces, number)
            columns += [column.alias(f"{label}.{place}") for place, column in enumerate(parts)]
        rows = form.answers.rows(self.book.groups, {GROUPS: pl.DataFrame(columns)}, hidden)
        asker = rows["#asker"].to_numpy()
        rows = rows.drop("#asker", "#window_start", "#window_end")
        starts = np.flatnonzero(np.diff(asker, prepend=-1))
        stops = np.append(starts, len(asker))[1:]
        for begin, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            yield pieces[asker[begin]].asker.query, rows[begin:stop].to_arrow()

    def _columns(self, pieces: Sequence[_Piece], number: int) -> list[pl.Series]:
        """The columns of a partial, those of queries that share its entries decoded at once."""
        found: list[list[pl.Series]] = []
        begin = 0
        while begin < len(pieces):
            entries = pieces[begin].asker.parts[number]
            stop = begin + 1
            while stop < len(pieces) and pieces[stop].asker.parts[number] == entries:
                stop += 1
            run = [piece.parts[number] for piece in pieces[begin:stop]]
            decoded: list[pl.Series] = []
            for place, entry in enumerate(entries):
                lanes = [
                    tuple(np.concatenate(same) for same in zip(*alike, strict=True))
                    for alike in zip(*(part[place] for part in run), strict=True)
                ]
                decoded += self.book.decoders[entry](lanes)
            found.append(decoded)
            begin = stop
        if len(found) == 1:
            return found[0]
        return [pl.concat([part.alias("") for part in parts]) for parts in zip(*found, strict=True)]


@dataclass(frozen=True)
class Form:
    """What makes rows of states: the same for all queries that select the same of the same aggregates."""

    answers: Answers
    labels: tuple[str, ...]


@lru_cache(maxsize=4096)
def _form(plan: bytes) -> Form:
    query = SlidingQuery.of(pickle.loads(plan))
    measures = Measures(query.aggregate)
    labels = tuple(partial.label for partial in measures.layouts[GROUPS].partials[1:])
    return Form(Answers(query, measures), labels)


def _size(pieces: Sequence[_Piece]) -> int:
    return sum(len(piece.ends) for piece in pieces)


_BEFORE_ALL, _AFTER_ALL = -(1 << 62), 1 << 62
