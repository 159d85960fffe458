"""Where tasks write, and for which commit."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.state.chunk import chunk_writer
from windrow.state.names import CHUNKS, DRIVER, new_chunk_name

if TYPE_CHECKING:
    from windrow.state.chunk import ChunkWriter
    from windrow.state.refs import ChunkRef
    from windrow.state.store import Store


@dataclass(frozen=True)
class Place:
    """A state directory, the commit that will name the files, and who will make it."""

    store: Store
    commit: int
    owner: int
    shards: int

    def new_name(self, shard: int = DRIVER, folder: str = CHUNKS) -> str:
        """A name for a file that only this task writes."""
        return new_chunk_name(self.commit, self.owner, shard, folder)


class Spool:
    """A file that is made when the first table comes; if none does, there is no file."""

    def __init__(self, place: Place, shard: int = DRIVER, folder: str = CHUNKS, **metadata: Any) -> None:
        self._place, self._name = place, place.new_name(shard, folder)
        self._metadata = {"commit": place.commit, **metadata}
        self._stack = ExitStack()
        self._writer: ChunkWriter | None = None

    @property
    def writer(self) -> ChunkWriter:
        """The file, begun if it was not."""
        if self._writer is None:
            file = chunk_writer(self._place.store, self._name, self._metadata)
            self._writer = self._stack.enter_context(file)
        return self._writer

    @property
    def ref(self) -> ChunkRef | None:
        """The finished file, if there is one."""
        return self._writer.ref if self._writer is not None else None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)
