"""An archive: rows with lifetimes on disk, found by a key, updated once per period.

An update writes new pieces for the sub-indices it has to change, then commits the one manifest that names all
pieces there are. So a crash leaves either the state before or the state after it, and whoever reads sees one
or the other. Files that no kept commit names are removed.

Which rows an archive takes: the right columns, a key that can be ordered, an expiry that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from windrow.archive.declaration import Declaration, NewPiece, Stock
from windrow.archive.piece import Piece, clustered, expiries, instants, living, write_piece
from windrow.archive.snapshot import STREAM, Snapshot, no_archive
from windrow.errors import DataError, QueryError, StateError, nearest
from windrow.state import history, names, object_store
from windrow.state.log import CommitLog
from windrow.state.manifest import ChunkRef, SourceState, StreamState
from windrow.state.store import Store

_ORDERED = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


def check_schema(schema: pa.Schema, declaration: Declaration) -> pa.Schema:
    """The schema of the files: that of the rows, and the expiry, if they do not have it themselves."""
    key = declaration.key
    if key not in schema.names:
        raise QueryError(f"no column `{key}`", code="unknown-column", hint=nearest(key, schema.names))
    kind = schema.field(key).type
    if not any(fits(kind) for fits in _ORDERED):
        hint = "choose a column of whole numbers, decimals, text, dates or times"
        raise QueryError(f"`{key}` is {kind}, which is no good key", code="key", hint=hint)
    if declaration.expires not in schema.names:
        schema = schema.append(pa.field(declaration.expires, pa.int64()))
    expires = schema.field(declaration.expires).type
    if not (pa.types.is_int64(expires) or pa.types.is_timestamp(expires)):
        hint = "an expiry is a BIGINT or a TIMESTAMP"
        raise QueryError(f"`{declaration.expires}` is {expires}", code="expiry", hint=hint)
    return schema.remove_metadata()


def accepted(
    rows: pa.Table | None,
    schema: pa.Schema,
    declaration: Declaration,
    now: int,
    latest: int | None = None,
) -> pa.Table:
    """The rows as they are stored: nothing that has expired, and nothing that stays longer than agreed."""
    if rows is None or not rows.num_rows:
        return schema.empty_table()
    name = declaration.expires
    last = now + declaration.keep if latest is None else latest
    if name not in rows.column_names:
        ends = pa.array(np.full(rows.num_rows, last), pa.int64())
        rows = rows.append_column(name, ends.cast(schema.field(name).type))
    if rows[name].null_count:
        hint = "every row has to say until when it is valid; leave the column out to keep all alike"
        raise DataError(f"`{name}` is NULL in {rows[name].null_count} rows", code="expiry", hint=hint)
    try:
        rows = rows.select(schema.names).cast(schema)
    except (KeyError, ValueError, pa.ArrowInvalid) as error:
        hint = "columns of this archive: " + ", ".join(f"`{each}`" for each in schema.names)
        raise DataError(f"these rows do not fit the archive: {error}", code="schema", hint=hint) from error
    ends = instants(rows[name])
    if (ends > last).any():
        clipped = pa.array(np.minimum(ends, last), pa.int64()).cast(schema.field(name).type)
        rows = rows.set_column(schema.get_field_index(name), schema.field(name), clipped)
    return rows.filter(pa.array(ends > now))


@dataclass(frozen=True, slots=True)
class Updated:
    """What an update did: the sub-indices whose files it changed, and the rows it wrote and let go."""

    touched: frozenset[int]
    rows_in: int
    rows_written: int
    files_written: int


class Archive:
    """An archive that is owned by this process. Made by `create` or `open`.

    >>> from tempfile import TemporaryDirectory
    >>> rows = pa.table({"item": ["a", "b"], "price": [3, 4], "valid_to": [15, 30]})
    >>> with TemporaryDirectory() as folder:
    ...     told = Declaration.of("item", keep=100, partitions=(2, 2))
    ...     with Archive.create(folder, rows.schema, told) as archive:
    ...         done = archive.update(10, rows)
    ...         print(archive.find("a")["price"].to_pylist(), archive.scan(at=20)["item"].to_pylist())
    [3] ['b']
    """

    def __init__(self, log: CommitLog, keep_commits: int) -> None:
        self._log, self._keep_commits = log, keep_commits
        self._open: dict[str, Piece] = {}
        self.declaration = self._snapshot().declaration
        self.schema = self._snapshot().schema

    @classmethod
    def create(
        cls,
        folder: str | Path | Store,
        schema: pa.Schema,
        declaration: Declaration,
        *,
        keep_commits: int = 4,
        read: SourceState | None = None,
    ) -> Self:
        """Make an archive in a directory that is empty or not there; rows will have this schema.

        `read` says where the rows come from, and which of them are not for this archive.
        """
        schema = check_schema(schema, declaration)
        log = CommitLog.open(object_store.open_store(folder))
        try:
            if log.last.streams:
                hint = "open it, or choose another directory"
                raise StateError(f"there is an archive in {folder} already", code="archive-exists", hint=hint)
            options = {
                "declaration": declaration.to_json(),
                "schema": schema.serialize().to_pybytes().hex(),
            }
            never = StreamState(progress={"now": -(2**63)}, options=options, source=read or SourceState())
            log.commit(log.last.successor(streams={STREAM: never}))
            return cls(log, keep_commits)
        except BaseException:
            log.close()
            raise

    @classmethod
    def open(cls, folder: str | Path | Store, *, keep_commits: int = 4, takeover: bool = False) -> Self:
        """Go on with an archive; whatever an interrupted update has left is cleared away.

        `takeover` is your word that a process of another machine that seems to own it is gone.
        """
        store = object_store.open_store(folder)
        if not store.is_there():
            raise no_archive(folder)
        log = CommitLog.open(store, takeover=takeover)
        try:
            if STREAM not in log.last.streams:
                raise no_archive(folder)
            archive = cls(log, keep_commits)
            history.sweep(log, keep_commits)
            return archive
        except BaseException:
            log.close()
            raise

    @property
    def now(self) -> int:
        """The instant of the last update; the least number there is before the first."""
        return self._snapshot().now

    @property
    def read(self) -> SourceState:
        """How far its source has been read, as the last update said."""
        return self._snapshot().read

    @property
    def commit(self) -> int:
        """The number of its last commit."""
        return self._log.last.number

    @property
    def rows(self) -> int:
        """How many rows are on the disk, expired ones too."""
        return sum(ref.rows for ref in self._log.last.files.values())

    @property
    def sizes(self) -> list[int]:
        """The rows of each sub-index, expired ones that are still there too."""
        chunks = self._log.last.chunks
        numbers = range(self.declaration.partitioning.count)
        return [sum(ref.rows for ref in chunks.get(number, ())) for number in numbers]

    @property
    def files(self) -> list[str]:
        """The paths of all Parquet files; rows in them are valid while their expiry is after `now`."""
        return self._snapshot().files

    def update(
        self,
        now: int,
        rows: pa.Table | None = None,
        *,
        latest: int | None = None,
        read: SourceState | None = None,
    ) -> Updated:
        """Put rows in and let go of what has expired by `now`, all at once.

        Updates that are a period apart, at its multiples, touch the fewest sub-indices; any other instants
        are right as well. No row stays beyond `latest`, which is `now` and what the archive keeps unless
        told. `read` is how far the source of the rows has been read with them.
        """
        before = self._snapshot()
        if now < before.now:
            hint = "time does not go backwards: give the instants of updates in order"
            raise DataError(f"an update at {now} after one at {before.now}", code="instant", hint=hint)
        table = accepted(rows, self.schema, self.declaration, now, latest)
        told, inserted = self.declaration, self.declaration.number(now)
        fresh = _by_place(table, told, lambda expires: told.partitioning.place(inserted, expires))
        changes = {
            number: change
            for number in sorted(self._affected(before.now, now) | set(fresh))
            if (change := self._change(number, fresh.get(number), now)) is not None
        }
        state = self._log.last.streams[STREAM]
        grown = replace(
            state,
            progress={"now": now},
            accepted=state.accepted + table.num_rows,
            source=read or state.source,
        )
        self._finish(
            {**self._log.last.chunks, **{number: refs for number, (refs, _) in changes.items()}}, grown
        )
        written = [ref for _, new in changes.values() for ref in new]
        rows_written = sum(ref.rows for ref in written)
        return Updated(frozenset(changes), table.num_rows, rows_written, len(written))

    def find(self, key: Any, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with this key."""
        return self._snapshot().find(key, at=at, columns=columns)

    def find_between(
        self, low: Any, high: Any, *, at: int | None = None, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The valid rows with keys from `low` to `high`, both included; None is no bound."""
        return self._snapshot().find_between(low, high, at=at, columns=columns)

    def scan(self, *, at: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All valid rows."""
        return self._snapshot().scan(at=at, columns=columns)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """The archive as it is now, for as long as the block lasts, whatever updates come."""
        with self._log.reader() as manifest:
            yield Snapshot(self._log.store, manifest, self._piece)

    def rearrange(self, declaration: Declaration) -> None:
        """Cut the archive anew, for another load: other partitions, rebuilt or not. Rows stay the same."""
        old = self.declaration
        if (declaration.key, declaration.expires) != (old.key, old.expires):
            hint = "make a new archive, and put the rows of this one in"
            raise DataError("the key of an archive stays what it is", code="key", hint=hint)
        refs, now, cut = list(self._log.last.files.values()), self.now, declaration.partitioning
        self.declaration = declaration
        try:
            chunks: dict[int, tuple[ChunkRef, ...]] = {}
            for some in _batches(refs):
                parts = [living(self._piece(ref).read(), declaration.expires, now) for ref in some]
                # nobody remembers when they came: they are dealt out evenly, by what expires when
                spread = _by_place(
                    pa.concat_tables(parts), declaration, lambda end: cut.place(end // cut.expiries, end)
                )
                for number, rows in spread.items():
                    chunks[number] = (*chunks.get(number, ()), self._write(number, rows))
            state = self._log.last.streams[STREAM]
            options = {**state.options, "declaration": declaration.to_json()}
            self._finish(chunks, replace(state, options=options))
        except BaseException:
            self.declaration = old
            raise

    def close(self) -> None:
        """Let others own it."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # An update, step by step.

    def _affected(self, before: int, now: int) -> set[int]:
        """The sub-indices with rows that expire in the periods that have ended since the last update."""
        told = self.declaration
        first, last = told.number(before), told.number(now)
        known = {period for ref in self._log.last.files.values() for period in expiries(ref)}
        ended = [period for period in known if first < period <= last]
        return {number for period in ended for number in told.partitioning.expiring(period)}

    def _change(
        self, number: int, fresh: pa.Table | None, now: int
    ) -> tuple[tuple[ChunkRef, ...], tuple[ChunkRef, ...]] | None:
        """All pieces of a sub-index after the update, and the new ones among them; None if none change."""
        refs = {ref.name: ref for ref in self._log.last.chunks.get(number, ())}
        stock = [Stock(ref.name, expiries(ref)) for ref in refs.values()]
        new_rows = fresh.num_rows if fresh is not None else 0
        plan = self.declaration.upkeep.plan(stock, new_rows=new_rows, period=self.declaration.number(now))
        if not plan.written and len(plan.kept) == len(refs):
            return None
        rewritten = (self._rows_of(piece, refs, fresh, now) for piece in plan.written)
        written = tuple(self._write(number, rows) for rows in rewritten if rows.num_rows)
        return (*(refs[name] for name in plan.kept), *written), written

    def _rows_of(
        self, piece: NewPiece, refs: dict[str, ChunkRef], fresh: pa.Table | None, now: int
    ) -> pa.Table:
        old = [
            living(self._piece(refs[name]).read(), self.declaration.expires, now) for name in piece.sources
        ]
        if not piece.has_new_rows and len(old) == 1:
            return old[0]  # in order already
        new = [fresh] if piece.has_new_rows and fresh is not None else []
        return clustered(pa.concat_tables([*old, *new]), self.declaration)

    def _write(self, number: int, rows: pa.Table) -> ChunkRef:
        commit, owner = self._log.last.number + 1, self._log.owner.epoch
        name = names.new_chunk_name(commit, owner, number, suffix="parquet")
        return write_piece(self._log.store, name, rows, self.declaration)

    def _finish(self, chunks: Mapping[int, tuple[ChunkRef, ...]], state: StreamState) -> None:
        named = {number: refs for number, refs in chunks.items() if refs}
        self._log.commit(self._log.last.successor(chunks=named, streams={STREAM: state}))
        files = self._log.last.files
        # a copy first: others may be reading, and open pieces meanwhile
        self._open = {name: piece for name, piece in list(self._open.items()) if name in files}
        history.sweep(self._log, self._keep_commits)

    def _snapshot(self) -> Snapshot:
        return Snapshot(self._log.store, self._log.last, self._piece)

    def _piece(self, ref: ChunkRef) -> Piece:
        piece = self._open.get(ref.name)
        if piece is None:
            piece = self._open[ref.name] = Piece(self._log.store, ref, self.declaration.key)
        return piece


#: rows that are in memory at once while an archive is cut anew; a sub-index gets a piece of each such part
_AT_ONCE = 4_000_000


def _batches(refs: Sequence[ChunkRef]) -> Iterator[list[ChunkRef]]:
    """Pieces, in parts of so many rows."""
    some: list[ChunkRef] = []
    for ref in refs:
        if some and sum(each.rows for each in some) + ref.rows > _AT_ONCE:
            yield some
            some = []
        some.append(ref)
    if some:
        yield some


def _by_place(table: pa.Table, told: Declaration, place: Callable[[int], int]) -> dict[int, pa.Table]:
    """The rows of each sub-index, in the order of a piece; `place` is asked once per period of expiry."""
    if not table.num_rows:
        return {}
    periods = -(-instants(table[told.expires]) // told.period)
    distinct, which = np.unique(periods, return_inverse=True)
    places = np.array([place(int(period)) for period in distinct])[which]
    return {
        int(number): clustered(table.filter(pa.array(places == number)), told) for number in np.unique(places)
    }
