"""What is searched for: one key, or keys from one to another, both included.

Keys are compared as the column's own type has them, so a date may be given as a date and a time as a time. A
NULL is no key: it is never found, only scanned.

One state of an archive together with rows that are on their way to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.archive.piece import instants, living
from windrow.errors import DataError

if TYPE_CHECKING:
    from windrow.archive.snapshot import Snapshot


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
