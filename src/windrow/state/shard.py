"""The state of one shard: what its operators keep, spread over chunk files, and an index that finds it.

Every change of a shard writes one file: the chunks that are new, and the index of all that are live, which
may lie in earlier files. Chunks that an operator passes on unread are not opened, let alone written again. A
file no live chunk lies in is named no more.

Files are merged, so that there are few, only with neighbours in age, so that rows that will expire together
stay together. Of all neighbours the smallest pairs go first: a file is rewritten about as often as the state
has doubled since, not once per epoch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import add
from typing import Any, TypeAlias

import pyarrow as pa

from windrow.kernels.state import Chunk, State
from windrow.state.chunk import ChunkWriter, OpenChunk as ChunkFile, chunk_writer, open_chunk
from windrow.state.crash import crash_point
from windrow.state.manifest import ChunkRef
from windrow.state.store import Store

Group: TypeAlias = tuple[ChunkRef, ...]
#: more files than these are merged (5000 files cost seconds to open)
MOST_FILES = 64


def plan_compaction(chunks: Sequence[ChunkRef], most_files: int = MOST_FILES) -> list[Group]:
    """Groups of neighbours to merge, if there are more than `most_files`; three quarters of that remain.

    >>> files = [ChunkRef(f"chunks/{size}", size, "", 1) for size in (90, 80, 5, 6, 7)]
    >>> [[ref.bytes for ref in group] for group in plan_compaction(files, most_files=4)]
    [[5, 6, 7]]
    >>> plan_compaction(files, most_files=5)
    []
    """
    if most_files < 1:
        raise ValueError("there is always at least one file")
    if len(chunks) <= most_files:
        return []
    groups: list[Group] = [(ref,) for ref in chunks]
    sizes = [ref.live_bytes for ref in chunks]  # what of a file would be written again
    while len(groups) > max(1, most_files * 3 // 4):
        pairs = list(map(add, sizes, sizes[1:]))
        at = pairs.index(min(pairs))
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
        sizes[at : at + 2] = [pairs[at]]
    return [group for group in groups if len(group) > 1]


INDEX = "index"


@dataclass(frozen=True)
class ChunkLocation:
    """Where a chunk is: the number of a section of a file, and the panes it is about."""

    file: str
    section: int
    first: int
    last: int


class StoredChunk(Chunk):
    """A chunk that lies in a file and is read when it is asked for."""

    def __init__(self, place: ChunkLocation, shard: Shard) -> None:
        for name, value in (("first", place.first), ("last", place.last), ("place", place), ("shard", shard)):
            object.__setattr__(self, name, value)

    place: ChunkLocation
    shard: Shard

    @property
    def table(self) -> pa.Table:
        return self.shard.read(self.place)


class Shard:
    """A shard as of a commit: `files` are those the manifest names for it, the last one has the index."""

    def __init__(self, store: Store, files: Sequence[ChunkRef]) -> None:
        self.store = store
        self.files = {ref.name: ref for ref in files}
        self._open: dict[str, ChunkFile] = {}
        self._index: dict[str, Any] = {}
        if files:
            head = self._file(files[-1].name)
            self._index = json.loads(head.read(INDEX)["json"][0].as_py())

    @property
    def operators(self) -> tuple[str, ...]:
        return tuple(self._index)

    def state(self, operator: str) -> State:
        stored = self._index.get(operator, {"chunks": {}, "meta": {}})
        chunks = {
            name: tuple(StoredChunk(ChunkLocation(*place), self) for place in places)
            for name, places in stored["chunks"].items()
        }
        return State(chunks, stored["meta"])

    def read(self, place: ChunkLocation) -> pa.Table:
        """The table of a chunk; its checksum is compared."""
        file = self._file(place.file)
        return file.table(file.sections[place.section])

    def _file(self, name: str) -> ChunkFile:
        if name not in self._open:
            self._open[name] = open_chunk(self.store, self.files[name])
        return self._open[name]


class ShardChange:
    """The next state of a shard, being written."""

    def __init__(self, before: Shard, writer: ChunkWriter, name: str) -> None:
        self._before, self._writer, self._name = before, writer, name
        self._sections = 0
        self._new: dict[str, State | None] = {}

    def put(self, operator: str, state: State) -> None:
        self._new[operator] = state

    def drop(self, operator: str) -> None:
        self._new[operator] = None

    def finish(self) -> set[str]:
        """Write what is new, and the index; the names of the earlier files that are still needed."""
        states = {name: self._before.state(name) for name in self._before.operators if name not in self._new}
        states |= {name: state for name, state in self._new.items() if state is not None}
        stored = [chunk for state in states.values() for found in state.chunks.values() for chunk in found]
        live = {chunk.place.file for chunk in stored if isinstance(chunk, StoredChunk)}
        groups = plan_compaction(
            [ref for name, ref in self._before.files.items() if name in live], MOST_FILES
        )
        merged = {ref.name for group in groups for ref in group}
        index: dict[str, Any] = {}
        needed: set[str] = set()
        for operator, state in sorted(states.items()):
            chunks = {
                name: [self._placed(operator, name, chunk, merged) for chunk in found]
                for name, found in state.chunks.items()
            }
            index[operator] = {"chunks": chunks, "meta": dict(state.meta)}
            needed |= {place[0] for places in chunks.values() for place in places}
        self._writer.add(INDEX, pa.table({"json": [json.dumps(index, separators=(",", ":"))]}))
        if merged:
            crash_point("compaction-written")
        return needed - {self._name}

    def _placed(self, operator: str, name: str, chunk: Chunk, merged: set[str]) -> list[Any]:
        if isinstance(chunk, StoredChunk) and chunk.place.file not in merged:
            place = chunk.place
            return [place.file, place.section, place.first, place.last]
        key = (operator, name, self._sections)
        self._writer.add(key, chunk.table.combine_chunks(), chunk.first, chunk.last)
        self._sections += 1
        return [self._name, self._sections - 1, chunk.first, chunk.last]


@contextmanager
def change_shard(before: Shard, name: str, files: list[ChunkRef]) -> Iterator[ShardChange]:
    """The next state of a shard in a new file; at the end `files` are those to be named for it, in order."""
    with chunk_writer(before.store, name) as writer:
        change = ShardChange(before, writer, name)
        yield change
        needed = change.finish()
    files[:] = [*(ref for ref in before.files.values() if ref.name in needed), writer.ref]
