"""Everything that has happened: the accepted rows of each stream, the changes of each table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from windrow.windows.domain import INFINITY, Instant

Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class AcceptedRow:
    """An accepted row. `clock` is what the clock was when a late row was kept."""

    values: Values
    row_num: int
    arrival_ts: int = 0
    clock: Instant = -INFINITY
    #: the attributes of ALSO on which it came too late
    late_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableChange:
    """Rows that a table gains and loses at an instant."""

    at: Instant
    insert: tuple[Values, ...] = ()
    delete: tuple[Values, ...] = ()


@dataclass(frozen=True)
class World:
    """What an evaluation from scratch starts from."""

    streams: dict[str, tuple[AcceptedRow, ...]] = field(default_factory=dict)
    tables: dict[str, tuple[TableChange, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fact:
    """A row of a relation: its values, the greatest windowing attribute of the rows it is made of, where the
    window counts arrivals, its turn, and where the window is cut into sub-windows, which one it is in."""

    values: Values
    ts: Instant
    turn: int = 0
    sub_window: int | None = None
