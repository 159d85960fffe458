"""Outer joins: the pairs, and with NULL in place of a partner the rows that have none.

    L LEFT JOIN R ON p   =   L ⋈ R on p   ∪   L without a match on p, padded
    L FULL JOIN R ON p   =   that          ∪   R without a match on p, padded

At every instant this is the outer join of what the windows hold. Joins are taken in the order they are
written in: sources that are joined without padding make one n-way join, each outer join has all before it on
its left.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.checks import no_internal_windows
from windrow.algebra.expressions import Literal, conjunction, conjuncts
from windrow.algebra.functions.coercion import cast
from windrow.algebra.operators import Exists, Filter, Join, Project, TableJoin, Union
from windrow.algebra.types import NULL
from windrow.language.binder.expressions import Values, conditions
from windrow.language.binder.joins import Conditions
from windrow.language.binder.places import at, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.algebra.schema import Field
    from windrow.language.binder.scope import Scope
    from windrow.language.binder.sources import FromItem

_MIRRORED = {"LEFT": "RIGHT", "RIGHT": "LEFT", "FULL": "FULL"}


class OuterJoins:
    """The sources of a FROM with outer joins, on their way to one plan."""

    def __init__(self, items: list[FromItem], scope: Scope) -> None:
        self.scope = scope
        self.items = items
        self.foreign: list[Expression] = []

    def plan(self, where: list[Expression]) -> Plan:
        """All sources joined, and filtered by the conditions of WHERE."""
        own, above = self._split([part for predicate in where for part in conjuncts(predicate)])
        joined = self.items[:1]
        placed = list(own)
        for item in self.items[1:]:
            if item.node.join:
                with at(item.node):
                    left = self._inner(joined, placed)
                    joined, placed = [self._outer(left, item)], []
            else:
                joined.append(item)
            if not item.node.join:
                placed += self._on(item)
        plan = self._inner(joined, placed).plan
        return Filter(plan, conjunction(tuple(above))) if above else plan

    def _split(self, where: list[Expression]) -> tuple[list[Expression], list[Expression]]:
        """The conditions on rows that are kept anyhow, which may come before all joins, and the others."""
        first = next(place for place, item in enumerate(self.items) if item.node.join)
        kept = frozenset[str]().union(*(item.names for item in self.items[:first]))
        known = frozenset[str]().union(*(item.names for item in self.items))
        self.foreign = [part for part in where if part.columns - known]
        own = [part for part in where if part not in self.foreign]
        if any(item.node.join not in ("", "LEFT") for item in self.items):
            return [], own
        early = [part for part in own if part.columns and part.columns <= kept]
        return early, [part for part in own if part not in early]

    def _on(self, item: FromItem) -> list[Expression]:
        written = [part for each in item.node.on for part in conditions(each)]
        return [Values(self.scope, "ON").condition(part) for part in written]

    def _inner(self, items: list[FromItem], placed: list[Expression]) -> FromItem:
        """Sources joined without padding, as one."""
        if len(items) == 1 and not placed:
            return items[0]
        sorted_conditions = Conditions(items)
        for predicate in placed:
            sorted_conditions.add(predicate, on=False)
        if sorted_conditions.foreign:
            refuse(
                items[-1].node,
                "ON reads a query around this one",
                "grouped-correlation",
                "put the condition into WHERE",
            )
        return _together(items, sorted_conditions.plan())

    def _outer(self, left: FromItem, right: FromItem) -> FromItem:
        kind = right.node.join
        predicate = conjunction(tuple(part for each in self._on(right) for part in conjuncts(each)))
        if predicate.columns - left.names - right.names:
            refuse(
                right.node,
                "ON reads a source that is not joined yet",
                "unknown-column",
                "join it before, or put the condition into WHERE",
            )
        if left.table is not None:
            swapped = replace(right, node=replace(right.node, join=_MIRRORED[kind]))
            return _together([left, right], _with_table(swapped, left, _MIRRORED[kind], predicate))
        if right.table is not None:
            return _together([left, right], _with_table(left, right, kind, predicate))
        return _together([left, right], _of_streams(left.plan, right.plan, kind, predicate))


def _of_streams(left: Plan, right: Plan, kind: str, predicate: Expression) -> Plan:
    for side in (left, right):
        no_internal_windows(side, "an outer join")
    names = (*left.schema.names, *right.schema.names)
    parts = [_padded(Join((left, right), predicate), names)]
    if kind in ("LEFT", "FULL"):
        parts.append(_padded(Exists(left, right, predicate, negated=True), names, right.schema))
    if kind in ("RIGHT", "FULL"):
        parts.append(_padded(Exists(right, left, predicate, negated=True), names, left.schema))
    return Union(tuple(parts))


def _padded(plan: Plan, names: tuple[str, ...], missing: Iterable[Field] = ()) -> Project:
    """The columns in their order, NULL for those that are missing."""
    gone = {field.name: field.type for field in missing}
    outputs = [
        (name, cast(Literal(None, NULL), gone[name]) if name in gone else plan.schema.column(name))
        for name in names
    ]
    return Project(plan, tuple(outputs))


def _with_table(stream: FromItem, table: FromItem, kind: str, predicate: Expression) -> Plan:
    scan = table.table
    assert scan is not None
    if kind != "LEFT":
        refuse(
            table.node,
            f"the rows of table `{scan.table.name}` would be kept without a row of a stream beside them",
            "table-preserved",
            f"keep the rows of the stream: … LEFT JOIN {scan.table.name} ON …",
        )
    return TableJoin(stream.plan, scan, predicate, outer=True)


def _together(items: list[FromItem], plan: Plan) -> FromItem:
    """Several sources as one, under the names of each."""
    entries = tuple(entry for item in items for entry in item.entries)
    return replace(items[0], plan=plan, entries=entries)
