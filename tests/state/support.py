"""What the tests of state share: small tables, chunks for the next commit, and what a manifest holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.state.chunk import chunk_writer
from windrow.state.names import new_chunk_name
from windrow.state.reading import open_chunk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.state.log import CommitLog
    from windrow.state.manifest import Manifest
    from windrow.state.refs import ChunkRef
    from windrow.state.store import Store


def numbers(values: Iterable[int]) -> pa.Table:
    """A table of one column."""
    return pa.table({"n": pa.array(values, pa.int64())})


def write_next(log: CommitLog, values: Iterable[int], shard: int = 0, folder: str = "chunks") -> ChunkRef:
    """A chunk of these values, made for the next commit."""
    values = list(values)
    name = new_chunk_name(log.last.number + 1, log.owner.epoch, shard, folder)
    with chunk_writer(log.store, name) as writer:
        writer.add(("sum", 0), numbers(values), min(values), max(values))
    return writer.ref


def commit_values(log: CommitLog, values: Iterable[int], shard: int = 0) -> Manifest:
    """One more commit, with one more chunk."""
    ref = write_next(log, values, shard)
    return log.commit(log.last.successor(chunks=log.last.with_chunks(shard, added=[ref])))


def values_of(store: Store, manifest: Manifest) -> list[int]:
    """All values a manifest names, in order, every checksum compared."""
    found = []
    for refs in manifest.chunks.values():
        for ref in refs:
            found += open_chunk(store, ref).read(("sum", 0))["n"].to_pylist()
    return sorted(found)
