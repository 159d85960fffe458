"""Delta files: what one task of the ingest job has made of its rows, for all queries and all shards.

    ("query", name, table, shard)    states of panes, as one query keeps them
    ("feed", digest, shard)          states of the finest panes, for all queries of one grouping
    ("table", name)                  changes of a table, for all queries and shards; the driver writes them

Nothing in them is about the past: state is not read when rows come in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.algebra.types import DataType
from windrow.execution.reports import Fault, fault_of
from windrow.kernels import intake, state
from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.columnar import columns, hashing
from windrow.kernels.panes.pane_tables import merge_panes, merge_tables
from windrow.kernels.panes.program import Level, PaneProgram
from windrow.physical.native_sql import native_query
from windrow.state import chunk, manifest, names
from windrow.state.store import Store


@dataclass(frozen=True)
class WriteTarget:
    """A state directory, the commit that will name the files, and who will make it."""

    store: Store
    commit: int
    owner: int
    shards: int

    def new_name(self, shard: int = names.DRIVER, folder: str = names.CHUNKS) -> str:
        """A name for a file that only this task writes."""
        return names.new_chunk_name(self.commit, self.owner, shard, folder)


class Spool:
    """A file that is made when the first table comes; if none does, there is no file."""

    def __init__(
        self, place: WriteTarget, shard: int = names.DRIVER, folder: str = names.CHUNKS, **metadata: Any
    ) -> None:
        self._place, self._name = place, place.new_name(shard, folder)
        self._metadata = {"commit": place.commit, **metadata}
        self._stack = ExitStack()
        self._writer: chunk.ChunkWriter | None = None

    @property
    def writer(self) -> chunk.ChunkWriter:
        """The file, begun if it was not."""
        if self._writer is None:
            file = chunk.chunk_writer(self._place.store, self._name, self._metadata)
            self._writer = self._stack.enter_context(file)
        return self._writer

    @property
    def ref(self) -> manifest.ChunkRef | None:
        """The finished file, if there is one."""
        return self._writer.ref if self._writer is not None else None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


QUERY, FEED, TABLE = "query", "feed", "table"
#: rows or states waiting in memory are merged when there are this many
_MANY_ROWS = 1 << 20


def key_types(level: Level) -> dict[str, DataType]:
    """The key columns of a level's pane tables."""
    names = level.answers.measures.keys
    return {name: key.type for name, (_, key) in zip(names, level.query.aggregate.keys, strict=True)}


class Gathering(ABC):
    """What a batch brings to queries, or to a shared state, growing with each piece of it: tables of rows or
    states that are filed under `name`. After an error nothing is computed any more."""

    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name, self.names = name, tuple(names)
        #: the last window in which a new row is first seen
        self.latest: int | None = None
        self.fault: Fault | None = None
        self._waiting: dict[str, list[pl.DataFrame]] = {}

    def take(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows."""
        if self.fault is not None or not accepted.height:
            return
        try:
            for table, frame in self._tables(accepted).items():
                waiting = self._waiting.setdefault(table, [])
                waiting.append(frame)
                if len(waiting) > 1 and sum(each.height for each in waiting) > _MANY_ROWS:
                    self._waiting[table] = [self._merged(table, waiting)]
        except Exception as error:  # noqa: BLE001  whatever is wrong with one query must not stop the others
            self.fault = fault_of(error, self.names[0])

    def put(self, spool: Spool, shards: int) -> None:
        """Write what was gathered, each shard's rows by themselves."""
        for table, waiting in self._waiting.items() if self.fault is None else ():
            for shard, rows in hashing.split(self._merged(table, waiting), self._routes(table), shards):
                spool.writer.add((QUERY, self.name, table, shard), rows.to_arrow(), *self._bounds(rows))

    @abstractmethod
    def _tables(self, accepted: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        """What the rows are, for each table."""

    @abstractmethod
    def _merged(self, table: str, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Frames of a table as one."""

    @abstractmethod
    def _routes(self, table: str) -> Mapping[str, DataType]:
        """The columns by which the rows of a table go to shards, with their types."""

    def _bounds(self, rows: pl.DataFrame) -> tuple[int, ...]:
        """The least and the greatest pane of rows, where a reader is to know them."""
        return ()


class PaneGathering(Gathering):
    """The pane states of one query."""

    def __init__(self, query: str, program: PaneProgram, known: intake.Known) -> None:
        super().__init__(query, [query])
        self.level, self.source = program.bottom, program.column(known)
        self.clock = program.clock(known, known)

    def _tables(self, accepted: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        rows = self.level.scanned(accepted, self.source)
        latest = self.level.latest(rows, self.clock)
        self.latest = max((w for w in (latest, self.latest) if w is not None), default=None)
        return self.level.tables(rows)

    def _merged(self, table: str, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return merge_panes(frames, self.level.answers.measures.layouts[table])

    def _routes(self, table: str) -> Mapping[str, DataType]:
        return key_types(self.level)

    def _bounds(self, rows: pl.DataFrame) -> tuple[int, ...]:
        return rows[state.PANE].min(), rows[state.PANE].max()  # type: ignore[return-value]


def sections(files: Iterable[chunk.OpenChunk], key: chunk.Key) -> list[pl.DataFrame]:
    """What is under a key in delta files."""
    return [columns.to_frame(file.read(key)) for file in files if key in file.keys]


def tables_of(
    files: Sequence[chunk.OpenChunk], query: str, program: PaneProgram, shard: int
) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a query in a shard: one table of panes for each of its tables."""
    layouts = program.bottom.answers.measures.layouts
    found = {name: sections(files, (QUERY, query, name, shard)) for name in layouts}
    native, groups = native_query(program), layouts[GROUPS]
    if native is not None:
        # other queries cut finer: several panes of the feed are one of this query
        panes = [native.panes(feed) for feed in sections(files, (FEED, native.feed, shard))]
        found[GROUPS] += [groups.merge(each, [state.PANE, *groups.keys]) for each in panes]
    return merge_tables(found, layouts)


def open_files(store: Store, refs: Iterable[manifest.ChunkRef]) -> list[chunk.OpenChunk]:
    """Delta files, opened."""
    return [chunk.open_chunk(store, ref) for ref in refs]
