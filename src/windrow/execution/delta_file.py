"""Delta files: what one task of the ingest job has made of its rows, for all queries and all shards.

    ("query", name, table, shard)    states of panes, as one query keeps them
    ("feed", digest, shard)          states of the finest panes, for all queries of one grouping
    ("table", name)                  changes of a table, for all queries and shards; the driver writes them

Nothing in them is about the past: state is not read when rows come in.

Where tasks write, and for which commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import polars as pl

from windrow.algebra.types import DataType
from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import split
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.panes.program import Level, PaneProgram
from windrow.kernels.state import PANE
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


def key_types(level: Level) -> dict[str, DataType]:
    """The key columns of a level's pane tables."""
    names = level.answers.measures.keys
    return {name: key.type for name, (_, key) in zip(names, level.query.aggregate.keys, strict=True)}


def put_tables(
    writer: chunk.ChunkWriter, query: str, level: Level, tables: Mapping[str, pl.DataFrame], count: int
) -> None:
    """Write the pane tables of a query, each shard's rows by themselves."""
    kinds = key_types(level)
    for name, frame in tables.items():
        for shard, rows in split(frame, kinds, count):
            lowest, highest = rows[PANE].min(), rows[PANE].max()
            writer.add((QUERY, query, name, shard), rows.to_arrow(), lowest, highest)  # type: ignore[arg-type]


def tables_of(
    files: Iterable[chunk.OpenChunk], query: str, program: PaneProgram, shard: int
) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a query in a shard: one table of panes for each of its tables."""
    layouts = program.bottom.answers.measures.layouts
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in layouts}
    shared = native_query(program)
    for file in files:
        keys = set(file.keys)
        for name, tables in found.items():
            if (QUERY, query, name, shard) in keys:
                tables.append(to_frame(file.read((QUERY, query, name, shard))))
        if shared is not None and (FEED, shared.feed, shard) in keys:
            panes = shared.panes(to_frame(file.read((FEED, shared.feed, shard))))
            # other queries cut finer: several panes of the feed are one of this query
            found[GROUPS].append(layouts[GROUPS].merge(panes, [PANE, *layouts[GROUPS].keys]))
    merged = {name: merge_panes(tables, layouts[name]) for name, tables in found.items()}
    return {name: frame for name, frame in merged.items() if frame.height}


def open_files(store: Store, refs: Iterable[manifest.ChunkRef]) -> list[chunk.OpenChunk]:
    """Delta files, opened."""
    return [chunk.open_chunk(store, ref) for ref in refs]
