"""Bring conditions into one form, so that equal ones look equal and doubles are seen.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, five = ColumnRef("a", INT), Literal(5, INT)
>>> twice = call("and", [call("<", [five, a]), call("not", [call("<=", [a, five])])])
>>> simplified(twice) == call(">", [a, five])
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.expressions import FALSE, Expression, Literal, conjunction, conjuncts
from windrow.algebra.operators import Aggregate, Exists, Filter, Join, TableJoin
from windrow.algebra.predicates import normalised

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan


def simplify_predicates(plan: Plan) -> Plan:
    """Every condition of the plan simplified."""
    return plan.rewrite(_simplify)


def _simplify(plan: Plan) -> Plan:
    if isinstance(plan, Filter | Join | TableJoin | Exists):
        return replace(plan, predicate=simplified(plan.predicate))
    if isinstance(plan, Aggregate):
        calls = ((name, replace(call, where=simplified(call.where))) for name, call in plan.aggregates)
        return replace(plan, aggregates=tuple(calls))
    return plan


def simplified(condition: Expression) -> Expression:
    """Normalised, each part once, in the order of first mention; a condition that is NULL never holds."""
    parts = tuple(dict.fromkeys(conjuncts(normalised(condition))))
    never = any(isinstance(part, Literal) and part.value is not True for part in parts)
    return FALSE if never else conjunction(parts)
