"""One SELECT, from its rows up: γ and HAVING, the select list, DISTINCT, ORDER BY … LIMIT.

    Limit                ORDER BY … LIMIT, under RSTREAM
      Distinct           SELECT DISTINCT
        Project          the select list
          Filter         HAVING
            Aggregate    GROUP BY, or aggregates without it
              …          FROM … WHERE (`from_where`)

Any of them but the projection may be missing.

ORDER BY … LIMIT: the first rows of each answer.

It has a meaning where whole answers are given, under RSTREAM, said or implied by a SLIDE. A key that is
not an output is carried along under a hidden name and dropped above the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import ColumnRef
from windrow.algebra.operators import Distinct, Filter, Limit, Project
from windrow.algebra.plan import Emit, StreamWord
from windrow.language.binder.aggregates import Groups, is_grouped
from windrow.language.binder.constants import whole_number
from windrow.language.binder.context import Context, Relation
from windrow.language.binder.expressions import ExpressionBinder
from windrow.language.binder.from_where import BoundRows, bind_rows
from windrow.language.binder.over import Overs
from windrow.language.binder.places import at, refuse
from windrow.language.binder.pseudo import bounds_over
from windrow.language.binder.select_list import SelectList, expand

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.syntax import Node, Select


#: what hidden outputs are called, before their number
HIDDEN = "order by "

Outputs = tuple[tuple[str, "Expression"], ...]
Keys = tuple[tuple["Expression", bool], ...]


def bind_order(select: Select, outputs: SelectList, values: ExpressionBinder) -> Keys:
    """The written keys, over the same rows as the select list; descending or not."""
    if select.order_by and select.limit is None:
        refuse(
            select.order_by[0][0],
            "ORDER BY without LIMIT changes nothing: delivered rows are always in order of (at, op, row)",
            "order-without-limit",
            "add LIMIT n for the first n rows of each answer, or leave ORDER BY out",
        )
    values.clause = "ORDER BY"
    return tuple((values.bind(outputs.dereferenced(key)), descending) for key, descending in select.order_by)


def hidden(outputs: Outputs, keys: Keys) -> Outputs:
    """Outputs for the keys that are none, under names that no output has."""
    shown = [expression for _, expression in outputs]
    missing = dict.fromkeys(key for key, _ in keys if key not in shown)
    return tuple((f"{HIDDEN}{number}", key) for number, key in enumerate(missing, 1))


def limited(limit: Node, plan: Plan, shown: Outputs, extra: Outputs, keys: Keys) -> Plan:
    """The limit above the projection of all outputs; the hidden ones are dropped again."""
    names = {expression: name for name, expression in reversed(shown + extra)}
    order: Keys = tuple((ColumnRef(names[key], key.type), descending) for key, descending in keys)
    if not order:
        order = tuple((plan.schema.column(name), False) for name in plan.schema.names)
    with at(limit):
        top = Limit(plan, order, _count(limit))
    return Project(top, tuple((name, top.schema.column(name)) for name, _ in shown)) if extra else top


def whole_answers(select: Select, plan: Plan, around: StreamWord) -> None:
    """Refuse LIMIT where changes are given; `around` is RSTREAM if the whole query says so."""
    word = around if select.word is StreamWord.AUTO else select.word
    with at(select):
        meaning = Emit(plan, word).meaning
    if meaning is not StreamWord.RSTREAM:
        refuse(
            select.limit or select,
            "LIMIT picks the first rows of a whole answer, but this query gives changes of its answer",
            "limit-of-changes",
            "select RSTREAM(…), or give the windows a SLIDE",
        )


def _count(node: Node) -> int:
    count = whole_number(node)
    if count is None:
        refuse(node, "LIMIT takes a whole number", "bad-limit", "for example LIMIT 10")
    return count


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


def _about_rows(select: Select, rows: BoundRows, outputs: SelectList) -> tuple[Plan, Outputs, Keys]:
    values = ExpressionBinder(rows.scope, "the select list", bounds_over(rows.plan))
    values.overs = overs = Overs(rows.plan, rows.scope)
    named = _outputs(outputs, values)
    qualify = _qualify(select, outputs, values)
    keys = bind_order(select, outputs, values)
    with at(select):
        return _numbered(select, rows.plan, overs, qualify), named, keys


def _about_groups(select: Select, rows: BoundRows, outputs: SelectList) -> tuple[Plan, Outputs, Keys]:
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


def _qualify(select: Select, outputs: SelectList, values: ExpressionBinder) -> Expression | None:
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


def _outputs(outputs: SelectList, values: ExpressionBinder) -> Outputs:
    bound = [values.bind(item.node) for item in outputs.items]
    return tuple(zip(outputs.names, bound, strict=True))
