"""What rules have in common: expressions moved through nodes, nodes rebuilt, variants enumerated."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra import operators as ops
from windrow.algebra.expressions import ColumnRef, Expression, Schema, WindowBound, conjunction, conjuncts
from windrow.algebra.over import Over
from windrow.algebra.plan import Emit, Plan, Scan, Subquery, TableScan, Window
from windrow.errors import QueryError
from windrow.optimizer.movability import can_fail
from windrow.windows.lifetime import LifetimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


def substituted(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced by what they stand for; other columns stay."""
    return expression.rewrite(
        lambda node: values.get(node.name, node) if isinstance(node, ColumnRef) else node
    )


def renamed(expression: Expression, source: Schema, target: Schema) -> Expression:
    """The expression over the columns of `target` that stand where those of `source` stand."""
    names = zip(source.names, target.names, strict=True)
    return substituted(expression, {old: target.column(new) for old, new in names})


def filtered(plan: Plan, predicates: Iterable[Expression]) -> Plan:
    """σ, in one node with a σ right below where no new error can come of it.

    AND goes on to its right side where the left is NULL, so a predicate that can fail stays above.
    """
    parts = tuple(predicates)
    if not parts:
        return plan
    if isinstance(plan, ops.Filter) and not any(map(can_fail, parts)):
        known = conjuncts(plan.predicate)
        return ops.Filter(plan.input, conjunction(known + tuple(part for part in parts if part not in known)))
    return ops.Filter(plan, conjunction(tuple(dict.fromkeys(parts))))


def kept(plan: Plan, names: Iterable[str]) -> Plan:
    """π of some columns by name, in the order given; nothing is done if these are all."""
    wanted = tuple(names)
    if wanted == plan.schema.names:
        return plan
    return ops.Project(plan, tuple((name, plan.schema.column(name)) for name in wanted))


def peeled(plan: Plan) -> Plan:
    """What is below projections that only drop columns, or change their order."""
    while isinstance(plan, ops.Project) and is_renaming(plan) and _keeps_names(plan):
        plan = plan.input
    return plan


def _keeps_names(project: ops.Project) -> bool:
    return all(value.columns == {name} for name, value in project.outputs)


def is_renaming(project: ops.Project) -> bool:
    """Whether a π only picks, orders and names columns."""
    return all(isinstance(expression, ColumnRef) for _, expression in project.outputs)


def with_expressions(plan: Plan, change: Callable[[Expression], Expression]) -> Plan:
    """The node, its children untouched, with `change` applied to each of its expressions."""
    match plan:
        case ops.Filter() | ops.Join() | ops.TableJoin() | ops.Exists():
            return replace(plan, predicate=change(plan.predicate))
        case ops.Project():
            return replace(plan, outputs=tuple((name, change(value)) for name, value in plan.outputs))
        case ops.Limit():
            return replace(plan, order=tuple((change(value), descending) for value, descending in plan.order))
        case ops.Rank():
            order = tuple((change(value), descending) for value, descending in plan.order)
            return replace(plan, partition=tuple(map(change, plan.partition)), order=order)
        case ops.Aggregate():
            return _with_grouping(plan, change)
        case Over():
            return _with_frames(plan, change)
        case ops.Unnest():
            return replace(plan, array=change(plan.array))
        case Window(spec=LifetimeWindow() as spec):
            return replace(plan, spec=replace(spec, expression=change(spec.expression)))
        case _:
            return plan


def _with_grouping(plan: ops.Aggregate, change: Callable[[Expression], Expression]) -> ops.Aggregate:
    keys = tuple((name, change(key)) for name, key in plan.keys)
    calls = tuple((name, _with_arguments(call, change)) for name, call in plan.aggregates)
    return replace(plan, keys=keys, aggregates=calls)


def _with_frames(plan: Over, change: Callable[[Expression], Expression]) -> Over:
    calls = tuple(
        (
            name,
            replace(
                framed,
                call=_with_arguments(framed.call, change),
                partition=tuple(map(change, framed.partition)),
            ),
        )
        for name, framed in plan.calls
    )
    return replace(plan, order=change(plan.order), calls=calls)


def _with_arguments(call: ops.AggregateCall, change: Callable[[Expression], Expression]) -> ops.AggregateCall:
    return replace(call, args=tuple(map(change, call.args)), where=change(call.where))


def expressions_of(plan: Plan) -> list[Expression]:
    """The expressions of one node."""
    found: list[Expression] = []

    def note(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    with_expressions(plan, note)
    return found


def reads_bounds(expression: Expression) -> bool:
    """Whether it reads `window_start` or `window_end`."""
    return any(isinstance(node, WindowBound) for node in expression.walk())


def own_nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of this query, without those of nested queries."""
    yield plan
    for child in () if isinstance(plan, Subquery) else plan.children:
        yield from own_nodes(child)


def fresh_alias(plan: Plan, wanted: str) -> str:
    """An alias that no scan or nested query of the plan has."""
    taken = {node.alias for node in plan.walk() if isinstance(node, Scan | Subquery | TableScan)}
    names = (wanted if n == 1 else f"{wanted}{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def variants(plan: Plan, change: Callable[[Plan], Iterable[Plan]], nested: bool = True) -> Iterator[Plan]:
    """The tree with one node replaced by one of its alternatives, for every node and alternative.

    What the algebra refuses (a table above rows that expire unpredictably) is no variant. Nested queries
    are left out if `nested` says so.
    """
    yield from _allowed(plan, change)
    for place, child in enumerate(plan.children if nested or not isinstance(plan, Subquery) else ()):
        for other in variants(child, change, nested):
            try:
                changed = plan.with_children((*plan.children[:place], other, *plan.children[place + 1 :]))
            except QueryError:
                continue
            yield changed


def _allowed(plan: Plan, change: Callable[[Plan], Iterable[Plan]]) -> list[Plan]:
    try:
        return list(change(plan))
    except QueryError:
        return []


def as_query(plan: Plan) -> Emit:
    """The same node, known to be the root of a query."""
    assert isinstance(plan, Emit), f"a query ends in Emit, not in {type(plan).__name__}"
    return plan
