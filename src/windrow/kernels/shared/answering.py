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
from windrow.kernels.shared.combining import combined, place_of, terms_of

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
    #: for each partial, for each entry of it
    parts: tuple[tuple[list[Lanes], ...], ...]


class Answering:
    """All queries that are due, asked one after the other."""

    def __init__(
        self, turn: Turn, due: Sequence[Asker], pages: Sequence[Page], faults: dict[str, Exception]
    ) -> None:
        self.turn, self.faults = turn, faults
        self.book = Book(turn.ledger, pages, {each for asker in due for each in asker.entries})
        # those of one form and the same entries follow each other, so that their states are decoded together
        self.due = sorted(due, key=lambda asker: (asker.form, asker.exists, asker.parts))

    def run(self) -> Iterator[tuple[str, pa.Table]]:
        """The answers of each query, in tables of bounded size."""
        book = self.book
        windows = {asker.query: self._windows(asker) for asker in self.due}
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
                waiting += self._pieces(asker, windows[asker.query], blocks, groups)
            yield from self._answers(waiting)

    def _windows(self, asker: Asker) -> Ints:
        """The ends of a query's windows that have rows of any of the entries that its groups are in."""
        pages = [self.book.sheets[name] for name, is_added in terms_of(asker.exists) if is_added]
        different = {page.sheet.name: page for page in pages}.values()
        found = [asker.windows(page.panes, page.sheet, self.turn.clock) for page in different]
        ends = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        return asker.wanted(ends, self.turn.clock)

    def _pieces(
        self, asker: Asker, ends: Ints, blocks: Mapping[str, Block], groups: tuple[int, int]
    ) -> Iterator[Piece]:
        longest = max(1, CELLS // (groups[1] - groups[0]))
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
                yield Piece(asker, part[w], g + groups[0], count[w, g], states)

    def _states(self, entry: str, asker: Asker, ends: Ints, blocks: Mapping[str, Block]) -> list[Lanes]:
        found: list[tuple[list[Lanes], bool]] = []
        for name, is_added in terms_of(entry):
            page = self.book.sheets[name]
            sheet = page.sheet
            stop = sheet.panes_of(ends)
            begins = np.searchsorted(page.panes, stop - asker.range // sheet.width)
            stops = np.searchsorted(page.panes, stop)
            found.append((blocks[sheet.name].windows(place_of(entry, name), begins, stops), is_added))
        return combined(self.book.shapes[name], found)

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


@lru_cache(maxsize=4096)
def _form(plan: bytes) -> Form:
    query = SlidingQuery.of(pickle.loads(plan))
    measures = Measures(query.aggregate)
    labels = tuple(partial.label for partial in measures.layouts[GROUPS].partials[1:])
    return Form(Answers(query, measures), labels)


def _at(states: list[Lanes], windows: Ints, groups: Ints) -> list[Lanes]:
    return [take(lanes, (windows, groups)) for lanes in states]


def _size(pieces: Sequence[Piece]) -> int:
    return sum(len(piece.ends) for piece in pieces)
