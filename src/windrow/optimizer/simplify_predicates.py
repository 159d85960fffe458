"""Bring conditions into one form, so that equal ones look equal and doubles are seen.

>>> from windrow.algebra.expressions import ColumnRef
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, five = ColumnRef("a", INT), Literal(5, INT)
>>> twice = call("and", [call("<", [five, a]), call("not", [call("<=", [a, five])])])
>>> simplified(twice) == call(">", [a, five])
True

In Windrow's order of values NaN is a number like others, the greatest, so a comparison and its opposite
differ in nothing but truth: NOT a < b is a >= b, and both are NULL where a or b is.
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra import BOOLEAN, Aggregate, Exists, Filter, Join, Plan, TableJoin
from windrow.algebra.expressions import FALSE, Call, Expression, Literal, conjunction, conjuncts

# ------------------------------------------------------------ normal forms


Clause = tuple[Expression, ...]

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_OPPOSITE |= {"is_null": "is_not_null", "is_not_null": "is_null"}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_DUAL = {"and": "or", "or": "and"}


def normalised(predicate: Expression) -> Expression:
    """NOT only where nothing else says it, and constants on the right of a comparison.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.functions.sql_text import to_sql
    >>> from windrow.algebra.types import INT
    >>> a, b, five = ColumnRef("a", INT), ColumnRef("b", INT), Literal(5, INT)
    >>> to_sql(normalised(call("not", [call("or", [call("<", [five, a]), call("is_null", [b])])])), str)
    'a <= 5 AND b IS NOT NULL'
    """
    match predicate:
        case Call("not", (Call("not", (inner,)),)):
            return normalised(inner)
        case Call("not", (Call("and" | "or" as connective, args),)):
            return Call(_DUAL[connective], tuple(normalised(_negated(arg)) for arg in args), BOOLEAN)
        case Call("not", (Call(name, args),)) if name in _OPPOSITE:
            return normalised(Call(_OPPOSITE[name], args, BOOLEAN))
        case Call("and" | "or", args):
            return predicate.with_children(tuple(map(normalised, args)))
        case Call(name, (Literal() as constant, other)) if name in _MIRRORED and not isinstance(
            other, Literal
        ):
            return Call(_MIRRORED[name], (other, constant), BOOLEAN)
    return predicate


def _negated(predicate: Expression) -> Expression:
    return Call("not", (predicate,), BOOLEAN)


def disjunctive_form(predicate: Expression, most: int = 64) -> tuple[Clause, ...] | None:
    """The predicate as an OR of clauses, each an AND of parts; None if there would be more than `most`.

    The parts keep their order, doubles and clauses that contain another clause are gone. A cover test
    compares two predicates clause by clause.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> a, b, c = (ColumnRef(name, BOOLEAN) for name in "abc")
    >>> both = Call("and", (Call("or", (a, b), BOOLEAN), c), BOOLEAN)
    >>> [[part.name for part in clause] for clause in disjunctive_form(both)]
    [['a', 'c'], ['b', 'c']]
    >>> disjunctive_form(both, most=1) is None
    True
    """
    clauses = _clauses(normalised(predicate), most)
    if clauses is None:
        return None
    unique = list(dict.fromkeys(clauses))
    return tuple(one for one in unique if not any(set(other) < set(one) for other in unique))


def _clauses(predicate: Expression, most: int) -> tuple[Clause, ...] | None:
    match predicate:
        case Call("or", args):
            parts = [_clauses(arg, most) for arg in args]
            found = [clause for part in parts for clause in part or ()]
            return tuple(found) if None not in parts and len(found) <= most else None
        case Call("and", args):
            return _product([_clauses(arg, most) for arg in args], most)
    return ((predicate,),)


def _product(parts: list[tuple[Clause, ...] | None], most: int) -> tuple[Clause, ...] | None:
    found: list[Clause] = [()]
    for part in parts:
        if part is None or len(found) * len(part) > most:
            return None
        found = [tuple(dict.fromkeys(left + right)) for left in found for right in part]
    return tuple(found)


# ------------------------------------------------------------ the rule


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
