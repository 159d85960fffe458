"""ORDER BY … LIMIT: the first rows of each answer.

It has a meaning where whole answers are given, under RSTREAM, said or implied by a SLIDE. A key that is
not an output is carried along under a hidden name and dropped above the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column
from windrow.algebra.operators import Limit, Project
from windrow.algebra.plan import Emit, StreamWord
from windrow.language.binder.constants import whole_number
from windrow.language.binder.places import at, refuse

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.binder.expressions import Values
    from windrow.language.binder.select_list import SelectList
    from windrow.language.syntax import Node, Select

#: what hidden outputs are called, before their number
HIDDEN = "order by "

Outputs = tuple[tuple[str, "Expression"], ...]
Keys = tuple[tuple["Expression", bool], ...]


def bind_order(select: Select, outputs: SelectList, values: Values) -> Keys:
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
    order: Keys = tuple((Column(names[key], key.type), descending) for key, descending in keys)
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
