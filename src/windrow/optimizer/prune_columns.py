"""Carry only the columns that are read further up: narrow rows before windows and joins keep them.

Dropping columns commutes with every window, also with those that count rows, because equal instants are
counted in the order of the rows as declared (paper 001, section 5). Some operators read more than they
name: DISTINCT, EXCEPT and LIMIT compare whole rows, FIRST and LAST settle ties by all columns, and a
window reads its PARTITION BY columns and its LIFETIME.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Field
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.rows import RowsWindow
>>> s = Scan(Stream("s", Schema(tuple(Field(name, BIGINT) for name in ("a", "b", "ts"))), "ts"), "s")
>>> b = s.schema.column("s.b")
>>> pruned = prune_columns(Emit(ops.Project(Window(s, RowsWindow(3, partition_by=("a",))), (("b", b),))))
>>> pruned.leaves[0].schema.names
('s.a', 's.b')
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatchmethod

from windrow.algebra import Expression, Schema, operators as ops
from windrow.algebra.aggregates import lookup
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.optimizer.trees import as_query, kept
from windrow.windows.lifetime import LifetimeWindow

Names = frozenset[str]


def prune_columns(plan: Plan) -> Plan:
    """The query with columns dropped as early as possible; nested queries included."""
    emit = as_query(plan)
    return replace(emit, input=_Pruning(emit).exactly(emit.input, emit.schema.names))


class _Pruning:
    """Columns on their way down one query."""

    def __init__(self, emit: Emit) -> None:
        # A value that changes is a result of its own to them, so a value nobody reads is still told apart.
        self.sees_values_change = emit.is_internal or emit.word.restores

    def exactly(self, plan: Plan, names: Iterable[str]) -> Plan:
        """The plan with these columns only."""
        wanted = tuple(names)
        return kept(self.at_least(plan, frozenset(wanted)), wanted)

    def _needed(self, plan: Plan, needed: Names) -> Plan:
        """The plan with these columns only, in its own order; at least one, to keep rows countable."""
        names = tuple(name for name in plan.schema.names if name in needed) or plan.schema.names[:1]
        return self.exactly(plan, names)

    @singledispatchmethod
    def at_least(self, plan: Plan, needed: Names) -> Plan:
        """The plan, with columns dropped that are not needed, as far as that is possible inside it."""
        whole = tuple(self.exactly(child, child.schema.names) for child in plan.children)
        return plan.with_children(whole) if whole else plan

    @at_least.register
    def _(self, plan: ops.Filter, needed: Names) -> Plan:
        return replace(plan, input=self.at_least(plan.input, needed | plan.predicate.columns))

    @at_least.register
    def _(self, plan: ops.Project, needed: Names) -> Plan:
        outputs = tuple(output for output in plan.outputs if output[0] in needed) or plan.outputs[:1]
        return ops.Project(self.at_least(plan.input, _columns(value for _, value in outputs)), outputs)

    @at_least.register
    def _(self, plan: ops.Unnest, needed: Names) -> Plan:
        return replace(plan, input=self._needed(plan.input, needed | plan.array.columns))

    @at_least.register
    def _(self, plan: ops.Union, needed: Names) -> Plan:
        places = [place for place, name in enumerate(plan.schema.names) if name in needed] or [0]
        return ops.Union(tuple(self.exactly(part, _at(part.schema, places)) for part in plan.inputs))

    @at_least.register
    def _(self, plan: ops.Join, needed: Names) -> Plan:
        read = needed | plan.predicate.columns
        return replace(plan, inputs=tuple(self._needed(part, read) for part in plan.inputs))

    @at_least.register
    def _(self, plan: ops.TableJoin, needed: Names) -> Plan:
        return replace(plan, input=self._needed(plan.input, needed | plan.predicate.columns))

    @at_least.register
    def _(self, plan: ops.Exists, needed: Names) -> Plan:
        left = self._needed(plan.left, needed | plan.predicate.columns)
        return replace(plan, left=left, right=self._needed(plan.right, plan.predicate.columns))

    @at_least.register
    def _(self, plan: ops.Aggregate, needed: Names) -> Plan:
        calls = plan.aggregates
        if not self.sees_values_change:
            calls = tuple(call for call in calls if call[0] in needed)
            calls = calls if calls or plan.keys else plan.aggregates[:1]
        if any(lookup(call.function).ordered for _, call in calls):
            below = self.exactly(plan.input, plan.input.schema.names)
        else:
            below = self.at_least(plan.input, _read(plan, calls))
        return replace(plan, input=below, aggregates=calls)

    @at_least.register
    def _(self, plan: Window, needed: Names) -> Plan:
        alias = plan.origins[0].alias
        read = needed | {f"{alias}.{name}" for name in getattr(plan.spec, "partition_by", ())}
        if isinstance(plan.spec, LifetimeWindow):
            read |= plan.spec.expression.columns
        if isinstance(plan.input, Subquery) and plan.spec.is_logical:
            return replace(plan, input=_narrowed(plan.input, read))
        return replace(plan, input=self._needed(plan.input, read))

    @at_least.register
    def _(self, plan: Subquery, needed: Names) -> Plan:
        return replace(plan, query=as_query(prune_columns(plan.query)))

    @at_least.register
    def _(self, plan: Scan, needed: Names) -> Plan:
        pseudo = tuple(name for name in plan.pseudo if f"{plan.alias}.{name}" in needed)
        return replace(plan, pseudo=pseudo)


def _narrowed(subquery: Subquery, needed: Names) -> Plan:
    """Columns dropped inside a nested query, if which rows it reports does not depend on them."""
    query = as_query(prune_columns(subquery.query))
    places = [place for place, name in enumerate(subquery.schema.names) if name in needed] or [0]
    wanted = _at(query.schema, places)
    if not (query.meaning is StreamWord.RSTREAM and query.reports_extents):
        return kept(replace(subquery, query=query), _at(subquery.schema, places))
    return replace(subquery, query=replace(query, input=_Pruning(query).exactly(query.input, wanted)))


def _at(schema: Schema, places: Iterable[int]) -> tuple[str, ...]:
    return tuple(schema.names[place] for place in places)


def _columns(expressions: Iterable[Expression]) -> Names:
    return frozenset(name for expression in expressions for name in expression.columns)


def _read(plan: ops.Aggregate, calls: Iterable[tuple[str, ops.AggregateCall]]) -> Names:
    read = [key for _, key in plan.keys]
    for _, call in calls:
        read += [*call.args, call.where]
    return _columns(read)
