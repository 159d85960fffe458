"""`push:`: rows that a program gives, acknowledged when a commit holds them.

Rows wait in memory until an epoch takes them; nobody is told that they are safe before they are. A push may
have a key: the same key twice is one push, in all lives of a state directory, since commits remember the
hashes of keys. More than a little waiting is refused: whoever pushes is told to wait instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.algebra.catalog import Stream
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, StateError, first_line
from windrow.kernels.columnar.columns import frame_from_arrow, frame_of, published, rows_schema
from windrow.kernels.intake import Intake, off_grid
from windrow.spark.sources import tables, urls
from windrow.spark.sources.source import Begun, Offsets, Position, Source, keys_schema, portion

ROW = "__row"


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

    def __init__(self, stream: Stream, wanted: urls.PushUrl) -> None:
        self._stream, self._wanted = stream, wanted
        self._schema = rows_schema(stream.schema)
        self._columns = set(map(str.lower, self._schema.names))
        self.fingerprint = "push:"
        self._lock = Lock()
        self._waiting: list[Push] = []
        #: the commit of each key that is known, or 0 if it was in an earlier life
        self._known: dict[bytes, int] = {}
        self._wake: Callable[[], None] = lambda: None

    def describe(self) -> str:
        return "push: rows given by programs"

    def begin(self, begun: Begun) -> None:
        with self._lock:
            stored = [] if begun.keys is None else begun.keys["key"].to_pylist()
            self._known = {**dict.fromkeys(stored, 0), **self._known}
            self._wake = begun.wake

    def end(self) -> None:
        self._wake = lambda: None

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
            if self._waiting and waiting + table.num_rows > self._wanted.rows_waiting:
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
            if push in self._waiting:
                self._waiting.remove(push)
                push.committed.cancel()

    def latest(self) -> tuple[Push, ...]:
        with self._lock:
            return tuple(self._waiting)

    def upto(self, start: Position, latest: Sequence[Push]) -> Offsets | None:
        with self._lock:
            self._let_go_of_known()
            waiting = [push for push in latest if push in self._waiting]
            taken = portion(waiting, lambda push: push.rows.num_rows, self._wanted.rows_per_batch)
            left = sum(push.rows.num_rows for push in self._waiting) - sum(
                push.rows.num_rows for push in taken
            )
        return _upto(start, taken, backlog=left, has_more=left > 0)

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
        return _upto(start, left, has_more=end.has_more)

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        return _upto(start, end.items[: len(end.items) // 2], has_more=True)

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
            values = [self._in_order(row) if isinstance(row, dict) else row for row in rows]
            known = canonical_rows(self._stream.schema, values, self._stream.title)
            return published(frame_of(self._stream.schema, known).to_arrow(), self._schema)
        given = tables.as_table(rows)
        names = self._by_column(given.column_names)
        absent = next((n for n in self._schema.names if n.lower() not in names), None)
        if absent is not None:
            raise self._misfit(f"needs a column `{absent}`")
        try:
            columns = [given[names[each.name.lower()]].cast(each.type) for each in self._schema]
        except pa.ArrowException as error:
            raise self._misfit(first_line(error)) from None
        return pa.table(columns, schema=self._schema)

    def _in_order(self, row: dict[str, Any]) -> tuple[Any, ...]:
        names = self._by_column(row)
        return tuple(row.get(names.get(name.lower(), "")) for name in self._schema.names)

    def _by_column(self, given: Collection[str]) -> dict[str, str]:
        """Names as they are given, by those of columns in lower case; one that is no column's is refused."""
        strange = next((name for name in given if name.lower() not in self._columns), None)
        if strange is not None:
            raise self._misfit(f"has no column `{strange}`")
        return {name.lower(): name for name in given}

    def _misfit(self, what: str) -> DataError:
        columns = ", ".join(f"{field.name} {field.type}" for field in self._stream.schema)
        return DataError(
            f"stream `{self._stream.name}` {what}", code="malformed-row", hint=f"its columns are {columns}"
        )


def _upto(start: Position, taken: Sequence[Push], **how: Any) -> Offsets | None:
    """The end of some pushes; None if there are none."""
    rows = sum(push.rows.num_rows for push in taken)
    return Offsets({"row": int(start.get("row", 0)) + rows}, tuple(taken), **how) if taken else None
