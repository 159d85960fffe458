"""What a table accepts: changes at instants. A table nobody punctuates is taken to be complete."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.algebra.catalog import Table, TableKind
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError
from windrow.reference.world import TableChange, Values
from windrow.windows.domain import INFINITY, Instant, check_instant

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class TableIntake:
    """One table's history."""

    table: Table
    changes: list[TableChange] = field(default_factory=list)
    progress: Instant = INFINITY

    def __post_init__(self) -> None:
        self._rows: Counter[Values] = Counter()
        self._keys_used: set[Values] = set()

    def punctuate(self, progress: Instant, clock: Instant) -> None:
        """From now on the table holds the clock back to what it promises."""
        if self.progress == INFINITY and progress < clock:
            raise DataError(
                f"table `{self.table.name}` cannot hold the clock at {progress}: it is at {clock} already",
                code="late-punctuation",
                hint="punctuate a table before its streams move on",
            )
        self.progress = progress if self.progress == INFINITY else max(self.progress, progress)

    def update(self, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]) -> None:
        """Rows leave, then rows come."""
        check_instant(at, f"a change of table `{self.table.name}`")
        last = self.changes[-1].at if self.changes else -INFINITY
        promised = self.progress if self.progress != INFINITY else last
        if at < max(last, promised):
            raise DataError(
                f"table `{self.table.name}` cannot change at {at}: it is known up to {max(last, promised)}",
                code="late-update",
                hint="changes of a table come in order, and not below what it was punctuated with",
            )
        where = f"table `{self.table.name}`"
        gone = tuple(canonical_rows(self.table.schema, delete, where))
        new = tuple(canonical_rows(self.table.schema, insert, where))
        self._delete(gone)
        self._insert(new)
        self.changes.append(TableChange(at, new, gone))

    def _delete(self, rows: Sequence[Values]) -> None:
        missing = Counter(rows) - self._rows
        if missing:
            raise DataError(
                f"table `{self.table.name}` has no row {next(iter(missing))!r} to delete", code="no-such-row"
            )
        self._rows -= Counter(rows)

    def _insert(self, rows: Sequence[Values]) -> None:
        places = [self.table.schema.index(name) for name in self.table.key]
        present = {tuple(row[place] for place in places) for row in self._rows} if places else set()
        for row in rows:
            key = tuple(row[place] for place in places)
            reused = self.table.kind is TableKind.NRR and key in self._keys_used
            if places and (key in present or reused):
                raise DataError(
                    f"table `{self.table.name}` has, or had, a row with key {key!r}",
                    code="key-reused",
                    hint="keys of an NRR table are not used again: old results would seem to mean it",
                )
            present.add(key)
            self._keys_used.add(key)
        self._rows += Counter(rows)
