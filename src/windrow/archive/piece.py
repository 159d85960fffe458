"""A piece of a sub-index: a Parquet file, its rows in the order of the key, then of expiry.

The directory of a piece is the footer of its file: the least and the greatest key of each row group. It is
kept in memory, so that a search opens only the row groups which can hold the key. Row groups are small for
that. The checksum of a `ChunkRef` is that of the footer; those of the row groups stand beside it and are
compared when one is read, so that no byte of the file goes unwatched.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow.archive.declaration import Declaration
from windrow.errors import DataError
from windrow.state import crash, manifest
from windrow.state.store import Store, damaged, explained

ROWS_PER_GROUP = 4096
#: that many are read without waiting for other threads
_FEW_GROUPS = 4
_MAGIC = b"PAR1"
_PART = "rows"
_EXPIRIES, _CHECKSUMS = "expiries", "checksums"


def instants(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of instants as whole numbers: those of a TIMESTAMP are microseconds."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    return np.asarray(column.cast(pa.int64()).to_numpy())


def clustered(table: pa.Table, declaration: Declaration) -> pa.Table:
    """The rows in the order of a piece."""
    return table.sort_by([(declaration.key, "ascending"), (declaration.expires, "ascending")])


def write_piece(store: Store, name: str, table: pa.Table, declaration: Declaration) -> manifest.ChunkRef:
    """Write rows, which are in order already, as a file that is on the disk when this returns."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS_PER_GROUP)
    data = sink.getvalue()
    with explained("write", store.place(name)), store.writer(name) as file:
        half = data.size // 2
        file.write(data.slice(0, half))
        crash.crash_point("chunk-partly-written")
        file.write(data.slice(half))
    crash.crash_point("chunk-written")
    valid_to = instants(table[declaration.expires])
    periods, counts = np.unique(-(-valid_to // declaration.period), return_counts=True)
    return manifest.ChunkRef(
        name,
        data.size,
        _checksum(_footer(data, name)),
        table.num_rows,
        {_PART: manifest.Facts(table.num_rows, data.size, int(valid_to.min()), int(valid_to.max()))},
        {
            _EXPIRIES: [[int(p), int(n)] for p, n in zip(periods, counts, strict=True)],
            _CHECKSUMS: [zlib.crc32(part) for part in _groups(data, name)],
        },
    )


def expiries(ref: manifest.ChunkRef) -> dict[int, int]:
    """How many rows of a piece expire in which period."""
    return dict(ref.metadata[_EXPIRIES])


@dataclass(frozen=True)
class Piece:
    """A piece to read."""

    store: Store
    ref: manifest.ChunkRef
    key: str

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, expired ones too."""
        return self._read(range(self._metadata.num_row_groups), columns)

    def find(self, wanted: KeyRange, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with a key that is wanted, expired ones too."""
        return wanted.of(self._read(self._groups_of(wanted), columns))

    def rows_to_read(self, wanted: KeyRange) -> int:
        """How many rows are read to find what is wanted."""
        return sum(self._metadata.row_group(group).num_rows for group in self._groups_of(wanted))

    def _groups_of(self, wanted: KeyRange) -> list[int]:
        return [group for group, ends in enumerate(self._directory) if wanted.can_be_in(*ends)]

    @cached_property
    def _data(self) -> pa.Buffer:
        place = self.store.place(self.ref.name)
        data = self.store.map(self.ref.name).slice()
        if data.size != self.ref.bytes:
            raise damaged(place, f"it has {data.size} bytes, and was committed with {self.ref.bytes}")
        if _checksum(_footer(data, place)) != self.ref.checksum:
            raise damaged(place, "its footer does not match its checksum")
        return data

    @cached_property
    def _metadata(self) -> pq.FileMetaData:
        return pq.read_metadata(pa.BufferReader(self._data))

    @cached_property
    def _parts(self) -> list[memoryview]:
        return _groups(self._data, self.ref.name)

    @cached_property
    def _directory(self) -> list[tuple[Any, Any]]:
        """The least and the greatest key of each row group; None where the footer does not tell."""
        leaves = [self._metadata.schema.column(leaf).path for leaf in range(self._metadata.num_columns)]
        column = leaves.index(self.key)
        found = []
        for group in range(self._metadata.num_row_groups):
            statistics = self._metadata.row_group(group).column(column).statistics
            known = statistics is not None and statistics.has_min_max
            found.append((statistics.min, statistics.max) if known else (None, None))
        return found

    def _read(self, groups: Sequence[int], columns: Sequence[str] | None) -> pa.Table:
        for group in groups:
            if zlib.crc32(self._parts[group]) != self.ref.metadata[_CHECKSUMS][group]:
                place = self.store.place(self.ref.name)
                raise damaged(place, f"row group {group} does not match its checksum")
        chosen = None if columns is None else list(columns)
        with pq.ParquetFile(pa.BufferReader(self._data), metadata=self._metadata) as file:
            return file.read_row_groups(list(groups), chosen, use_threads=len(groups) > _FEW_GROUPS)


def living(table: pa.Table, expires: str, at: int) -> pa.Table:
    """The rows that are valid at an instant."""
    alive = instants(table[expires]) > at
    return table if alive.all() else table.filter(pa.array(alive))


def _checksum(footer: memoryview) -> str:
    return blake2b(footer, digest_size=16).hexdigest()


def _groups(data: pa.Buffer, place: str) -> list[memoryview]:
    """The bytes of each row group: the first from the start of the file, the last up to the footer."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    begins = []
    for group in range(metadata.num_row_groups):
        columns = [metadata.row_group(group).column(number) for number in range(metadata.num_columns)]
        offsets = [(each.dictionary_page_offset, each.data_page_offset) for each in columns]
        begins.append(min(offset for pair in offsets for offset in pair if offset is not None))
    view = memoryview(data)
    ends = [0, *begins[1:], len(view) - len(_footer(data, place))]
    return [view[begin:end] for begin, end in pairwise(ends)]


def _footer(data: pa.Buffer, place: str) -> memoryview:
    """What comes after the pages: the directory, its length, and the magic of Parquet."""
    view = memoryview(data)
    if bytes(view[-4:]) != _MAGIC:
        raise damaged(place, "it is not a Parquet file")
    length = int.from_bytes(view[-8:-4], "little") + 8
    if length > len(view):
        raise damaged(place, "it is cut off")
    return view[-length:]


# ------------------------------------------------------------ search


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys from `low` to `high`, both included, as scalars of the column's type; None is no bound.

    So a date may be given as a date and a time as a time. A NULL is no key: it is never found, only scanned.

    >>> KeyRange.between("k", 3, 5, pa.int64()).of(pa.table({"k": [2, 3, 5, 6]}))["k"].to_pylist()
    [3, 5]
    """

    key: str
    low: pa.Scalar | None
    high: pa.Scalar | None

    @classmethod
    def between(cls, key: str, low: Any, high: Any, kind: pa.DataType) -> KeyRange:
        """Keys in a range; `kind` is the type of the column."""
        return cls(key, _scalar(key, low, kind), _scalar(key, high, kind))

    def of(self, table: pa.Table) -> pa.Table:
        """The rows that are wanted."""
        column = table[self.key]
        mask = pc.is_valid(column)
        if self.low is not None:
            mask = pc.and_kleene(mask, pc.greater_equal(column, self.low))
        if self.high is not None:
            mask = pc.and_kleene(mask, pc.less_equal(column, self.high))
        return table.filter(mask)

    def can_be_in(self, least: Any, greatest: Any) -> bool:
        """Whether keys from `least` to `greatest` may be wanted; if those are unknown, they may."""
        try:
            below = self.low is not None and greatest is not None and greatest < self.low.as_py()
            above = self.high is not None and least is not None and least > self.high.as_py()
        except TypeError:  # the footer has them in another form
            return True
        return not (below or above)


def _scalar(key: str, value: Any, kind: pa.DataType) -> pa.Scalar | None:
    if value is None:
        return None
    try:
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, OverflowError) as error:
        hint = f"`{key}` is {kind}: give a value of that type"
        raise DataError(f"{value!r} is no key of this archive", code="key", hint=hint) from error
