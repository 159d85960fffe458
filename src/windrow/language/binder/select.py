"""One SELECT, from its rows up: γ and HAVING, the select list, DISTINCT, ORDER BY … LIMIT.

    Limit                ORDER BY … LIMIT, under RSTREAM
      Distinct           SELECT DISTINCT
        Project          the select list
          Filter         HAVING
            Aggregate    GROUP BY, or aggregates without it
              …          FROM … WHERE (`from_where`)

Any of them but the projection may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.operators import Distinct, Filter, Project
from windrow.algebra.plan import StreamWord
from windrow.language.binder.aggregates import Groups, is_grouped
from windrow.language.binder.bounds import bounds_over
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.expressions import Values
from windrow.language.binder.from_where import Rows, bind_rows
from windrow.language.binder.order_by import bind_order, hidden, limited, whole_answers
from windrow.language.binder.over import Overs
from windrow.language.binder.places import at, refuse
from windrow.language.binder.select_list import SelectList, expand

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.binder.order_by import Keys, Outputs
    from windrow.language.syntax import Select


def bind_select(select: Select, context: Context) -> Relation:
    """The relation a SELECT means; what makes it a stream is decided above."""
    context = context.under(select.word)
    rows = bind_rows(select, context)
    outputs = expand(select.items, rows.scope)
    bind = _about_groups if is_grouped(select) else _about_rows
    plan, named, keys = bind(select, rows, outputs)
    extra = hidden(named, keys)
    if extra and select.distinct:
        refuse(
            select.order_by[0][0],
            "ORDER BY must name outputs: a DISTINCT row stands for many rows, which may differ in the rest",
            "order-of-distinct",
            "select it too, or leave DISTINCT out",
        )
    with at(select):
        plan = Project(plan, named + extra)
        plan = Distinct(plan) if select.distinct else plan
    if select.limit is not None:
        whole_answers(select, plan, context.word)
        plan = limited(select.limit, plan, named, extra, keys)
    return Relation(plan, select.word)


def _about_rows(select: Select, rows: Rows, outputs: SelectList) -> tuple[Plan, Outputs, Keys]:
    values = Values(rows.scope, "the select list", bounds_over(rows.plan))
    values.overs = overs = Overs(rows.plan, rows.scope)
    named = _outputs(outputs, values)
    qualify = _qualify(select, outputs, values)
    keys = bind_order(select, outputs, values)
    with at(select):
        return _numbered(select, rows.plan, overs, qualify), named, keys


def _about_groups(select: Select, rows: Rows, outputs: SelectList) -> tuple[Plan, Outputs, Keys]:
    groups = Groups(select, rows.plan, rows.scope, outputs)
    groups.overs = overs = Overs(None, rows.scope)
    named = _outputs(outputs, groups)
    qualify = _qualify(select, outputs, groups)
    groups.overs = None
    having = groups.having(select)
    groups.overs = overs
    keys = bind_order(select, outputs, groups)
    with at(select):
        return _numbered(select, groups.plan(having), overs, qualify), named, keys


def _qualify(select: Select, outputs: SelectList, values: Values) -> Expression | None:
    if select.qualify is None:
        return None
    values.clause = "QUALIFY"
    found = values.condition(outputs.without_aliases(select.qualify, columns_win=values.scope))
    if not values.overs or not values.overs.nodes:
        refuse(
            select.qualify,
            "QUALIFY is about values of OVER, and this query asks for none",
            "bad-qualify",
            "write WHERE, or HAVING for groups; or QUALIFY ROW_NUMBER() OVER (…) <= n",
        )
    return found


def _numbered(select: Select, plan: Plan, overs: Overs, qualify: Expression | None) -> Plan:
    """The rows or groups with what is asked with OVER."""
    if overs.ranks and select.word.restores:
        refuse(
            overs.nodes[0],
            f"{select.word.value} is about results that came and went, which had many numbers",
            "restore",
            "use ISTREAM or RSTREAM",
        )
    if overs.frames and select.word not in (StreamWord.AUTO, StreamWord.ISTREAM):
        refuse(
            overs.nodes[0],
            f"each row has one answer, which stays: {select.word.value} has nothing to tell of them",
            "bad-over",
            f"leave {select.word.value} out",
        )
    plan = overs.over(plan)
    return Filter(plan, qualify) if qualify is not None else plan


def _outputs(outputs: SelectList, values: Values) -> Outputs:
    bound = [values.bind(item.node) for item in outputs.items]
    return tuple(zip(outputs.names, bound, strict=True))
