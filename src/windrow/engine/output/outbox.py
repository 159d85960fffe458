"""What waits in the outbox, looked through once for all sinks, in the order and the schema that users see.

What is delivered was committed before, so a crash repeats a delivery and never invents one. Rows of one
commit go out by instant, then '+' before '-', then in the order of rows: NULL first, NaN last. A query whose
answers are those of another reads the other's section: all of it, or what is about its own instants. What was
read and put in order for one is given to all: files are opened once, and answers that lie in packs are put in
order pack by pack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra import Emit, instant_type
from windrow.kernels.columnar import columns
from windrow.kernels.shared.shared_state import Follower
from windrow.sinks import Delivery
from windrow.state.chunk import Key, OpenChunk, open_chunk
from windrow.state.manifest import ChunkRef, OutboxEntry
from windrow.state.store import Store
from windrow.windows.domain import Ints


def published_schema(emit: Emit) -> pa.Schema:
    """The columns of a query's answers: `at` first, `op` where they come and go, times as Arrow's times.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> bids = {"bids": "item BIGINT, ts TIMESTAMP"}
    >>> text = "SELECT item, COUNT(*) AS n FROM bids [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item"
    >>> published_schema(compile_query(text, declared(bids, {}))).names
    ['at', 'item', 'n']
    """
    domain = emit.leaves[0].domain
    # where a tick is no value, the column says what one is, which `published` reads
    step = domain.step and {columns.RESOLUTION: str(domain.step)}
    at = pa.field("at", columns.arrow_type(instant_type(domain)), metadata=step)
    op = [pa.field("op", pa.string())] if emit.emits_deletions else []
    # a column that is called like ours gets an underscore
    own = [pa.field(f.name + "_" * (f.name == "at"), columns.arrow_type(f.type)) for f in emit.schema]
    return pa.schema([at, *op, *own])


#: rows that a sink is given at a time
PIECE = 1 << 18
#: more rows than these are sorted instant by instant
SORTED_AT_ONCE = 1 << 22


def in_order(parts: list[pa.Table]) -> Iterator[pl.DataFrame]:
    """The rows of several tables in order of delivery, in pieces.

    >>> parts = [pa.table({"#at": [2, 1], "k": ["b", None]}), pa.table({"#at": [2], "k": ["a"]})]
    >>> [piece.rows() for piece in in_order(parts)]
    [[(1, None), (2, 'a'), (2, 'b')]]
    """
    total = sum(part.num_rows for part in parts)
    if total <= SORTED_AT_ONCE:
        yield from sorted_rows([columns.to_frame(part) for part in parts]).iter_slices(PIECE)
        return
    frames = [columns.to_frame(part) for part in parts]
    for at in sorted({at for frame in frames for at in frame.to_series(0).unique()}):
        chosen = [frame.filter(pl.nth(0) == at) for frame in frames]
        yield from sorted_rows([part for part in chosen if part.height]).iter_slices(PIECE)


def sorted_rows(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Sorted by as many columns as it takes: mostly the instant and the first column are enough."""
    frame = pl.concat(parts)
    known = _by_numbers(frame)
    if known is not None:
        return frame if len(known) == 0 else frame.select(pl.all().gather(pl.Series(known)))
    keys = pl.DataFrame([order_key(column).alias(str(place)) for place, column in enumerate(frame)])
    order = _order(keys, keys.columns[:2])
    if _has_ties(keys.select(keys.columns[:2]), order):
        order = _order(keys, keys.columns)
    return frame.select(pl.all().gather(order))


def _by_numbers(frame: pl.DataFrame) -> Ints | None:
    """The order by the first columns, as many as it takes to have no ties, if these are integers: then it is
    that of all. None if they are not. Empty: it is in order already.

    Tasks write rows by instant and group, so that there are few runs to merge, which is what this sort does.

    >>> _by_numbers(pl.DataFrame({"#at": [1, 2, 1], "k": [4, 4, 3]})).tolist()
    [2, 0, 1]
    >>> _by_numbers(pl.DataFrame({"#at": [3, 2], "x": [0.5, 0.5]})).tolist()
    [1, 0]
    """
    code, spread = np.zeros(frame.height, dtype=np.int64), 1
    for place in range(frame.width):
        column = _integers(frame, place)
        if column is None:
            return None
        least = int(column.min())
        width = int(column.max()) - least + 1
        spread *= width
        if spread >= 1 << 62:
            return None
        code = code * width + (column - least)
        order = _without_ties(code)
        if order is not None:
            return order
    return None


def _integers(frame: pl.DataFrame, place: int) -> Ints | None:
    """A column of integers without NULL; None if it is no such column."""
    if place >= frame.width or not frame.height:
        return None
    column = frame.to_series(place)
    if not column.dtype.is_signed_integer() or column.null_count():
        return None
    return column.cast(pl.Int64).to_numpy()


