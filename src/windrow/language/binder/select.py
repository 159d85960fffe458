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

from windrow.algebra.operators import Distinct, Project
from windrow.language.binder.aggregates import Groups, is_grouped
from windrow.language.binder.bounds import bounds_over
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.expressions import Values
from windrow.language.binder.from_where import Rows, bind_rows
from windrow.language.binder.ordering import bind_order, hidden, limited, whole_answers
from windrow.language.binder.places import at, refuse
from windrow.language.binder.select_list import SelectList, expand

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan
    from windrow.language.binder.ordering import Keys, Outputs
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
    named = _outputs(outputs, values)
    return rows.plan, named, bind_order(select, outputs, values)


def _about_groups(select: Select, rows: Rows, outputs: SelectList) -> tuple[Plan, Outputs, Keys]:
    groups = Groups(select, rows.plan, rows.scope, outputs)
    named = _outputs(outputs, groups)
    having = groups.having(select)
    keys = bind_order(select, outputs, groups)
    with at(select):
        return groups.plan(having), named, keys


def _outputs(outputs: SelectList, values: Values) -> Outputs:
    bound = [values.bind(item.node) for item in outputs.items]
    return tuple(zip(outputs.names, bound, strict=True))
