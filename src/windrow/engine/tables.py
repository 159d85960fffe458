"""Tables: what a manifest remembers of one, when one changes, and how one is kept as its source says.

A table is the sum of its changes, in a file for each commit: queries that run take it in once, and one that
comes later begins with all of them. When there are many, they are added up in one file: a row to come is
never older than what its stream has promised, so changes before all promises may as well have been there from
the beginning. Keys that rows of an NRR table had once are kept apart: they are not to be used again. The keys
of what sources have read are a history of the same kind.

A change is seen by rows later than it. If nobody says its instant, it is the latest of the rows seen so far
in the streams that some query reads together with the table: those are answered by the table as it was, rows
that come after them by the table as it is then. Where nothing was answered yet, it was there from the
beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from windrow.algebra import Field, Schema, Table, TableKind
from windrow.engine.records import schema_of
from windrow.errors import DataError, StateError
from windrow.execution.delta_file import TABLE, Spool, WriteTarget
from windrow.kernels.columnar.columns import frame_of, rows_of, to_frame
from windrow.kernels.relational.signed_rows import FOREVER, N, columns_of, consolidated, finite, together
from windrow.kernels.relational.tables import AT, TableContents, Values
from windrow.spark.sources.table_source import Content, TableSource
from windrow.state.chunk import Key, open_chunk
from windrow.state.manifest import ChunkRef, SourceState, StreamState
from windrow.state.store import Store
from windrow.windows.domain import INFINITY, Instant, read_instant, write_instant

#: when a table changes that nobody has seen yet: before everything
BEGINNING = -FOREVER + 1


@dataclass(frozen=True)
class TableUpdate:
    """A change of a table: rows that come and rows that leave, or all rows that it is to have then.

    Without an instant the engine says when: as soon as no row that was seen can tell.
    """

    table: str
    insert: Sequence[Values] = ()
    delete: Sequence[Values] = ()
    at: int | None = None
    #: every row the table is to have; the difference is the change
    content: Sequence[Values] | None = None
    #: where the content was read
    read: SourceState | None = None


@dataclass(frozen=True)
class TableRecord:
    """A table as it runs."""

    table: Table
    #: its rows as of the last commit, fetched when they are first asked for
    contents: Callable[[], TableContents] = field(compare=False, repr=False)
    #: no more changes below this; of a table that nobody has punctuated there may be some at any time
    progress: Instant = INFINITY
    #: when it changed last
    last: int | None = None
    #: how many rows it has
    rows: int = 0
    #: the files that hold its changes, in order
    history: tuple[str, ...] = ()
    #: what its instants are, as the first query that read it has them
    domain: str | None = None
    read: SourceState = field(default_factory=SourceState)

    @property
    def changed(self) -> Instant:
        """When it changed last, as an instant to compare with."""
        return -INFINITY if self.last is None else self.last

    def to_state(self) -> StreamState:
        return StreamState(
            progress={"promised": write_instant(self.progress)},
            accepted=self.rows,
            source=self.read,
            options={
                "declaration": table_declaration(self.table),
                "last": self.last,
                "history": list(self.history),
                "domain": self.domain,
            },
        )

    @classmethod
    def from_state(
        cls, table: Table, contents: Callable[[], TableContents], state: StreamState | None, place: str
    ) -> TableRecord:
        """As a manifest remembers it, if it does; the declaration must be the same."""
        if state is None:
            return cls(table, contents)
        stored, now = state.options["declaration"], table_declaration(table)
        if stored != now:
            what = next(key for key in {**now, **stored} if now.get(key) != stored.get(key))
            raise StateError(
                f"table `{table.name}` was declared otherwise when {place} was written: its {what} changed",
                code="table-changed",
                hint=f"declare it as before, DROP TABLE {table.name} first, or give it another name",
            )
        return cls(
            table,
            contents,
            read_instant(state.progress["promised"]),
            state.options["last"],
            state.accepted,
            tuple(state.options["history"]),
            state.options["domain"],
            state.source,
        )


def table_declaration(table: Table) -> dict[str, Any]:
    """What of a table's declaration state depends on."""
    return {
        "columns": [[field.name, str(field.type)] for field in table.schema],
        "kind": table.kind.value,
        "key": list(table.key),
        **({"forms": [list(form) for form in table.forms]} if table.forms else {}),
    }


