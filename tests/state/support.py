"""What the tests of state share: small tables, chunks for the next commit, and what a manifest holds."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.state.chunk import chunk_writer, open_chunk
from windrow.state.crash import crash_point
from windrow.state.history import History
from windrow.state.manifest import Facts
from windrow.state.names import new_chunk_name
from windrow.state.object_store import ObjectStore
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from windrow.state.chunk import Key, OpenChunk, Section
    from windrow.state.log import CommitLog
    from windrow.state.manifest import ChunkRef, Manifest
    from windrow.state.store import Store


def place_of(store: Store) -> str:
    """Where a store is, for another process."""
    return store.url if isinstance(store, ObjectStore) else str(store)


def store_at(place: str) -> Store:
    """The store of another process."""
    return ObjectStore(place) if "://" in place else LocalStore(Path(place))


def overwrite(store: Store, name: str, data: bytes | None) -> None:
    """Change a file behind the back of everybody, or remove it."""
    if isinstance(store, LocalStore):
        path = Path(store.place(name))
        path.unlink() if data is None else path.write_bytes(data)
        return
    assert isinstance(store, ObjectStore)
    store.cache.drop([name])
    if data is None:
        store._client.delete(name)
    else:
        store._client.put(name, data)


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
    return log.commit(log.last.successor(chunks=with_chunk(log.last, ref, shard)))


def values_of(store: Store, manifest: Manifest) -> list[int]:
    """All values a manifest names, in order, every checksum compared."""
    found = []
    for refs in manifest.chunks.values():
        for ref in refs:
            found += open_chunk(store, ref).read(("sum", 0))["n"].to_pylist()
    return sorted(found)


def manifests(store: Store) -> list[Manifest]:
    """All manifests that are kept, oldest first."""
    history = History(store)
    return [history.read(number) for number in history.numbers()]


def verify(chunk: OpenChunk) -> None:
    """Compare the checksum of every section."""
    for section in chunk.sections:
        chunk.table(section)


def write_chunk(store: Store, name: str, sections: Iterable[tuple[Key | str, pa.Table]]) -> ChunkRef:
    """Write tables that need no facts, all at once."""
    with chunk_writer(store, name) as writer:
        for key, table in sections:
            writer.add(key, table)
    return writer.ref


def with_chunk(manifest: Manifest, added: ChunkRef, shard: int = 0) -> dict[int, tuple[ChunkRef, ...]]:
    """The chunks of a manifest and a new one, the youngest, for `successor(chunks=…)`."""
    return {**manifest.chunks, shard: (*manifest.chunks.get(shard, ()), added)}


def merge_chunks(
    store: Store, group: Sequence[ChunkRef], name: str, keep: Callable[[Section], bool] | None = None
) -> ChunkRef:
    """One chunk with what is live in a group: per key one section, its rows in the order of the group.

    Left out are the parts of operators that the refs no longer name, and the sections that `keep` refuses. Of
    chunks with packs there is nothing to merge: these are made to be read once.
    """
    pieces: dict[Key, list[tuple[OpenChunk, Section]]] = {}
    for ref in group:
        chunk = open_chunk(store, ref)
        for section in chunk.sections:
            if str(section.key[0]) in ref.operators and (keep is None or keep(section)):
                pieces.setdefault(section.key, []).append((chunk, section))
    with chunk_writer(store, name, {"merged": [ref.name for ref in group]}) as writer:
        for key, found in pieces.items():
            table = pa.concat_tables([chunk.table(section) for chunk, section in found])
            facts = reduce(Facts.merged, (section.facts for _, section in found))
            writer.add(key, table.combine_chunks(), facts.lowest, facts.highest)
    crash_point("compaction-written")
    return writer.ref
