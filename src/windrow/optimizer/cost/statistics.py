"""What is known, or assumed, about streams and tables: the input of every cost.

Rates are per unit of time: `ticks` microseconds for windows over time (a second, unless said otherwise),
one tick for windows over numbers. What was not observed is a default; costs compare plans, they do not
predict seconds.

>>> bids = Statistics(rates={"bids": 50}, distinct={"bids.item": 1000})
>>> bids.rate("bids"), bids.rate("asks"), bids.values("bids.item")
(50, 1.0, 1000)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import Expression
from windrow.windows.domain import Domain


class Model(Enum):
    """How operators are taken to work, which decides what they cost."""

    #: as the kernels do: partners are found by hash tables, each row goes into the state of its pane once
    KERNELS = "kernels"
    #: as the papers have it: joins by nested loops, each extent by itself from its rows or the extent before
    PAPERS = "papers"


@dataclass(frozen=True)
class Statistics:
    """Numbers by name: of streams and tables, or `name.column`."""

    #: rows that arrive per unit of time, by stream
    rates: Mapping[str, float] = field(default_factory=dict)
    #: distinct values, by `stream.column` or `table.column`
    distinct: Mapping[str, float] = field(default_factory=dict)
    #: shares of rows that pass, by condition, where they were observed
    selectivities: Mapping[Expression, float] = field(default_factory=dict)
    #: rows, and changes per unit of time, by table
    table_rows: Mapping[str, float] = field(default_factory=dict)
    table_changes: Mapping[str, float] = field(default_factory=dict)
    #: how operators are taken to work
    model: Model = Model.KERNELS
    #: microseconds in a unit of time
    ticks: int = 1_000_000
    #: for how long a state that only grows is looked at, and how long rows with LIFETIME live, in units
    horizon: float = 86_400.0
    lifetime: float = 60.0
    default_rate: float = 1.0
    default_distinct: float = 100.0
    default_table_rows: float = 1000.0
    default_table_changes: float = 0.01

    def rate(self, stream: str) -> float:
        """Rows of a stream per unit of time."""
        return self.rates.get(stream, self.default_rate)

    def values(self, column: str) -> float:
        """Distinct values of a column; at least one."""
        return max(1.0, self.distinct.get(column, self.default_distinct))

    def table(self, name: str) -> tuple[float, float]:
        """The rows of a table, and its changes per unit of time."""
        return (
            self.table_rows.get(name, self.default_table_rows),
            self.table_changes.get(name, self.default_table_changes),
        )

    def with_declared(self, streams: Iterable[Stream]) -> Statistics:
        """The same, but for what the declarations of streams say."""
        told = {stream.name: stream.expected for stream in streams if stream.expected is not None}
        rates = {name: expected.rate for name, expected in told.items()}
        values = {f"{name}.{column}": n for name, each in told.items() for column, n in each.values}
        if not told:
            return self
        return replace(self, rates={**self.rates, **rates}, distinct={**self.distinct, **values})

    def units(self, ticks: float, domain: Domain) -> float:
        """A length in ticks as units of time.

        >>> Statistics().units(60_000_000, Domain.TIME), Statistics().units(60, Domain.NUMBER)
        (60.0, 60)
        """
        return ticks / self.ticks if domain is Domain.TIME else ticks
