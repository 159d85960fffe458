"""Everything that has happened: the accepted rows of each stream, the changes of each table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from windrow.windows.domain import INFINITY, Instant

Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Arrival:
    """An accepted row. A late row that is kept may not be seen before `not_before`."""

    values: Values
    row_num: int
    arrival_ts: int = 0
    not_before: Instant = -INFINITY


@dataclass(frozen=True)
class TableChange:
    """Rows that a table gains and loses at an instant."""

    at: Instant
    insert: tuple[Values, ...] = ()
    delete: tuple[Values, ...] = ()


@dataclass(frozen=True)
class World:
    """What an evaluation from scratch starts from."""

    streams: dict[str, tuple[Arrival, ...]] = field(default_factory=dict)
    tables: dict[str, tuple[TableChange, ...]] = field(default_factory=dict)

    def restricted(self, stream: str, column: int, value: Any) -> World:
        """The world in which `stream` only ever had rows with this value in this column."""
        rows = tuple(row for row in self.streams.get(stream, ()) if row.values[column] == value)
        return World({**self.streams, stream: rows}, self.tables)


@dataclass(frozen=True)
class Fact:
    """A row of a relation: its values, and the greatest windowing attribute of the rows it is made of."""

    values: Values
    ts: Instant
