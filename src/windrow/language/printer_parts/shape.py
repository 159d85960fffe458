"""Which SELECT a plan is: the binder's order of operators, taken apart from the top.

    Project?  Limit  Distinct  Project  Filter  Aggregate  Exists*  Filter  TableJoin*  Join  sources

All but the sources may be missing. What does not fit is a source of its own: a nested query.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.algebra.expressions import TRUE, Column, Expression
from windrow.algebra.operators import (
    Aggregate,
    Distinct,
    Exists,
    Filter,
    Join,
    Limit,
    Project,
    TableJoin,
)
from windrow.algebra.plan import Plan

Outputs = tuple[tuple[str, Expression], ...]


@dataclass
class RowsShape:
    """FROM and WHERE."""

    sources: tuple[Plan, ...]
    join: Expression = TRUE
    tables: list[TableJoin] = field(default_factory=list)
    where: Expression = TRUE
    exists: list[Exists] = field(default_factory=list)


@dataclass
class SelectShape:
    """A whole SELECT; `hidden` outputs are keys of ORDER BY only."""

    rows: RowsShape
    outputs: Outputs
    hidden: Outputs = ()
    aggregate: Aggregate | None = None
    having: Expression = TRUE
    distinct: bool = False
    limit: Limit | None = None


def select_shape(plan: Plan) -> SelectShape:
    """The SELECT at the top of a plan."""
    shown = _shown_of_hidden(plan)
    if shown is not None:
        assert isinstance(plan, Project)
        plan = plan.input
    limit = plan if isinstance(plan, Limit) else None
    plan = limit.input if limit else plan
    distinct = isinstance(plan, Distinct)
    plan = plan.input if isinstance(plan, Distinct) else plan
    outputs: Outputs = tuple((name, plan.schema.column(name)) for name in plan.schema.names)
    if isinstance(plan, Project) and renaming_alias(plan) is None:
        outputs, plan = plan.outputs, plan.input
    aggregate, having, plan = group_shape(plan)
    count = len(shown) if shown is not None else len(outputs)
    return SelectShape(rows_shape(plan), outputs[:count], outputs[count:], aggregate, having, distinct, limit)


def group_shape(plan: Plan) -> tuple[Aggregate | None, Expression, Plan]:
    """The γ, what HAVING asks of it, and the rows below."""
    if isinstance(plan, Aggregate):
        return plan, TRUE, plan.input
    if isinstance(plan, Filter) and isinstance(plan.input, Aggregate):
        return plan.input, plan.predicate, plan.input.input
    return None, TRUE, plan


def rows_shape(plan: Plan) -> RowsShape:
    """FROM and WHERE."""
    exists: list[Exists] = []
    while isinstance(plan, Exists):
        exists.insert(0, plan)
        plan = plan.left
    where: Expression = TRUE
    if isinstance(plan, Filter):
        where, plan = plan.predicate, plan.input
    tables: list[TableJoin] = []
    while isinstance(plan, TableJoin):
        tables.insert(0, plan)
        plan = plan.input
    if isinstance(plan, Join):
        return RowsShape(plan.inputs, plan.predicate, tables, where, exists)
    return RowsShape((plan,), TRUE, tables, where, exists)


def renaming_alias(plan: Plan) -> str | None:
    """The alias of a nested query in FROM: a projection that only calls each column `alias.column`."""
    if not isinstance(plan, Project) or len(plan.outputs) != len(plan.input.schema):
        return None
    aliases = set()
    for (name, expression), column in zip(plan.outputs, plan.input.schema.names, strict=True):
        if expression != plan.input.schema.column(column) or not name.endswith("." + column):
            return None
        aliases.add(name.removesuffix("." + column))
    return aliases.pop() if len(aliases) == 1 else None


def _shown_of_hidden(plan: Plan) -> Outputs | None:
    """The outputs above a LIMIT by keys that are not among them."""
    if not (isinstance(plan, Project) and isinstance(plan.input, Limit)):
        return None
    below = plan.input.schema
    same = all(isinstance(e, Column) and e.name == name for name, e in plan.outputs)
    return plan.outputs if same and below.names[: len(plan.outputs)] == plan.schema.names else None
