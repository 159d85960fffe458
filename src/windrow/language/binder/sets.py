"""UNION ALL and EXCEPT ALL: columns meet by position, as their common type, under the first side's names.

Stream words belong to the whole: all sides say the same one, or none does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.coercion import cast
from windrow.algebra.operators import Except, Limit, Project, Union
from windrow.algebra.types import DataType, common_type
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.places import at, refuse
from windrow.language.binder.sources import NESTED, renamed
from windrow.language.syntax import Query, SetOperation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan


def bind_set(operation: SetOperation, context: Context) -> Relation:
    """A set operation; a chain of UNION ALL is one union."""
    written = _union_parts(operation) if operation.kind == "UNION" else [operation.left, operation.right]
    parts = [context.bind(query, context) for query in written]
    for query, part in zip(written[1:], parts[1:], strict=True):
        if part.word is not parts[0].word:
            first, other = (relation.word.value or "no stream word" for relation in (parts[0], part))
            refuse(
                query,
                f"the sides say {first} and {other}, but a stream word is about the whole answer",
                "set-words",
                "write the same word on all sides, or none",
            )
    with at(operation):
        plans = _aligned(operation.kind, written, [part.plan for part in parts])
        plan = Union(tuple(plans)) if operation.kind == "UNION" else Except(*plans)
    return Relation(plan, parts[0].word)


def _union_parts(query: Query) -> list[Query]:
    if isinstance(query, SetOperation) and query.kind == "UNION":
        return _union_parts(query.left) + _union_parts(query.right)
    return [query]


def _aligned(kind: str, written: list[Query], plans: list[Plan]) -> list[Plan]:
    """The sides with casts where their types differ."""
    targets = list(plans[0].schema.types)
    for query, plan in zip(written[1:], plans[1:], strict=True):
        if len(plan.schema) != len(targets):
            message = f"{kind} ALL of {len(targets)} columns above and {len(plan.schema)} columns here"
            refuse(query, message, "set-columns", "select the same number of columns on all sides")
        types = enumerate(zip(targets, plan.schema.types, strict=True), start=1)
        targets = [_meeting(query, f"column {n} of {kind} ALL", left, right) for n, (left, right) in types]
    return [_as_types(plan, targets) for plan in plans]


def _meeting(query: Query, what: str, left: DataType, right: DataType) -> DataType:
    found = common_type(left, right)
    if found is None:
        refuse(query, f"{what} is {left} above and {right} here", "set-types", "CAST one of them")
    return found


def _as_types(plan: Plan, targets: list[DataType]) -> Plan:
    if list(plan.schema.types) == targets:
        return plan
    if isinstance(plan, Project) and not isinstance(plan.input, Limit):
        return Project(plan.input, _cast_all(plan.outputs, targets))
    # Above DISTINCT or LIMIT: as if it were nested in a SELECT that casts.
    nested = renamed(plan, NESTED)
    outputs = [(name, nested.schema.column(f"{NESTED}.{name}")) for name in plan.schema.names]
    return Project(nested, _cast_all(outputs, targets))


def _cast_all(
    outputs: Sequence[tuple[str, Expression]], targets: list[DataType]
) -> tuple[tuple[str, Expression], ...]:
    return tuple((name, cast(value, kind)) for (name, value), kind in zip(outputs, targets, strict=True))