def table_of(name: str, state: StreamState) -> Table:
    """A table as far as state depends on it, by what `table_declaration` wrote."""
    stored = state.options["declaration"]
    forms = tuple((column, form) for column, form in stored.get("forms", ()))
    schema, kind = schema_of(stored["columns"]), TableKind(stored["kind"])
    return Table(name, schema, kind, tuple(stored["key"]), forms=forms)


def instant_of(record: TableRecord, clocks: Iterable[tuple[Instant, Instant]]) -> int:
    """The instant of a change. `clocks` are of the queries that read the table: how far answers are given,
    and the greatest windowing attribute of the rows they have seen."""
    living = [(clock, seen) for clock, seen in clocks if clock != INFINITY]
    known = [record.changed, *([record.progress] if record.progress != INFINITY else [])]
    latest = max([*known, *(moment for pair in living for moment in pair)])
    return BEGINNING if latest == -INFINITY else int(latest)


def check_clock(table: str, at: int, clock: Instant) -> None:
    """Refuse a change in what is already answered."""
    if at < clock:
        raise DataError(
            f"table `{table}` cannot change at {at}: answers up to {clock} are given",
            code="late-update",
            hint="update tables before their streams move on, or hold the clock with punctuate()",
        )


#: seconds between two looks
PERIOD = 1.0