def _without_ties(code: Ints) -> Ints | None:
    """The order of numbers that all differ; empty if they are in order. None: some are the same."""
    if (np.diff(code) > 0).all():
        return np.empty(0, dtype=np.int64)
    order = np.argsort(code, kind="stable")
    return None if (np.diff(code[order]) == 0).any() else order


def _order(keys: pl.DataFrame, by: list[str]) -> pl.Series:
    return keys.select(pl.arg_sort_by([pl.col(name) for name in by])).to_series()


def _has_ties(keys: pl.DataFrame, order: pl.Series) -> bool:
    rows = keys.select(pl.all().gather(order))
    same = (pl.col(name).eq_missing(pl.col(name).shift(1)) for name in keys.columns)
    return bool(rows.select(pl.all_horizontal(same)).to_series()[1:].any())


def order_key(column: pl.Series) -> pl.Series:
    """A column that sorts as the order says: NaN after everything, arrays by their contents."""
    if column.dtype.is_nested():
        return column.map_elements(repr, pl.String, skip_nulls=True)
    return columns.row_order(column)


class Packed:
    """Some packs, of several files, whose rows are asked for key by key."""

    def __init__(self, packs: Sequence[tuple[OpenChunk, int]], schema: pa.Schema) -> None:
        numbers: dict[Key, int] = {}
        frames = []
        for chunk, pack in packs:
            mine = [part for part in chunk.slices if part.section == pack]
            codes = [numbers.setdefault(part.key, len(numbers)) for part in mine]
            who = np.repeat(np.array(codes, dtype=np.int64), [part.rows for part in mine])
            frames.append(columns.to_frame(chunk.pack(pack)).insert_column(0, pl.Series("#who", who)))
        rows = sorted_rows(frames)
        whose = rows.to_series(0).to_numpy()
        self._places = {key: np.searchsorted(whose, [n, n + 1]).tolist() for key, n in numbers.items()}
        self._table = columns.published(rows.drop("#who").to_arrow(), schema)

    @property
    def rows(self) -> int:
        """How many there are of all keys."""
        return int(self._table.num_rows)

    def table(self, key: Key, schema: pa.Schema) -> pa.Table | None:
        """The rows of one key in order, under the names of a schema; None if its types are others."""
        begin, stop = self._places[key]
        rows = self._table.slice(begin, stop - begin)
        if rows.schema.equals(schema):
            return rows
        return rows.rename_columns(schema.names) if rows.schema.types == schema.types else None


#: of each section that several queries read, the others
READERS = "readers"
#: of each section that others read in part, these
FOLLOWERS = "followers"
#: answers of at most this many rows are kept for the next who reads them
MOST_KEPT = 1 << 22


