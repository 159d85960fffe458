"""A chunk: one immutable file of several Arrow tables, each readable without touching the others.

    head        64 bytes: `windrow chunk 1`, padded with zeros
    sections    each one Arrow IPC stream, padded with zeros to 64 bytes
    directory   JSON: for each section key, offset, length, checksum and facts; for each slice key, section,
                first row and number of rows; metadata of the file
    trailer     48 bytes: offset and length of the directory, length of the file, checksum, magic

The checksums form a tree: the trailer's covers the head, the directory and the trailer itself, the directory
holds those of the sections, and sections leave no byte between them. So the one checksum in a `ChunkRef`
stands for the whole file, though opening it reads only the two ends.

Many small tables of the same columns are written as one section, a *pack*, of which each key has a slice.

Nothing is believed before its checksum is: a file that is cut off, changed, or not a chunk at all is reported
by its name. Tables share the mapped memory, and stay valid when the file is removed.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import pyarrow as pa

from windrow.errors import StateError
from windrow.kernels.columnar.buffers import within_buffers
from windrow.state import crash, manifest
from windrow.state.store import RESTORE, Contents, Store, damaged, too_new
from windrow.windows.domain import INFINITY, Instant

#: names a section: the operator first, then what it likes (a bucket, a part of its state)
Key: TypeAlias = tuple[str | int, ...]

FORMAT = 1
ALIGNMENT = 64
MARK = b"windrow chunk "
HEAD = (MARK + b"%d\n" % FORMAT).ljust(ALIGNMENT, b"\0")
#: directory offset, directory length, file length, checksum, magic
TRAILER = struct.Struct("<QQQ16s8s")
MAGIC = b"wrchunk\n"
#: what the section of a pack is called; no operator can be called that
PACK = "#pack"


def _whole(key: Key | str) -> Key:
    return (key,) if isinstance(key, str) else key


@dataclass(frozen=True)
class Section:
    key: Key
    offset: int
    checksum: int
    facts: manifest.Facts

    def to_json(self) -> list[Any]:
        return [list(self.key), self.offset, self.checksum, self.facts.to_json()]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Section:
        key, offset, checksum, facts = stored
        return cls(tuple(key), offset, checksum, manifest.Facts.from_json(facts))


class TableSlice(NamedTuple):
    """Some rows of a pack that are a table of their own. There may be thousands in a chunk."""

    key: Key
    #: the place of the pack among the sections
    section: int
    first: int
    rows: int

    @classmethod
    def from_json(cls, stored: list[Any]) -> TableSlice:
        key, section, first, rows = stored
        return cls(tuple(key), section, first, rows)


class ChunkWriter:
    """A chunk being written. Sections of one key may come in several pieces; they must have one schema."""

    def __init__(self, name: str, file: BinaryIO, metadata: Mapping[str, Any]) -> None:
        self._name, self._file, self._metadata = name, file, dict(metadata)
        self._sections: list[Section] = []
        self._slices: list[TableSlice] = []
        self._schemas: dict[Key, pa.Schema] = {}
        self._end = len(HEAD)
        self._ref: manifest.ChunkRef | None = None
        file.write(HEAD)

    @property
    def ref(self) -> manifest.ChunkRef:
        """What a manifest needs to name the finished chunk."""
        if self._ref is None:
            raise ValueError(f"the chunk {self._name} is not finished")
        return self._ref

    def add(
        self,
        key: Key | str,
        table: pa.Table,
        lowest: Instant = -INFINITY,
        highest: Instant = INFINITY,
    ) -> None:
        """Write a table. The instants are what the layout of the operator wants to know of its rows."""
        self._write(self._known(key, table), table, lowest, highest)

    def add_pack(self, table: pa.Table, parts: Iterable[tuple[Key | str, int]]) -> None:
        """Write a table that several keys have their rows in, one after the other; so many rows each."""
        first, section = 0, len(self._sections)
        for key, rows in parts:
            self._slices.append(TableSlice(self._known(key, table), section, first, rows))
            first += rows
        if first != table.num_rows:
            raise ValueError(f"{first} of {table.num_rows} rows are someone's in the chunk {self._name}")
        self._write((PACK, section), table, -INFINITY, INFINITY)

    def _known(self, key: Key | str, table: pa.Table) -> Key:
        """The whole key; all tables of one have the same schema."""
        key = _whole(key)
        if table.schema != self._schemas.setdefault(key, table.schema):
            raise ValueError(f"section {key} has two schemas in the chunk {self._name}")
        return key

    def _write(self, key: Key, table: pa.Table, lowest: Instant, highest: Instant) -> None:
        data = _stream(table)
        facts = manifest.Facts(table.num_rows, data.size, lowest, highest)
        self._sections.append(Section(key, self._end, zlib.crc32(data), facts))
        self._file.write(data)
        self._end += data.size
        crash.crash_point("chunk-partly-written")

    def finish(self) -> None:
        listed: dict[str, Any] = {"sections": [s.to_json() for s in self._sections]}
        listed |= {"slices": self._slices, "metadata": self._metadata}
        directory = json.dumps(listed, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        length = self._end + len(directory) + TRAILER.size
        checksum = root_checksum(directory, self._end, length)
        self._file.write(directory)
        self._file.write(TRAILER.pack(self._end, len(directory), length, checksum, MAGIC))
        operators: dict[str, manifest.Facts] = {}
        for key, facts in self._parts():
            operator = str(key[0])
            known = operators.get(operator)
            operators[operator] = known.merged(facts) if known else facts
        rows = sum(section.facts.rows for section in self._sections)
        self._ref = manifest.ChunkRef(self._name, length, checksum.hex(), rows, operators, self._metadata)

    def _parts(self) -> Iterator[tuple[Key, manifest.Facts]]:
        """What there is of each key: a slice has its share of the bytes of its pack."""
        for section in self._sections:
            if section.key[0] != PACK:
                yield section.key, section.facts
        for part in self._slices:
            pack = self._sections[part.section].facts
            yield part.key, manifest.Facts(part.rows, pack.bytes * part.rows // max(pack.rows, 1))


@contextmanager
def chunk_writer(store: Store, name: str, metadata: Mapping[str, Any] | None = None) -> Iterator[ChunkWriter]:
    """A chunk to add sections to, piece by piece; at the end of the block it is on the disk, or gone."""
    try:
        with store.writer(name) as file:
            writer = ChunkWriter(name, file, metadata or {})
            yield writer
            writer.finish()
    except FileExistsError:
        hint = "every attempt to write a chunk needs a name of its own: use new_chunk_name"
        raise StateError(f"{store.place(name)} exists already", code="chunk-exists", hint=hint) from None
    crash.crash_point("chunk-written")


def root_checksum(directory: bytes, offset: int, length: int) -> bytes:
    ends = struct.pack("<QQQ", offset, len(directory), length)
    return blake2b(HEAD + ends + directory, digest_size=16).digest()


def _stream(table: pa.Table) -> pa.Buffer:
    table, sink = within_buffers(table), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    sink.write(bytes(-sink.tell() % ALIGNMENT))
    return sink.getvalue()


class OpenChunk:
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
        pieces = self._by_key[_whole(key)]
        only = pieces[0] if len(pieces) == 1 else None
        return only.section if isinstance(only, TableSlice) else None

    def pack(self, number: int) -> pa.Table:
        """All rows of a pack. It is read once."""
        if number not in self._packs:
            self._packs[number] = self.table(self.sections[number])
        return self._packs[number]

    def read(self, key: Key | str) -> pa.Table:
        """The table of a key; its pieces are put together. Only its own bytes are touched."""
        pieces = [
            self.pack(piece.section).slice(piece.first, piece.rows)
            if isinstance(piece, TableSlice)
            else self.table(piece)
            for piece in self._by_key[_whole(key)]
        ]
        return pa.concat_tables(pieces) if len(pieces) > 1 else pieces[0]

    def table(self, section: Section) -> pa.Table:
        """The table of one section, whose checksum is compared."""
        data = self._data.slice(section.offset, section.facts.bytes)
        if zlib.crc32(data) != section.checksum:
            raise damaged(self._place, f"section {section.key} does not match its checksum")
        try:
            table = pa.ipc.open_stream(data).read_all()
        except (pa.ArrowException, OSError) as error:
            raise damaged(self._place, f"section {section.key} is not an Arrow stream") from error
        if table.num_rows != section.facts.rows:
            raise damaged(self._place, f"section {section.key} has {table.num_rows} rows")
        return table


def open_chunk(store: Store, ref: manifest.ChunkRef | str) -> OpenChunk:
    """Open a chunk by what a manifest says of it, or by its name alone.

    Given a `ChunkRef`, the file must also be the very one that was committed.
    """
    name = ref.name if isinstance(ref, manifest.ChunkRef) else ref
    place = store.place(name)
    data = _contents(store, name, place)
    if isinstance(ref, manifest.ChunkRef) and data.size != ref.bytes:
        raise damaged(place, f"it has {data.size} bytes, and was committed with {ref.bytes}")
    _check_head(place, data)
    directory, checksum = _directory(place, data)
    if isinstance(ref, manifest.ChunkRef) and checksum != ref.checksum:
        raise damaged(place, "it is not the file that was committed under this name")
    listed = json.loads(directory)
    sections = tuple(Section.from_json(stored) for stored in listed["sections"])
    position = len(HEAD)
    for section in sections:  # without gaps: no byte of the file is outside every checksum
        if section.offset != position:
            raise damaged(place, f"section {section.key} is not where it should be")
        position += section.facts.bytes
    if position != data.size - TRAILER.size - len(directory):
        raise damaged(place, "its sections do not fill it")
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
