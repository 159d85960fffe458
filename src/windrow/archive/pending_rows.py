"""One state of an archive together with rows that are on their way to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.archive.piece import instants, living
from windrow.archive.search import Wanted

if TYPE_CHECKING:
    from windrow.archive.snapshot import Snapshot


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
        wanted = Wanted.between(told.key, low, high, schema.field(told.key).type)
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