def with_readers(ref: ChunkRef, readers: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
    """What is to be known of an outbox file: also who else reads its sections."""
    mine = {name: list(readers[name]) for name in ref.operators if name in readers}
    return {**ref.metadata, READERS: mine} if mine else ref.metadata


def with_followers(
    ref: ChunkRef, followers: Mapping[str, Collection[Follower]], rows: Mapping[str, int]
) -> ChunkRef:
    """An outbox file that knows who finds rows of its own among those of others."""
    mine = {
        section: [each.to_json() for each in followers[section] if rows.get(each.query)]
        for section in ref.operators
        if section in followers
    }
    mine = {section: some for section, some in mine.items() if some}
    return replace(ref, metadata={**ref.metadata, FOLLOWERS: mine}) if mine else ref


def asking(ref: ChunkRef, section: str) -> tuple[str, ...]:
    """The queries whose answers are in a section: its own, and those that read it too."""
    following = ref.metadata.get(FOLLOWERS, {}).get(section, ())
    return (section, *ref.metadata.get(READERS, {}).get(section, ()), *(query for query, *_ in following))


def pending(outbox: Iterable[OutboxEntry], section: str) -> dict[int, list[OutboxEntry]]:
    """What is still to be delivered of a section, by commit, oldest first."""
    found: dict[int, list[OutboxEntry]] = {}
    for entry in outbox:
        if section in entry.pending:
            found.setdefault(entry.commit, []).append(entry)
    return dict(sorted(found.items()))


@dataclass(frozen=True)
class StoredRows:
    """Where rows are: a section of a file, all of it or what a follower takes."""

    section: str
    follower: Follower | None = None

    def read(self, chunk: OpenChunk) -> pa.Table:
        return self.chosen(chunk.read(self.section))

    def chosen(self, table: pa.Table) -> pa.Table:
        """The rows, of all those of the section."""
        return table if self.follower is None else self.follower.rows(table)

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for all that take the same rows."""
        return self.section, None if self.follower is None else self.follower.instants


def stored_as(ref: ChunkRef, section: str) -> StoredRows | None:
    """Where the rows of a section are: in itself, or in that of the query it reads; None: nowhere."""
    if section in ref.operators:
        return StoredRows(section)
    return next((stored for name, stored in _stored_elsewhere(ref) if name == section), None)


def _stored_elsewhere(ref: ChunkRef) -> Iterator[tuple[str, StoredRows]]:
    """Who has its rows in the section of another query, and which of them."""
    for stored, readers in ref.metadata.get(READERS, {}).items():
        yield from ((reader, StoredRows(stored)) for reader in readers)
    for stored, followers in ref.metadata.get(FOLLOWERS, {}).items():
        yield from ((each.query, StoredRows(stored, each)) for each in map(Follower.from_json, followers))


class Outgoing:
    """The outbox of a commit, without what has been delivered since."""

    def __init__(
        self, store: Store, outbox: Iterable[OutboxEntry], delivered: Mapping[str, Collection[str]]
    ) -> None:
        self.store = store
        self._open: dict[str, OpenChunk] = {}
        self._waiting: dict[str, dict[int, list[OutboxEntry]]] = {}
        #: where the answers of a section are, if that is another section
        self.stored: dict[tuple[str, str], StoredRows] = {}
        self._sections: dict[tuple[str, str], pa.Table] = {}
        self._kept: dict[Any, list[pa.Table]] = {}
        self._packed: dict[Any, Packed] = {}
        for entry in outbox:
            self.stored |= {(entry.ref.name, name): stored for name, stored in _stored_elsewhere(entry.ref)}
            gone = delivered.get(entry.ref.name, ())
            for section in entry.pending:
                if section not in gone:
                    commits = self._waiting.setdefault(section, {})
                    commits.setdefault(entry.commit, []).append(entry)

    def pending(self, section: str) -> list[tuple[int, list[OutboxEntry]]]:
        """What is still to be delivered of a section, by commit, oldest first."""
        return sorted(self._waiting.get(section, {}).items(), key=lambda each: each[0])

    def delivery(
        self, query: str, section: str, commit: int, entries: list[OutboxEntry], schema: pa.Schema
    ) -> Delivery:
        """The rows of a section that came with one commit."""
        places = [self.stored.get((entry.ref.name, section), StoredRows(section)) for entry in entries]
        pairs = list(zip(entries, places, strict=True))
        shared = any(place.section in entry.ref.metadata.get(READERS, {}) for entry, place in pairs)
        shared = shared or any(place.follower is not None for place in places)

        def tables() -> Iterator[pa.Table]:
            key = tuple((entry.ref.name, *place.key) for entry, place in pairs)
            if key in self._kept and self._kept[key][0].schema == schema:
                yield from self._kept[key]
                return
            packed = self._of_packs(pairs, schema)
            if packed is not None:
                yield packed
                return
            parts = [place.chosen(self._section(entry, place.section)) for entry, place in pairs]
            made = (columns.published(frame.to_arrow(), schema) for frame in in_order(parts))
            if shared and sum(part.num_rows for part in parts) <= MOST_KEPT:
                if sum(table.num_rows for tables in self._kept.values() for table in tables) > MOST_KEPT:
                    self._kept = {}
                self._kept[key] = list(made)
                yield from self._kept[key]
            else:
                yield from made

        return Delivery(query, commit, schema, tables)

    def _of_packs(self, pairs: list[tuple[OutboxEntry, StoredRows]], schema: pa.Schema) -> pa.Table | None:
        """The rows of a section in order; None if they are not all in packs, or these are large."""
        stored = pairs[0][1]
        found = [(entry.ref.name, self._file(entry), place.section) for entry, place in pairs]
        packs = [(name, file, file.pack_of(section)) for name, file, section in found]
        if any(pack is None for *_, pack in packs) or any(place.key != stored.key for _, place in pairs):
            return None
        key = tuple((name, pack) for name, _, pack in packs)
        if key not in self._packed:
            some = [(file, pack) for _, file, pack in packs if pack is not None]
            if sum(file.sections[pack].facts.rows for file, pack in some) > MOST_KEPT:
                return None
            if sum(each.rows for each in self._packed.values()) > MOST_KEPT:
                self._packed = {}
            self._packed[key] = Packed(some, schema)
        rows = self._packed[key].table((stored.section,), schema)
        return None if rows is None else stored.chosen(rows)

    def _section(self, entry: OutboxEntry, section: str) -> pa.Table:
        """A section of a file; one that others read in part is kept for them."""
        key = entry.ref.name, section
        if section not in entry.ref.metadata.get(FOLLOWERS, {}):
            return self._file(entry).read(section)
        if key not in self._sections:
            if sum(table.num_rows for table in self._sections.values()) > MOST_KEPT:
                self._sections = {}
            self._sections[key] = self._file(entry).read(section)
        return self._sections[key]

    def _file(self, entry: OutboxEntry) -> OpenChunk:
        if entry.ref.name not in self._open:
            self._open[entry.ref.name] = open_chunk(self.store, entry.ref)
        return self._open[entry.ref.name]
