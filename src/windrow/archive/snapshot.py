"""An archive as it is after one commit, to be searched and scanned. It never changes.

Files of a snapshot stay as long as the archive keeps the commit; a reader in the process that writes can hold
it for as long as it likes, with `Archive.snapshot`.

At the end: by which policy a window is read that slides meanwhile (`windrow.engine.adhoc.select`). A window
of n sub-windows is a ring of n slots. Update j puts fresh rows into slot j mod n, over the oldest; a query
reads slots one after the other, so that an update in the midst of it decides whether the answer is about
one instant, about the latest one, or about none that ever was (chapter 7 of Golab's thesis, 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from windrow.archive.declaration import Declaration
from windrow.archive.piece import KeyRange, Piece, instants, living
from windrow.errors import DataError, StateError
from windrow.state import history, object_store
from windrow.state.manifest import ChunkRef, Manifest, SourceState
from windrow.state.store import Store

#: the name of the one stream of an archive in its manifests
STREAM = "archive"
#: a piece from what a manifest says of it; a cache keeps the directories of pieces in memory
OpenPiece: TypeAlias = Callable[[ChunkRef], Piece]


@dataclass(frozen=True)
class Snapshot:
    """The rows that an archive holds after the update at `now`."""

    store: Store
    manifest: Manifest
    open_piece: OpenPiece | None = None

    @cached_property
    def declaration(self) -> Declaration:
        """What the archive was told."""
        return Declaration.from_json(dict(self.manifest.streams[STREAM].options["declaration"]))

    @property
    def now(self) -> int:
        """The instant of the last update."""
        return int(self.manifest.streams[STREAM].progress["now"])

    @property
    def read(self) -> SourceState:
        """How far the source of the rows was read."""
        return self.manifest.streams[STREAM].source

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        stored = bytes.fromhex(self.manifest.streams[STREAM].options["schema"])
        return pa.ipc.read_schema(pa.BufferReader(stored))

    @property
    def files(self) -> list[str]:
        """The paths of all Parquet files, in the order of the sub-indices.

        Rows in them may have expired: keep those whose expiry is after `now`.
        """
        return [self.store.place(ref.name) for ref in self._refs]

    def find(self, key: Any, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with this key; none for None, which is no key."""
        if key is None:
            return self.chosen(self.schema.empty_table(), columns)
        return self.find_between(key, key, at=at, columns=columns)

    def find_between(
        self, low: Any, high: Any, *, at: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows with keys from `low` to `high`, both included; None is no bound."""
        wanted, needed = self.keys_between(low, high), self._needed(columns)
        return self._gathered((piece.find(wanted, needed) for piece in self._pieces()), at, columns)

    def scan(self, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows."""
        needed = self._needed(columns)
        return self._gathered((piece.read(needed) for piece in self._pieces()), at, columns)

    def rows_to_read(self, low: Any = None, high: Any = None) -> int:
        """How many rows a search for keys from `low` to `high` reads, by what the directories say.

        Without bounds it is all there is on the disk, expired rows too.
        """
        if low is None and high is None:
            return sum(ref.rows for ref in self._refs)
        wanted = self.keys_between(low, high)
        return sum(piece.rows_to_read(wanted) for piece in self._pieces())

    def keys_between(self, low: Any, high: Any) -> KeyRange:
        """Keys in a range, to look for."""
        key = self.declaration.key
        return KeyRange.between(key, low, high, self.schema.field(key).type)

    @property
    def _refs(self) -> list[ChunkRef]:
        return [ref for _, refs in sorted(self.manifest.chunks.items()) for ref in refs]

    def _pieces(self) -> Iterator[Piece]:
        key = self.declaration.key
        for ref in self._refs:
            yield self.open_piece(ref) if self.open_piece else Piece(self.store, ref, key)

    def _needed(self, columns: Sequence[str] | None) -> list[str] | None:
        """What has to be read to give these columns: the key and the expiry decide who is in the answer."""
        if columns is None:
            return None
        if unknown := [name for name in columns if name not in self.schema.names]:
            hint = "columns of this archive: " + ", ".join(f"`{name}`" for name in self.schema.names)
            raise DataError(f"no column `{unknown[0]}`", code="unknown-column", hint=hint)
        told = self.declaration
        return list(dict.fromkeys([*columns, told.key, told.expires]))

    def _gathered(self, found: Iterator[pa.Table], at: int | None, columns: Sequence[str] | None) -> pa.Table:
        instant = self._instant(at)
        expires = self.declaration.expires
        tables = [self.chosen(living(table, expires, instant), columns) for table in found]
        return pa.concat_tables([self.chosen(self.schema.empty_table(), columns), *tables])

    def chosen(self, table: pa.Table, columns: Sequence[str] | None) -> pa.Table:
        """These columns; None: all."""
        return table.select(self.schema.names if columns is None else list(columns))

    def _instant(self, at: int | None) -> int:
        if at is not None and at < self.now:
            raise DataError(
                f"the archive is about {self.now} and later, not about {at}",
                code="instant",
                hint="rows that had expired by then are gone; ask about the last update or a later instant",
            )
        return self.now if at is None else at


def read_archive(folder: str | Path | Store) -> Snapshot:
    """The last commit of an archive, read by anybody, while somebody else may be writing to it."""
    store = object_store.open_store(folder)
    manifest = history.History(store).latest()
    if manifest is None or STREAM not in manifest.streams:
        raise no_archive(folder)
    return Snapshot(store, manifest)


def no_archive(folder: object) -> StateError:
    """There is none in that place."""
    hint = "check the path, or make the archive first"
    return StateError(f"there is no archive in {folder}", code="no-archive", hint=hint)


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
            return self.snapshot.find(None, columns=columns)
        return self.find_between(key, key, at=at, columns=columns)

    def find_between(
        self, low: Any, high: Any, *, at: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The valid rows with keys from `low` to `high`, both included; None is no bound."""
        instant = self.now if at is None else at
        found = self.snapshot.find_between(low, high, at=instant, columns=self._needed(columns))
        waiting = self.snapshot.keys_between(low, high).of(self.waiting)
        return self._together(found, waiting, instant, columns)

    def scan(self, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All valid rows."""
        instant = self.now if at is None else at
        found = self.snapshot.scan(at=instant, columns=self._needed(columns))
        return self._together(found, self.waiting, instant, columns)

    def rows_to_read(self, low: Any = None, high: Any = None) -> int:
        """How many rows a search reads; a scan, without bounds."""
        return self.snapshot.rows_to_read(low, high) + int(self.waiting.num_rows)

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
        return self.snapshot.chosen(table, columns)


# ------------------------------------------------------------ isolation


#: (versions wanted, ascending; number of slots) → the one to read next
ReadOrder: TypeAlias = Callable[[Sequence[int], int], int]


class IsolationLevel(Enum):
    """What an answer is about: the window as it was at some instant, or at the commit of the read."""

    WINDOW = auto()
    LATEST = auto()


WINDOW, LATEST = IsolationLevel


def youngest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Highest time to update first: what expires next is read last, or never (Algorithm 8).

    A version's time to update is the number of updates until it is overwritten; a higher version has more.

    >>> youngest_first((3, 4, 5), 3), oldest_first((3, 4, 5), 3)
    (5, 3)
    """
    return max(wanted)


def oldest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Lowest time to update first: what expires next is read before it does, so a snapshot survives."""
    return min(wanted)


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """How queries and updates get along.

    `updates_wait`: a query that has begun keeps updates and other queries out. Otherwise updates happen at
    once, whoever reads. `undo`: expired sub-windows are kept for those who have read them, who take back
    their rows instead of beginning anew.
    """

    name: str
    level: IsolationLevel
    order: ReadOrder
    updates_wait: bool = False
    undo: bool = False

    def __post_init__(self) -> None:
        if self.undo and self.level is not LATEST:
            raise ValueError("a query that keeps to one window has nothing to undo")


#: answers are about the window that a query has found
SNAPSHOT = IsolationPolicy("WS", WINDOW, oldest_first)
#: answers are about the window at the commit, with expired sub-windows kept: nobody begins anew
UNDOING = IsolationPolicy("TTU-undo", LATEST, youngest_first, undo=True)
