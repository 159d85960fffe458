"""Where each condition goes once the sources are known.

Streams are joined first, in one n-way join, then the tables in the order of FROM: the NRR tables before
the RELATION ones, since an NRR table cannot stand above rows that expire unpredictably. A condition that
reads several sources belongs to the join that first has them all, a condition on one source of WHERE to
the filter above. Rules may push it down later. What can fail on some row (division by zero, overflow) is
tested after all that stands before it, which may be there to protect it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Call, conjunction, conjuncts
from windrow.algebra.operators import Filter, Join, TableJoin
from windrow.errors import QueryError
from windrow.language.binder.places import at
from windrow.optimizer.movability import can_ever_fail

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.binder.sources import FromItem


@dataclass
class Conditions:
    """The conditions of ON and WHERE, sorted by where they go; those on other queries are `foreign`."""

    items: list[FromItem]
    #: of the join of streams
    join: list[Expression] = field(default_factory=list)
    #: of the join with each table, by its alias
    tables: dict[str, list[Expression]] = field(default_factory=dict)
    filter: list[Expression] = field(default_factory=list)
    foreign: list[Expression] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.order = _tables_in_order(self.items)
        self.tables = {item.alias: [] for item in self.order}
        self.streams = [item for item in self.items if item.table is None]

    def add(self, predicate: Expression, on: bool) -> None:
        """Sort the parts of a condition of ON or of WHERE."""
        for part in conjuncts(predicate):
            place = self._place(part, on)
            (self._protected(place) if can_ever_fail(part) else place).append(part)

    def _protected(self, place: list[Expression]) -> list[Expression]:
        """Where a part that can fail goes at the earliest: what came before it goes along."""
        read = frozenset[str]().union(*(item.names for item in self.streams))
        stages = [(self.join, read)]
        for item in self.order:
            read |= item.names
            stages.append((self.tables[item.alias], read))
        first = next((number for number, (stage, _) in enumerate(stages) if stage is place), None)
        if first is None:
            return place
        for number in range(first, len(stages)):
            stage, read = stages[number]
            later = [*(parts for parts, _ in stages[number + 1 :]), self.filter]
            before = [part for parts in later for part in parts]
            if all(part.columns <= read and not part.reads_window_bounds for part in before):
                for parts in later:
                    parts.clear()
                stage += before
                return stage
        return self.filter

    def _place(self, part: Expression, on: bool) -> list[Expression]:
        if part.reads_window_bounds:
            return [] if _compares_one_bound(part) else self.filter
        read = [item for item in self.items if item.names & part.columns]
        if part.columns - frozenset().union(*(item.names for item in self.items)):
            return self.foreign
        if not on and len(read) < 2:
            return self.filter
        tables = [item for item in self.order if item in read]
        if tables:
            return self.tables[tables[-1].alias]
        if len(self.streams) > 1:
            return self.join
        return self.tables[self.order[0].alias] if self.order else self.filter

    def plan(self) -> Plan:
        """All sources joined and filtered."""
        plan = self._joined_streams()
        for item in self.order:
            assert item.table is not None
            with at(item.node):
                plan = TableJoin(plan, item.table, conjunction(tuple(self.tables[item.alias])))
        return Filter(plan, conjunction(tuple(self.filter))) if self.filter else plan

    def _joined_streams(self) -> Plan:
        plans = tuple(item.plan for item in self.streams)
        if not self.items:
            raise QueryError(
                "this query has no FROM", code="no-stream", hint="name a stream, as in FROM bids [NOW]"
            )
        if not plans:
            raise QueryError(
                "this query reads tables only: nothing would ever arrive",
                code="no-stream",
                hint="a query, also one in EXISTS, needs a stream in FROM; tables are joined to it",
            )
        return Join(plans, conjunction(tuple(self.join))) if len(plans) > 1 else plans[0]


def _compares_one_bound(part: Expression) -> bool:
    """`L.window_start = R.window_start` of windows that move together."""
    return isinstance(part, Call) and part.function in ("=", "<=>") and part.args[0] == part.args[1]


def _tables_in_order(items: list[FromItem]) -> list[FromItem]:
    tables = [item for item in items if item.table is not None]
    return sorted(tables, key=lambda item: item.is_relation_table)
