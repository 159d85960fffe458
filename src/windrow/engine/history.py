"""What grows from commit to commit, as files: one for each commit, added up when there are many.

The changes of a table come first here, then the keys of what sources have read.

A row to come is never older than what its stream has promised. So of the changes before all promises only
their sum matters, and it may as well have been there from the beginning. Keys that rows of an NRR table had
once are kept apart: they are not to be used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.algebra.expressions import Field, Schema
from windrow.engine.tables import BEGINNING
from windrow.execution.delta_file import TABLE, Spool, WriteTarget
from windrow.kernels.columnar.columns import frame_of, rows_of, to_frame
from windrow.kernels.relational.signed_rows import N, columns_of, consolidated, finite, together
from windrow.kernels.relational.tables import AT, TableContents
from windrow.state.chunk import open_chunk

if TYPE_CHECKING:
    from windrow.algebra.catalog import Table
    from windrow.state.manifest import ChunkRef
    from windrow.state.store import Store
    from windrow.windows.domain import Instant

#: so many files of changes are kept apart
MOST_PARTS = 16
#: and so many rows, or as many as were added up the last time
MANY_ROWS = 1 << 16
RETIRED = "retired"


def write_changes(place: WriteTarget, table: Table, changes: pl.DataFrame) -> ChunkRef:
    """A file with the changes of one commit."""
    with Spool(place, table=table.name) as spool:
        spool.writer.add((TABLE, table.name), changes.to_arrow())
    assert spool.ref is not None
    return spool.ref


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
    with Spool(place, history=table.name) as spool:
        spool.writer.add((TABLE, table.name), both.to_arrow())
        if contents.retired:
            keys = frame_of(_keys(table), sorted(contents.retired, key=repr))
            spool.writer.add((RETIRED, table.name), keys.to_arrow())
    assert spool.ref is not None
    return spool.ref


def _keys(table: Table) -> Schema:
    return Schema(tuple(Field(name, table.schema.column(name).type) for name in table.key))


# ------------------------------------------------------------ keys

#: the section of a file that holds the keys of a stream's source
KEYS_OF = "keys"


def write_keys(place: WriteTarget, stream: str, keys: pa.Table) -> ChunkRef:
    """A file with the keys of what a commit has read of a source."""
    with Spool(place, stream=stream) as spool:
        spool.writer.add((KEYS_OF, stream), keys)
    assert spool.ref is not None
    return spool.ref


def read_keys(store: Store, stream: str, files: Iterable[ChunkRef]) -> pa.Table | None:
    """All keys of a stream's source that are in some files; None if there are none."""
    mine = [ref for ref in files if ref.metadata["stream"] == stream]
    parts = [open_chunk(store, ref).read((KEYS_OF, stream)) for ref in mine]
    return pa.concat_tables(parts) if parts else None


def add_keys(place: WriteTarget, stream: str, keys: pa.Table, files: Sequence[ChunkRef]) -> list[ChunkRef]:
    """The files with some more keys in them; many small ones become one."""
    mine = [ref for ref in files if ref.metadata["stream"] == stream]
    if not is_long(mine):
        return [*files, write_keys(place, stream, keys)]
    before = read_keys(place.store, stream, mine)
    assert before is not None
    others = [ref for ref in files if ref.metadata["stream"] != stream]
    return [*others, write_keys(place, stream, pa.concat_tables([before, keys]))]
