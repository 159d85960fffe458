"""FROM and WHERE: the rows a SELECT is about.

EXISTS tests are conditions of WHERE, joined to the rest by AND; each becomes a semi-join or, negated,
an anti-join above what the other conditions leave. The conditions inside that read the query around
are its predicate; the rest filters inside. What such a query selects does not matter, nor does its
stream word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.expressions import conjunction
from windrow.algebra.operators import KINDS, Exists
from windrow.language.binder.aggregates import group_rows, is_grouped
from windrow.language.binder.bounds import Leaves, bounds_over
from windrow.language.binder.context import Context
from windrow.language.binder.expressions import Values, conditions
from windrow.language.binder.joins import Conditions
from windrow.language.binder.membership import Membership, scalar_queries
from windrow.language.binder.outer_joins import OuterJoins
from windrow.language.binder.places import at, refuse, walk
from windrow.language.binder.pseudo import pseudo_reads
from windrow.language.binder.scope import Scope
from windrow.language.binder.sources import bind_sources
from windrow.language.syntax import ExistsTest, InTest, Over, Select

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.binder.sources import FromItem


@dataclass(frozen=True)
class Rows:
    """The rows of FROM and WHERE, their names, and the conditions that read the query around."""

    plan: Plan
    scope: Scope
    foreign: tuple[Expression, ...] = ()


def bind_rows(select: Select, context: Context) -> Rows:
    """FROM … WHERE …."""
    items = bind_sources(select.sources, pseudo_reads(select), context, growing=_asks_for_frames(select))
    scope = Scope(tuple(entry for item in items for entry in item.entries), context.outer)
    if any(source.join for source in select.sources):
        outer = OuterJoins(items, scope)
        with at(select):
            plan = outer.plan(_where(select, items, scope))
        foreign = outer.foreign
    else:
        placed = _sorted_conditions(select, items, scope)
        with at(select):
            plan = placed.plan()
        foreign = placed.foreign
    inside = context.inside(scope, [item.plan_alias for item in items])
    membership = Membership(scope, inside, bind_rows)
    for test in conditions(select.where):
        with at(test):
            if isinstance(test, ExistsTest):
                plan = _exists(plan, test, inside)
            elif isinstance(test, InTest):
                plan = membership.is_in(plan, test)
            elif scalar_queries(test):
                plan = membership.compared(plan, test)
    return Rows(plan, scope, tuple(foreign))


def _asks_for_frames(select: Select) -> bool:
    """Whether OVER looks back from each row, instead of numbering the rows of an answer."""
    written = [*(item.expression for item in select.items), *filter(None, [select.qualify])]
    parts = (part for each in written for part in walk(each))
    return any(isinstance(part, Over) and part.function not in KINDS for part in parts)


def _sorted_conditions(select: Select, items: list[FromItem], scope: Scope) -> Conditions:
    placed = Conditions(items)
    for written in select.on:
        for part in conditions(written):
            placed.add(Values(scope, "ON").condition(part), on=True)
    for predicate in _where(select, items, scope):
        placed.add(predicate, on=False)
    return placed


def _where(select: Select, items: list[FromItem], scope: Scope) -> list[Expression]:
    """The conditions of WHERE without queries in them."""
    bound = bounds_over(Leaves(tuple(leaf for item in items for leaf in item.plan.leaves)))
    plain = [
        part
        for part in conditions(select.where)
        if not isinstance(part, ExistsTest | InTest) and not scalar_queries(part)
    ]
    return [Values(scope, "WHERE", bound).condition(part) for part in plain]


def _exists(left: Plan, test: ExistsTest, context: Context) -> Plan:
    query = test.query
    if not isinstance(query, Select):
        right = context.bind(query, context.nested()).plan
        return Exists(left, right, negated=test.negated)
    rows = bind_rows(query, context)
    right = rows.plan
    if is_grouped(query, of_items=False):
        if rows.foreign:
            refuse(
                query,
                "this EXISTS groups its rows, so its WHERE cannot read the query around it",
                "grouped-correlation",
                "leave GROUP BY and HAVING out, or join with a nested query that groups",
            )
        right = group_rows(query, rows.plan, replace(rows.scope, outer=None))
    return Exists(left, right, conjunction(tuple(rows.foreign)), test.negated)
