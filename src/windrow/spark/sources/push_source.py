"""`push:`: rows that a program gives, acknowledged when a commit holds them.

Rows wait in memory until an epoch takes them; nobody is told that they are safe before they are. A push may
have a key: the same key twice is one push, in all lives of a state directory, since commits remember the
hashes of keys. More than a little waiting is refused: whoever pushes is told to wait instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.algebra.catalog import Stream
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, StateError
from windrow.kernels.columnar.columns import frame_from_arrow, frame_of, published, rows_schema
from windrow.kernels.intake import Intake, off_grid
from windrow.spark.sources.source import Begun, Offsets, Position, Source, keys_schema
from windrow.spark.sources.tables import as_table
from windrow.spark.sources.urls import SourceUrl, count, read_options

ROW = "__row"
#: what waits at most, and what an epoch takes at most, unless it is told
_WAITING, _PER_BATCH = 1_000_000, 500_000
_OPTIONS = {"rows_per_batch": count, "rows_waiting": count}


@dataclass(eq=False)
class Push:
    """Some rows that wait for a commit; `committed` becomes its number. Without a key it is no other."""

    rows: pa.Table
    key: bytes | None
    committed: Future[int] = field(default_factory=Future)


class PushSource(Source):
    """Rows given by a program, in the order they were given. A position counts them."""

    order_key = (ROW,)
    wakes = True

    def __init__(self, stream: Stream, *, most_waiting: int = _WAITING, per_batch: int = _PER_BATCH) -> None:
        self._stream, self._most, self._per_batch = stream, most_waiting, per_batch
        self._schema = rows_schema(stream.schema)
        self.fingerprint = "push:"
        self._lock = Lock()
        self._waiting: list[Push] = []
        #: the commit of each key that is known, or 0 if it was in an earlier life
        self._known: dict[bytes, int] = {}
        self._wake = _nothing

    def describe(self) -> str:
        return "push: rows given by programs"

    def begin(self, begun: Begun) -> None:
        with self._lock:
            stored = [] if begun.keys is None else begun.keys["key"].to_pylist()
            self._known = {**dict.fromkeys(stored, 0), **self._known}
            self._wake = begun.wake

    def end(self) -> None:
        self._wake = _nothing

    def give(self, rows: Any, key: str | None = None) -> Push:
        """Let rows wait for the next epoch. One whose key is known is done already."""
        table = self._table(rows)
        if self._stream.domain.resolution is not None:
            _, stray = Intake(self._stream).sound(frame_from_arrow(table, self._stream.schema))
            if stray.height:
                raise off_grid(self._stream, stray[self._stream.wattr][0])
        push = Push(table, None if key is None else blake2b(key.encode(), digest_size=16).digest())
        with self._lock:
            if push.key is not None:
                if push.key in self._known:
                    push.committed.set_result(self._known[push.key])
                    return push
                same = next((each for each in self._waiting if each.key == push.key), None)
                if same is not None:
                    return same
            waiting = sum(each.rows.num_rows for each in self._waiting)
            if self._waiting and waiting + table.num_rows > self._most:
                raise StateError(
                    f"{waiting:,} rows of stream `{self._stream.name}` wait to be taken, and no more may",
                    code="busy",
                    hint="push them again a little later, or declare FROM 'push:?rows_waiting=…'",
                )
            self._waiting.append(push)
        self._wake()
        return push

    def withdraw(self, push: Push) -> None:
        """Whoever has pushed rows does not wait any longer: if no epoch has taken them, none will."""
        with self._lock:
            if push in self._waiting and not push.committed.running():
                self._waiting.remove(push)
                push.committed.cancel()

    def latest(self) -> tuple[Push, ...]:
        with self._lock:
            return tuple(self._waiting)

    def upto(self, start: Position, latest: Sequence[Push]) -> Offsets | None:
        taken: list[Push] = []
        rows = 0
        with self._lock:
            self._let_go_of_known()
            for push in (each for each in latest if each in self._waiting):
                if taken and rows + push.rows.num_rows > self._per_batch:
                    break
                rows += push.rows.num_rows
                taken.append(push)
            left = sum(each.rows.num_rows for each in self._waiting) - rows
        if not taken:
            return None
        return Offsets({"row": int(start.get("row", 0)) + rows}, tuple(taken), left, has_more=left > 0)

    def _let_go_of_known(self) -> None:
        """Pushes that waited before it was known that an earlier life had them are done."""
        for push in list(self._waiting):
            if push.key is not None and push.key in self._known:
                self._waiting.remove(push)
                push.committed.set_result(self._known[push.key])

    def frame(self, start: Position, end: Offsets) -> pa.Table:
        table = pa.concat_tables([push.rows for push in end.items])
        first = int(start.get("row", 0))
        return table.append_column(ROW, pa.array(np.arange(first, first + table.num_rows)))

    def rest(self, start: Position, end: Offsets) -> Offsets | None:
        with self._lock:
            left = tuple(push for push in end.items if push in self._waiting)
        rows = sum(push.rows.num_rows for push in left)
        return (
            Offsets({"row": int(start.get("row", 0)) + rows}, left, has_more=end.has_more) if left else None
        )

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        taken = end.items[: len(end.items) // 2]
        rows = sum(push.rows.num_rows for push in taken)
        return Offsets({"row": int(start.get("row", 0)) + rows}, taken, has_more=True) if taken else None

    def piece(self, start: Position, end: Offsets) -> str:
        return f"a push of {end.at['row'] - int(start.get('row', 0)):,} rows"

    def keys(self, end: Offsets) -> pa.Table | None:
        keys = [push.key for push in end.items if push.key is not None]
        none = pa.array([0] * len(keys), pa.int64())
        return pa.table([pa.array(keys, pa.binary(16)), none, none, none], schema=keys_schema())

    def committed(self, end: Offsets, commit: int) -> None:
        with self._lock:
            self._known |= {push.key: commit for push in end.items if push.key is not None}
            self._waiting = [push for push in self._waiting if push not in end.items]
        for push in end.items:
            if not push.committed.cancelled():
                push.committed.set_result(commit)

    def _table(self, rows: Any) -> pa.Table:
        """Rows as they were given, of the declared types; what does not fit is refused before it waits."""
        if isinstance(rows, list | tuple):
            return self._given(rows)
        given = as_table(rows)
        names = {name.lower(): name for name in given.column_names}
        strange = next(
            (n for n in given.column_names if n.lower() not in map(str.lower, self._schema.names)), None
        )
        absent = next((n for n in self._schema.names if n.lower() not in names), None)
        if strange is not None or absent is not None:
            raise _misfit(
                self._stream, f"has no column `{strange}`" if strange else f"needs a column `{absent}`"
            )
        try:
            columns = [given[names[each.name.lower()]].cast(each.type) for each in self._schema]
        except pa.ArrowException as error:
            raise _misfit(self._stream, str(error).partition("\n")[0]) from None
        return pa.table(columns, schema=self._schema)

    def _given(self, rows: Sequence[Any]) -> pa.Table:
        names = self._stream.schema.names
        values = [tuple(_by_name(self._stream, row, names)) if isinstance(row, dict) else row for row in rows]
        known = canonical_rows(self._stream.schema, values, self._stream.title)
        return published(frame_of(self._stream.schema, known).to_arrow(), self._schema)


def _by_name(stream: Stream, row: dict[str, Any], names: Sequence[str]) -> list[Any]:
    given = {name.lower(): value for name, value in row.items()}
    known = {name.lower() for name in names}
    strange = next((name for name in row if name.lower() not in known), None)
    if strange is not None:
        raise _misfit(stream, f"has no column `{strange}`")
    return [given.get(name.lower()) for name in names]


def _misfit(stream: Stream, what: str) -> DataError:
    columns = ", ".join(f"{field.name} {field.type}" for field in stream.schema)
    return DataError(
        f"stream `{stream.name}` {what}", code="malformed-row", hint=f"its columns are {columns}"
    )


def _nothing() -> None:
    """Nobody waits for rows."""


def read_push_url(url: SourceUrl) -> dict[str, int]:
    """The options of `push:`, checked."""
    return read_options(url.options, _OPTIONS, "push:")


def open_push(_: Any, stream: Stream, url: SourceUrl) -> PushSource:
    """A stream that programs push rows to."""
    options = read_push_url(url)
    how = {"most_waiting": options.get("rows_waiting"), "per_batch": options.get("rows_per_batch")}
    return PushSource(stream, **{name: value for name, value in how.items() if value is not None})
