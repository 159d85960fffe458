"""All queries that are due, asked one after the other; the answers of those of one form are made together."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.answers import Answers
from windrow.kernels.combiners import take
from windrow.kernels.measures import GROUPS, Measures
from windrow.kernels.query import SlidingQuery
from windrow.kernels.shared.book import Block, Book
from windrow.kernels.shared.counting import Counted

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from windrow.kernels.combiners import Lanes
    from windrow.kernels.shared.asking import Asker
    from windrow.kernels.shared.book import Page
    from windrow.kernels.shared.turn import Turn

    Ints = npt.NDArray[np.int64]

#: a block of groups has at most this many cells (intervals × groups, windows × groups)
CELLS = 1 << 19
#: so many states become rows at a time
ROWS = 1 << 20


@dataclass(frozen=True)
class Piece:
    """States of some windows of a query: ends and groups of its rows, how many rows, and the other lanes."""

    asker: Asker
    ends: Ints
    groups: Ints
    rows: Ints
    #: which of how many windows each is in
    places: Ints
    windows: int
    #: for each partial, for each entry of it
    parts: tuple[tuple[list[Lanes], ...], ...]
    #: for each table of cells, those of the windows
    cells: Mapping[str, pl.DataFrame]


class Answering:
    """All queries that are due, asked one after the other."""

    def __init__(
        self,
        turn: Turn,
        due: Sequence[Asker],
        pages: Sequence[Page],
        faults: dict[str, Exception],
        windows: Mapping[str, Ints],
        counted: Counted | None = None,
    ) -> None:
        self.turn, self.faults, self.windows = turn, faults, windows
        counted = Counted() if counted is None else counted
        self.book = Book(turn.ledger, pages, counted.tables)
        self.tallies = counted.numbered(self.book.groups, list(turn.ledger.key_types))
        # those of one form and the same entries follow each other, so that their states are decoded together
        self.due = sorted(due, key=lambda asker: (asker.form, asker.exists, asker.parts))

    def run(self) -> Iterator[tuple[str, pa.Table]]:
        """The answers of each query, in tables of bounded size."""
        book = self.book
        width = max(1, CELLS // max(len(page.panes) for page in book.pages))
        count = book.groups.height
        for first in range(0, count, width):
            groups = first, min(first + width, count)
            blocks = {page.sheet.name: Block(page, book, groups) for page in book.pages}
            waiting: list[Piece] = []
            for asker in self.due:
                if waiting and (waiting[0].asker.form != asker.form or _size(waiting) > ROWS):
                    yield from self._answers(waiting)
                    waiting = []
                waiting += self._pieces(asker, self.windows[asker.query], blocks, groups)
            yield from self._answers(waiting)

    def _pieces(
        self, asker: Asker, ends: Ints, blocks: Mapping[str, Block], groups: tuple[int, int]
    ) -> Iterator[Piece]:
        keys = [(table, (label, asker.range)) for table, label in asker.tallies]
        mine = [(table, self.tallies[key]) for table, key in keys if key in self.tallies]
        longest = max(1, CELLS // max(groups[1] - groups[0], *(each.values(groups) for _, each in mine), 1))
        for begin in range(0, len(ends), longest):
            part = ends[begin : begin + longest]
            ((count,),) = self._states(asker.exists, asker, part, blocks)
            w, g = np.nonzero(count > 0)
            if len(w):
                asked = (
                    tuple(self._states(entry, asker, part, blocks) for entry in entries)
                    for entries in asker.parts
                )
                states = tuple(tuple(_at(each, w, g) for each in found) for found in asked)
                found = {table: each.windows(asker, part, groups) for table, each in mine}
                cells = {table: frame for table, frame in found.items() if frame is not None}
                yield Piece(asker, part[w], g + groups[0], count[w, g], w, len(part), states, cells)

    def _states(self, entry: str, asker: Asker, ends: Ints, blocks: Mapping[str, Block]) -> list[Lanes]:
        page = self.book.sheets[entry]
        sheet = page.sheet
        stop = sheet.panes_of(ends)
        begins = np.searchsorted(page.panes, stop - asker.range // sheet.width)
        return blocks[sheet.name].windows(entry, begins, np.searchsorted(page.panes, stop))

    def _answers(self, pieces: Sequence[Piece]) -> Iterator[tuple[str, pa.Table]]:
        """Rows of several queries of one form; where that fails, of each by itself, to see which it is."""
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

    def _rows(self, pieces: Sequence[Piece]) -> Iterator[tuple[str, pa.Table]]:
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
        # windows of different pieces have different numbers
        offsets = np.cumsum([0, *(piece.windows for piece in pieces)])[:-1]
        shifted = [piece.places + offset for piece, offset in zip(pieces, offsets, strict=True)]
        columns = [
            pl.Series("w", np.concatenate(shifted)),
            pl.Series("g", np.concatenate([piece.groups for piece in pieces])),
            pl.Series("rows.0", np.concatenate([piece.rows for piece in pieces])),
        ]
        for number, label in enumerate(form.labels):
            parts = self._columns(pieces, number)
            columns += [column.alias(f"{label}.{place}") for place, column in enumerate(parts)]
        frames = {GROUPS: pl.DataFrame(columns)}
        for table in form.tables:
            placed = [(p.cells[table], at) for p, at in zip(pieces, offsets, strict=True) if table in p.cells]
            found = [cells.with_columns(pl.col("w") + at) for cells, at in placed]
            frames |= {table: pl.concat(found)} if found else {}
        rows = form.answers.rows(self.book.groups, frames, hidden)
        asker = rows["#asker"].to_numpy()
        rows = rows.drop("#asker", "#window_start", "#window_end")
        starts = np.flatnonzero(np.diff(asker, prepend=-1))
        stops = np.append(starts, len(asker))[1:]
        for begin, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            yield pieces[asker[begin]].asker.query, rows[begin:stop].to_arrow()

    def _columns(self, pieces: Sequence[Piece], number: int) -> list[pl.Series]:
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
    #: tables of cells
    tables: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def _form(plan: bytes) -> Form:
    query = SlidingQuery.of(pickle.loads(plan))
    measures = Measures(query.aggregate)
    labels = tuple(partial.label for partial in measures.layouts[GROUPS].partials[1:])
    tables = tuple(name for name in measures.layouts if name != GROUPS)
    return Form(Answers(query, measures), labels, tables)


def _at(states: list[Lanes], windows: Ints, groups: Ints) -> list[Lanes]:
    return [take(lanes, (windows, groups)) for lanes in states]


def _size(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.ends) + sum(map(len, piece.cells.values())) for piece in pieces)
