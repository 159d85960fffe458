"""What a table holds: its rows, and the keys they have or had.

A change is checked before it is applied, so that one that is refused leaves nothing behind; both cost what
the change has, whatever the table has.

>>> from windrow.algebra.catalog import Table, TableKind
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> contents = Contents(Table("t", Schema((Field("k", BIGINT),)), TableKind.RELATION, ("k",)))
>>> contents.apply([], [(1,), (2,)])
>>> contents.difference([(2,), (3,)])
([(1,)], [(3,)])
>>> contents.check([], [(2,)])
Traceback (most recent call last):
windrow.errors.DataError: table `t` has a row with key (2,) already (delete the old row in the same update)
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from windrow.algebra.catalog import Table, TableKind
from windrow.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Values: TypeAlias = tuple[Any, ...]


class Contents:
    """The rows of a table, each as often as it is there."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: Counter[Values] = Counter()
        self._places = [table.schema.index(name) for name in table.key]
        self._present: set[Values] = set()
        #: keys that no row of an NRR table may have any more
        self.retired: set[Values] = set()

    def check(self, gone: Sequence[Values], new: Sequence[Values]) -> None:
        """Refuse to delete what is not there, and to insert a key that is, or in an NRR table ever was."""
        for row, count in Counter(gone).items():
            if self.rows[row] < count:
                raise DataError(
                    f"table `{self.table.name}` has no row {row!r} to delete",
                    code="no-such-row",
                    hint="give the whole row, as it was inserted",
                )
        if self._places:
            self._check_keys({self._key(row) for row in gone}, [self._key(row) for row in new])

    def _check_keys(self, freed: set[Values], keys: Sequence[Values]) -> None:
        never = self.table.kind is TableKind.NRR
        seen: set[Values] = set()
        for key in keys:
            if key in seen or (key in self._present and (never or key not in freed)) or key in self.retired:
                raise self._taken(key, never=never)
            seen.add(key)

    def _taken(self, key: Values, *, never: bool) -> DataError:
        has = "has, or had, a row with key" if never else "has a row with key"
        hint = "delete the old row in the same update"
        if never:
            hint = (
                "keys of an NRR table are not used again: old results would seem to mean it;"
                " declare it without KEY, or as a RELATION"
            )
        already = "" if never else " already"
        return DataError(f"table `{self.table.name}` {has} {key!r}{already}", code="key-reused", hint=hint)

    def apply(self, gone: Iterable[Values], new: Iterable[Values]) -> None:
        """Rows leave, then rows come."""
        for row in gone:
            self.rows[row] -= 1
            if not self.rows[row]:
                del self.rows[row]
            if self._places:
                self._leave(self._key(row))
        for row in new:
            self.rows[row] += 1
            if self._places:
                self._present.add(self._key(row))

    def _leave(self, key: Values) -> None:
        self._present.discard(key)
        if self.table.kind is TableKind.NRR:
            self.retired.add(key)

    def difference(self, rows: Iterable[Values]) -> tuple[list[Values], list[Values]]:
        """What has to leave and to come for these to be the rows of the table."""
        wanted = Counter(rows)
        gone = [row for row, n in self.rows.items() for _ in range(n - wanted[row])]
        new = [row for row, n in wanted.items() for _ in range(n - self.rows[row])]
        return gone, new

    def _key(self, row: Values) -> Values:
        return tuple(row[place] for place in self._places)