class TableKeeper(Protocol):
    """What has tables, and changes them; nobody else does while its lock is held."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    @property
    def tables(self) -> Mapping[str, TableRecord]: ...
    def change(self, updates: Sequence[TableUpdate]) -> None: ...


class Refreshing:
    """The tables of an engine and where they come from; more may be declared while it runs.

    Whoever runs the engine asks those that are due, and takes over what they answer.
    """

    def __init__(self, engine: TableKeeper, sources: Mapping[str, TableSource]) -> None:
        self._engine, self._sources = engine, sources
        self._looked = -float("inf")

    def begin(self) -> None:
        """A run begins: what is there is looked at, however short ago that was done."""
        self._looked = -float("inf")

    def is_due(self) -> bool:
        """Whether it is time to ask again."""
        return time.monotonic() - self._looked >= PERIOD

    def looked(self) -> None:
        """All were asked."""
        self._looked = time.monotonic()

    @property
    def names(self) -> list[str]:
        """The tables that have a source."""
        return [name for name in self._sources if name in self._engine.tables]

    def is_slow(self, name: str) -> bool:
        """Whether its source may take time to answer."""
        return name in self._sources and self._sources[name].is_slow

    def is_unread(self, name: str) -> bool:
        """Whether nobody knows yet what the table holds."""
        return name in self._engine.tables and self._engine.tables[name].read == SourceState()

    def news(self, name: str) -> Content | None:
        """What is new in one table, if anything is."""
        source, record = self._sources.get(name), self._engine.tables.get(name)
        return None if source is None or record is None else source.news(record.read)

    def take_over(self, name: str, news: Content | None) -> None:
        """Make that the content of the table. On return a commit holds it."""
        with self._engine.lock:
            if news is not None and name in self._engine.tables:  # it may have been dropped meanwhile
                self._engine.change([TableUpdate(name, content=news.rows, read=news.read)])

    def look_at(self, name: str) -> None:
        self.take_over(name, self.news(name))


#: so many files of changes are kept apart
MOST_PARTS = 16
#: and so many rows, or as many as were added up the last time
MANY_ROWS = 1 << 16
RETIRED = "retired"


def _file(place: WriteTarget, sections: Mapping[Key, pa.Table], **metadata: Any) -> ChunkRef:
    with Spool(place, **metadata) as spool:
        for key, rows in sections.items():
            spool.writer.add(key, rows)
    assert spool.ref is not None
    return spool.ref


def write_changes(place: WriteTarget, table: Table, changes: pl.DataFrame) -> ChunkRef:
    """A file with the changes of one commit."""
    return _file(place, {(TABLE, table.name): changes.to_arrow()}, table=table.name)


def read_changes(store: Store, table: Table, files: Iterable[ChunkRef]) -> pl.DataFrame:
    """All changes of some files, in order."""
    columns = columns_of(table.schema, {AT: pl.Int64(), N: pl.Int64()})
    frames = [to_frame(open_chunk(store, ref).read((TABLE, table.name))) for ref in files]
    return together(frames, columns)


def read_contents(store: Store, table: Table, files: Sequence[ChunkRef]) -> TableContents:
    """What the changes add up to."""
    contents = TableContents(table)
    changes = read_changes(store, table, files)
    for row, count in zip(rows_of(changes, table.schema), changes[N].to_list(), strict=True):
        contents.apply([row] * -count, [row] * count)
    for ref in files:
        chunk = open_chunk(store, ref)
        if (RETIRED, table.name) in chunk.keys:
            contents.retired |= set(rows_of(to_frame(chunk.read((RETIRED, table.name))), _keys(table)))
    return contents


def parts_of(history: Iterable[str], files: Iterable[ChunkRef]) -> list[ChunkRef]:
    """The files of a history, in order."""
    known = {ref.name: ref for ref in files}
    return [known[name] for name in history]


def is_long(parts: Sequence[ChunkRef]) -> bool:
    """Whether a history should be added up: it has many files, or most of it came after the last time."""
    later = sum(ref.rows for ref in parts[1:])
    return len(parts) > MOST_PARTS or later > max(sum(ref.rows for ref in parts[:1]), MANY_ROWS)


def add_up(
    place: WriteTarget, table: Table, contents: TableContents, parts: Sequence[ChunkRef], floor: Instant
) -> ChunkRef:
    """One file that stands for some: changes before `floor` are one, from the beginning on.

    `contents` is what they add up to.
    """
    changes = read_changes(place.store, table, parts)
    old = pl.col(AT) < max(finite(floor), BEGINNING + 1)
    summed = consolidated(changes.filter(old).with_columns(pl.lit(BEGINNING, pl.Int64).alias(AT)))
    both = together([summed, changes.filter(~old)], changes.schema)
    sections: dict[Key, pa.Table] = {(TABLE, table.name): both.to_arrow()}
    if contents.retired:
        keys = frame_of(_keys(table), sorted(contents.retired, key=repr))
        sections[RETIRED, table.name] = keys.to_arrow()
    return _file(place, sections, history=table.name)


def _keys(table: Table) -> Schema:
    return Schema(tuple(Field(name, table.schema.column(name).type) for name in table.key))


#: the section of a file that holds the keys of a stream's source
KEYS_OF = "keys"


def read_keys(store: Store, stream: str, files: Iterable[ChunkRef]) -> pa.Table | None:
    """All keys of a stream's source that are in some files; None if there are none."""
    mine = [ref for ref in files if ref.metadata["stream"] == stream]
    parts = [open_chunk(store, ref).read((KEYS_OF, stream)) for ref in mine]
    return pa.concat_tables(parts) if parts else None


def add_keys(place: WriteTarget, stream: str, keys: pa.Table, files: Sequence[ChunkRef]) -> list[ChunkRef]:
    """The files with some more keys in them; many small ones become one."""
    mine, others = [ref for ref in files if ref.metadata["stream"] == stream], [*files]
    if is_long(mine):
        keys = pa.concat_tables([read_keys(place.store, stream, mine), keys])
        others = [ref for ref in files if ref not in mine]
    return [*others, _file(place, {(KEYS_OF, stream): keys}, stream=stream)]
