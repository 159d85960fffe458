"""A piece of a sub-index: a Parquet file, its rows in the order of the key, then of expiry.

The directory of a piece is the footer of its file: the least and the greatest key of each row group. It is
kept in memory, so that a search opens only the row groups which can hold the key. Row groups are small for
that. The checksum of a `ChunkRef` is that of the footer; those of the row groups stand beside it and are
compared when one is read, so that no byte of the file goes unwatched. Anything that reads Parquet reads the
files.

What is searched for: one key, or keys from one to another, both included.

Keys are compared as the column's own type has them, so a date may be given as a date and a time as a time. A
NULL is no key: it is never found, only scanned.

One state of an archive together with rows that are on their way to it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow.errors import DataError
from windrow.state.crash import crash_point
from windrow.state.manifest import ChunkRef, Facts
from windrow.state.store import Store, damaged, explained

if TYPE_CHECKING:
    from windrow.archive.declaration import Declaration
    from windrow.archive.snapshot import Snapshot

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


def write_piece(store: Store, name: str, table: pa.Table, declaration: Declaration) -> ChunkRef:
    """Write rows, which are in order already, as a file that is on the disk when this returns."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table, row_group_size=ROWS_PER_GROUP)
    data = sink.getvalue()
    with explained("write", store.place(name)), store.writer(name) as file:
        half = data.size // 2
        file.write(data.slice(0, half))
        crash_point("chunk-partly-written")
        file.write(data.slice(half))
    crash_point("chunk-written")
    valid_to = instants(table[declaration.expires])
    periods, counts = np.unique(-(-valid_to // declaration.period), return_counts=True)
    return ChunkRef(
        name,
        data.size,
        _checksum(_footer(data, name)),
        table.num_rows,
        {_PART: Facts(table.num_rows, data.size, int(valid_to.min()), int(valid_to.max()))},
        {
            _EXPIRIES: [[int(p), int(n)] for p, n in zip(periods, counts, strict=True)],
            _CHECKSUMS: [zlib.crc32(part) for part in _groups(data, name)],
        },
    )


def expiries(ref: ChunkRef) -> dict[int, int]:
    """How many rows of a piece expire in which period."""
    return dict(ref.metadata[_EXPIRIES])


@dataclass(frozen=True)
class Piece:
    """A piece to read."""

    store: Store
    ref: ChunkRef
    key: str

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, expired ones too."""
        return self._read(range(self._metadata.num_row_groups), columns)

    def find(self, wanted: KeyRange, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with a key that is wanted, expired ones too."""
        groups = [group for group, ends in enumerate(self._directory) if wanted.can_be_in(*ends)]
        return wanted.of(self._read(groups, columns))

    def rows_to_read(self, wanted: KeyRange) -> int:
        """How many rows are read to find what is wanted."""
        found = [group for group, ends in enumerate(self._directory) if wanted.can_be_in(*ends)]
        return sum(self._metadata.row_group(group).num_rows for group in found)

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return len(self._directory)

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
    """Keys from `low` to `high`, as scalars of the column's type; None is no bound.

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


@dataclass(frozen=True)
class Reading:
    """A snapshot, rows it does not have yet, and the instant that is the present for who reads.

    `begins` names the column that says from when on a row is valid; without one, all are by now.
    """

    snapshot: Snapshot
    waiting: pa.Table
    now: int
    begins: str | None = None

    def find(self, key: Any, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with this key; none for None, which is no key."""
        if key is None:
            return self._chosen(self.snapshot.schema.empty_table(), columns)
        return self.find_between(key, key, at=at, columns=columns)

    def find_between(
        self, low: Any, high: Any, *, at: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The valid rows with keys from `low` to `high`, both included; None is no bound."""
        told, schema = self.snapshot.declaration, self.snapshot.schema
        wanted = KeyRange.between(told.key, low, high, schema.field(told.key).type)
        instant = self._instant(at)
        found = self.snapshot.find_between(low, high, at=instant, columns=self._needed(columns))
        return self._together(found, wanted.of(self.waiting), instant, columns)

    def scan(self, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All valid rows."""
        instant = self._instant(at)
        found = self.snapshot.scan(at=instant, columns=self._needed(columns))
        return self._together(found, self.waiting, instant, columns)

    def rows_to_read(self, low: Any = None, high: Any = None) -> int:
        """How many rows a search reads; a scan, without bounds."""
        return self.snapshot.rows_to_read(low, high) + int(self.waiting.num_rows)

    def _instant(self, at: int | None) -> int:
        # an instant that is past is refused by the snapshot, if it knows nothing of it any more
        return self.now if at is None else at

    def _needed(self, columns: Sequence[str] | None) -> list[str] | None:
        if columns is None or self.begins is None:
            return None if columns is None else list(columns)
        return list(dict.fromkeys([*columns, self.begins]))

    def _together(
        self, found: pa.Table, waiting: pa.Table, instant: int, columns: Sequence[str] | None
    ) -> pa.Table:
        alive = living(waiting, self.snapshot.declaration.expires, instant)
        table = pa.concat_tables([found, alive.select(found.column_names)])
        if self.begins is not None:
            table = table.filter(pa.array(instants(table[self.begins]) <= instant))
        return self._chosen(table, columns)

    def _chosen(self, table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        return table.select(self.snapshot.schema.names if columns is None else list(columns))
