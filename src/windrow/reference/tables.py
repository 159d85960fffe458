"""What a table accepts: changes at instants. A table nobody punctuates is taken to be complete."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.algebra.catalog import Table, TableKind
from windrow.algebra.values import canonical_row
from windrow.errors import DataError
from windrow.reference.world import TableChange, Values
from windrow.windows.domain import INFINITY, Instant

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

    def punctuate(self, progress: Instant) -> None:
        """From now on the table holds the clock back to what it promises."""
        self.progress = progress if self.progress == INFINITY else max(self.progress, progress)

    def update(self, at: int, insert: Sequence[Values], delete: Sequence[Values]) -> None:
        """Rows leave, then rows come."""
        if self.changes and at < self.changes[-1].at:
            raise DataError(
                f"table `{self.table.name}` changes in order: {at} comes after {self.changes[-1].at}",
                code="late-update",
            )
        where = f"table `{self.table.name}`"
        gone = tuple(canonical_row(self.table.schema, tuple(row), where) for row in delete)
        new = tuple(canonical_row(self.table.schema, tuple(row), where) for row in insert)
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
