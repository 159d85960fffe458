"""Reading a chunk: map the file, trust the directory, then one section at a time.

Nothing is believed before its checksum is: a file that is cut off, changed, or not a chunk at all is reported
by its name. Tables share the mapped memory, and stay valid when the file is removed.
"""

from __future__ import annotations

import json
import zlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.errors import StateError
from windrow.state.chunk import FORMAT, HEAD, MAGIC, MARK, PACK, TRAILER, Section, TableSlice, root_checksum
from windrow.state.manifest import ChunkRef
from windrow.state.store import RESTORE, Contents, Store, damaged, too_new

if TYPE_CHECKING:
    from windrow.state.chunk import Key


class OpenChunk:
    """An open chunk. Made by `open_chunk`."""

    def __init__(
        self,
        place: str,
        data: Contents,
        sections: tuple[Section, ...],
        slices: tuple[TableSlice, ...],
        metadata: Any,
    ) -> None:
        self._place, self._data = place, data
        self.sections, self.slices = sections, slices
        self.metadata: dict[str, Any] = metadata
        self._packs: dict[int, pa.Table] = {}

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys there are, in the order they were written, each once."""
        return tuple(self._by_key)

    @cached_property
    def _by_key(self) -> dict[Key, list[Section | TableSlice]]:
        found: dict[Key, list[Section | TableSlice]] = {}
        for section in self.sections:
            if section.key[0] != PACK:
                found.setdefault(section.key, []).append(section)
        for part in self.slices:
            found.setdefault(part.key, []).append(part)
        return found

    def pack_of(self, key: Key | str) -> int | None:
        """The one pack that all rows of a key are in; None if there is none such."""
        pieces = self._by_key[(key,) if isinstance(key, str) else key]
        only = pieces[0] if len(pieces) == 1 else None
        return only.section if isinstance(only, TableSlice) else None

    def pack(self, number: int) -> pa.Table:
        """All rows of a pack. It is read once."""
        if number not in self._packs:
            self._packs[number] = self.table(self.sections[number])
        return self._packs[number]

    def read(self, key: Key | str, *, verify: bool = True) -> pa.Table:
        """The table of a key; its pieces are put together. Only its own bytes are touched.

        Without `verify` its checksum is not compared, which spares one pass over the bytes.
        """
        key = (key,) if isinstance(key, str) else key
        pieces = [
            self.pack(piece.section).slice(piece.first, piece.rows)
            if isinstance(piece, TableSlice)
            else self.table(piece, verify=verify)
            for piece in self._by_key[key]
        ]
        return pa.concat_tables(pieces) if len(pieces) > 1 else pieces[0]

    def verify(self) -> None:
        """Compare the checksum of every section."""
        for section in self.sections:
            self.table(section)

    def table(self, section: Section, *, verify: bool = True) -> pa.Table:
        """The table of one section."""
        data = self._data.slice(section.offset, section.facts.bytes)
        if verify and zlib.crc32(data) != section.checksum:
            raise damaged(self._place, f"section {section.key} does not match its checksum")
        try:
            table = pa.ipc.open_stream(data).read_all()
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._place, f"section {section.key} is not an Arrow stream") from error
        if table.num_rows != section.facts.rows:
            raise damaged(self._place, f"section {section.key} has {table.num_rows} rows")
        return table


def open_chunk(store: Store, ref: ChunkRef | str) -> OpenChunk:
    """Open a chunk by what a manifest says of it, or by its name alone.

    Given a `ChunkRef`, the file must also be the very one that was committed.
    """
    name = ref.name if isinstance(ref, ChunkRef) else ref
    place = store.place(name)
    data = _contents(store, name, place)
    if isinstance(ref, ChunkRef) and data.size != ref.bytes:
        raise damaged(place, f"it has {data.size} bytes, and was committed with {ref.bytes}")
    _check_head(place, data)
    directory, checksum = _directory(place, data)
    if isinstance(ref, ChunkRef) and checksum != ref.checksum:
        raise damaged(place, "it is not the file that was committed under this name")
    listed = json.loads(directory)
    sections = tuple(Section.from_json(stored) for stored in listed["sections"])
    _check_tiling(place, sections, data.size - TRAILER.size - len(directory))
    slices = tuple(TableSlice.from_json(stored) for stored in listed.get("slices", ()))
    return OpenChunk(place, data, sections, slices, listed["metadata"])


def _contents(store: Store, name: str, place: str) -> Contents:
    try:
        return store.map(name)
    except StateError as error:
        if error.code != "file-missing":
            raise
        raise chunk_missing(place) from error


def chunk_missing(place: str) -> StateError:
    """A chunk that a commit names is not there."""
    return StateError(f"{place} is missing, and a commit names it", code="chunk-missing", hint=RESTORE)


def _check_head(place: str, data: Contents) -> None:
    head = data.slice(0, min(len(HEAD), data.size)).to_pybytes()
    if head == HEAD:
        return
    text = head[len(MARK) :].partition(b"\n")[0]
    if head.startswith(MARK) and text.isdigit() and int(text) > FORMAT:
        raise too_new(place, int(text), FORMAT)
    if HEAD.startswith(head):
        raise damaged(place, f"it is cut off after {data.size} bytes")
    raise damaged(place, "it does not begin as a chunk does")


def _directory(place: str, data: Contents) -> tuple[bytes, str]:
    """The directory and the checksum of the file, if the end of the file is as it was written."""
    if data.size < len(HEAD) + TRAILER.size:
        raise damaged(place, f"it is cut off after {data.size} bytes")
    trailer = data.slice(data.size - TRAILER.size).to_pybytes()
    offset, length, total, checksum, magic = TRAILER.unpack(trailer)
    if magic != MAGIC or total != data.size or offset + length + TRAILER.size != total:
        raise damaged(place, "it is cut off, or its end was changed")
    directory = data.slice(offset, length).to_pybytes()
    if root_checksum(directory, offset, total) != checksum:
        raise damaged(place, "its directory does not match its checksum")
    return directory, checksum.hex()


def _check_tiling(place: str, sections: tuple[Section, ...], end: int) -> None:
    """Sections follow each other without gaps: no byte of the file is outside every checksum."""
    position = len(HEAD)
    for section in sections:
        if section.offset != position:
            raise damaged(place, f"section {section.key} is not where it should be")
        position = section.end
    if position != end:
        raise damaged(place, "its sections do not fill it")
