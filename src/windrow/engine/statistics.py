"""What was seen of streams while they ran: the statistics that plans are chosen by, kept with the commits.

Rates follow from how many rows came while a stream's attribute moved on. Distinct values are counted in the
rows that joins and negations hold, when a query is planned anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.algebra.plan import Scan
from windrow.algebra.types import Kind
from windrow.execution.relational import states_of
from windrow.kernels.relational.state_transfer import held_rows
from windrow.optimizer.cost.statistics import Statistics
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.state.shard import Shard

if TYPE_CHECKING:
    from windrow.engine.records import QueryRecord, StreamRecord
    from windrow.state.manifest import Manifest
    from windrow.state.store import Store

#: nothing is concluded from fewer rows; after so many, the rate is that of the rows since
FEWEST_ROWS, MOST_ROWS = 100, 1_000_000
#: of each window, so many rows of a shard are looked at
LOOKED_AT = 100_000
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Observed:
    """Rows per unit of time of each stream, distinct values of columns, and where counting began."""

    rates: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, float] = field(default_factory=dict)
    #: of each stream, the greatest value of its attribute and how many rows there were at that time
    marks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, decisions: Mapping[str, Any]) -> Observed:
        """What the last commit knew."""
        stored = decisions.get("statistics", {})
        marks = {name: (at, rows) for name, (at, rows) in stored.get("marks", {}).items()}
        return cls(stored.get("rates", {}), stored.get("distinct", {}), marks)

    @property
    def decisions(self) -> dict[str, Any]:
        """For the manifest."""
        if not self.marks:
            return {}
        marks = {name: list(mark) for name, mark in self.marks.items()}
        return {"statistics": {"rates": dict(self.rates), "distinct": dict(self.distinct), "marks": marks}}

    def after(self, streams: Mapping[str, StreamRecord]) -> Observed:
        """The same after an epoch; of streams that are gone nothing is known."""
        rates, marks = dict(self.rates), dict(self.marks)
        for name, record in streams.items():
            if record.greatest is None:
                continue
            at, rows = marks.setdefault(name, (record.greatest, record.known.accepted))
            came, passed = record.known.accepted - rows, record.greatest - at
            if came >= FEWEST_ROWS and passed > 0:
                rates[name] = came / _units(record, passed)
            if came >= MOST_ROWS:
                marks[name] = record.greatest, record.known.accepted
        known = {name: rate for name, rate in rates.items() if name in streams}
        return replace(
            self, rates=known, marks={name: mark for name, mark in marks.items() if name in streams}
        )

    def looking_at(self, store: Store, last: Manifest, record: QueryRecord) -> Observed:
        """The same, with the distinct values among the rows that a query holds."""
        unit = record.bundle.unit
        if not isinstance(unit, GeneralUnit) or isinstance(unit, UnionUnit):
            return self
        seen: dict[str, list[pl.Series]] = {}
        for shard in (Shard(store, files) for number, files in last.chunks.items() if number >= 0):
            for node, rows in held_rows(unit.program, states_of(record.bundle, shard)):
                streams = {s.alias: s.stream.name for s in node.walk() if isinstance(s, Scan)}
                for column in rows.columns:
                    alias, dot, name = column.partition(".")
                    if dot and alias in streams:
                        seen.setdefault(f"{streams[alias]}.{name}", []).append(rows[column].head(LOOKED_AT))
        found = {name: float(pl.concat(parts).n_unique()) for name, parts in seen.items() if parts}
        return replace(self, distinct={**self.distinct, **found})

    def statistics(self, tables: Mapping[str, int]) -> Statistics:
        """For the planner."""
        return Statistics(
            rates=dict(self.rates),
            distinct=dict(self.distinct),
            table_rows={name: float(rows) for name, rows in tables.items()},
        )


def _units(record: StreamRecord, ticks: int) -> float:
    """A span of a stream's attribute in units of time: seconds, or its own."""
    is_time = record.stream.schema.column(record.stream.wattr).type.kind is Kind.TIMESTAMP
    return ticks / _MICROSECONDS if is_time else float(ticks)
