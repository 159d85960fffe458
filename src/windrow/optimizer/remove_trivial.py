"""Take out nodes that change nothing.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), "s")
>>> remove_trivial(Filter(Project(s, (("s.ts", s.schema.column("s.ts")),)), TRUE)) == s
True
"""

from __future__ import annotations

from windrow.algebra import TRUE, Aggregate, ColumnRef, Distinct, Filter, Plan, Project


def remove_trivial(plan: Plan) -> Plan:
    """σ of TRUE, π of all columns as they are, δ of what has no duplicates."""
    return plan.rewrite(_remove)


def _remove(plan: Plan) -> Plan:
    match plan:
        case Filter(input=below, predicate=predicate) if predicate == TRUE:
            return below
        case Project(input=below) if _changes_nothing(plan):
            return below
        case Distinct(input=below) if _is_a_set(below):
            return below
    return plan


def _changes_nothing(plan: Project) -> bool:
    same = all(isinstance(value, ColumnRef) and value.name == name for name, value in plan.outputs)
    return same and plan.schema.names == plan.input.schema.names


def _is_a_set(plan: Plan) -> bool:
    """DISTINCT, and groups, which differ in their keys; δ would also make -0.0 of an aggregate 0.0."""
    if isinstance(plan, Aggregate):
        return not any(call.data_type.is_fractional for _, call in plan.aggregates)
    return isinstance(plan, Distinct)
