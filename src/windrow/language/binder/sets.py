"""UNION ALL and EXCEPT ALL: columns meet by position, as their common type, under the first side's names.

Where a stream is wanted, sides of UNION ALL with a word each, or over windows that all have a SLIDE, are
streams of their own (`Relation.streams`); everywhere else a word is about the whole answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.coercion import cast
from windrow.algebra.operators import Except, Limit, Project, Union
from windrow.algebra.plan import StreamWord
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
    _check_words(operation, written, parts)
    with at(operation):
        plans = _aligned(operation.kind, written, [part.plan for part in parts])
        if operation.kind != "UNION":
            return Relation(Except(*plans), parts[0].word)
        names = plans[0].schema.names
        sides = [Relation(_named(plan, names), part.word) for plan, part in zip(plans, parts, strict=True)]
        return Relation(Union(tuple(plans)), parts[0].word, tuple(sides))


def _check_words(operation: SetOperation, written: list[Query], parts: list[Relation]) -> None:
    """Each side of UNION ALL has a stream word, or none has; of EXCEPT ALL, both have the same."""
    for query, part in zip(written, parts, strict=True):
        said = (parts[0].words | part.words) - {StreamWord.AUTO}
        some = StreamWord.AUTO in parts[0].words | part.words and bool(said)
        if operation.kind == "UNION" and some:
            first, other = (relation.word.value or "no stream word" for relation in (parts[0], part))
            refuse(
                query,
                f"the sides say {first} and {other}: either each side is a stream, or the whole is",
                "set-words",
                "write a stream word on every side, or on none",
            )
        if operation.kind != "UNION" and (some or len(said) > 1):
            words = ", ".join(sorted(word.value for word in said)) + (" and no stream word" if some else "")
            refuse(
                query,
                f"the sides say {words}, but a stream word is about the whole answer of EXCEPT ALL",
                "set-words",
                "write the same word on all sides, or none",
            )


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


def _named(plan: Plan, names: Sequence[str]) -> Plan:
    """A side whose columns are called as those of the first."""
    if tuple(plan.schema.names) == tuple(names):
        return plan
    outputs: Sequence[tuple[str, Expression]]
    if isinstance(plan, Project) and not isinstance(plan.input, Limit):
        below, outputs = plan.input, plan.outputs
    else:
        below = renamed(plan, NESTED)
        outputs = [(name, below.schema.column(f"{NESTED}.{name}")) for name in plan.schema.names]
    return Project(below, tuple((name, value) for name, (_, value) in zip(names, outputs, strict=True)))


def _cast_all(
    outputs: Sequence[tuple[str, Expression]], targets: list[DataType]
) -> tuple[tuple[str, Expression], ...]:
    return tuple((name, cast(value, kind)) for (name, value), kind in zip(outputs, targets, strict=True))
