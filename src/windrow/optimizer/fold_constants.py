"""Compute what does not depend on a row, once.

Logic, comparisons, choices and whole-number arithmetic on constants are folded here; what would fail
(an overflow) is left alone, so that it fails as before, and only if a row gets there. Everything else
that is constant costs one evaluation per row and is left to the executors.

>>> from windrow.algebra.expressions import ColumnRef
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, one, two = ColumnRef("a", INT), Literal(1, INT), Literal(2, INT)
>>> folded(call("+", [a, call("*", [two, two])]))
Call(function='+', args=(ColumnRef(name='a', data_type=INT), Literal(value=4, data_type=INT)), data_type=INT)
>>> folded(call("and", [call("<", [one, two]), call(">", [a, two])])) == call(">", [a, two])
True
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from windrow.algebra import BIGINT, BOOLEAN, Kind, Plan
from windrow.algebra.expressions import FALSE, TRUE, Call, Cast, Expression, Literal, cast
from windrow.algebra.functions import lookup
from windrow.optimizer.trees import with_expressions

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTED: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "neg": operator.neg,
}
#: kinds whose order of values is Python's own; NaN keeps floating point out
_ORDERED = frozenset(Kind) - {Kind.FLOAT, Kind.DOUBLE, Kind.ARRAY, Kind.STRUCT, Kind.NULL}


def fold_constants(plan: Plan) -> Plan:
    """Every expression of the plan with its constant parts computed."""
    return plan.rewrite(lambda node: with_expressions(node, folded))


def folded(expression: Expression) -> Expression:
    """The expression with its constant parts computed; its type stays."""
    return expression.rewrite(_fold)


def _fold(node: Expression) -> Expression:
    if isinstance(node, Cast) and isinstance(node.arg, Literal):
        converted = cast(node.arg, node.type)
        return converted if isinstance(converted, Literal) else node
    if not isinstance(node, Call):
        return node
    result = _CHOICES[node.function](node) if node.function in _CHOICES else _computed(node)
    return result if result.type == node.type else node


def _computed(node: Call) -> Expression:
    """A strict function of constants, or one that meets a NULL."""
    values = [arg.value for arg in node.args if isinstance(arg, Literal)]
    if lookup(node.function).null_propagating and None in values:
        return Literal(None, node.type)
    if len(values) < len(node.args) or None in values:
        return node
    if node.function in _COMPARED and node.args[0].type.kind in _ORDERED:
        return Literal(_COMPARED[node.function](*values), BOOLEAN)
    if node.function in _COMPUTED and all(type(value) is int for value in values):
        result = _COMPUTED[node.function](*values)
        least, most = (node.type if node.type.is_integer else BIGINT).bounds
        return Literal(result, node.type) if least <= result <= most else node
    return node


def _and(node: Call) -> Expression:
    left, right = node.args
    if FALSE in node.args:
        return FALSE
    return right if left == TRUE else left if right == TRUE else node


def _or(node: Call) -> Expression:
    left, right = node.args
    if TRUE in node.args:
        return TRUE
    return right if left == FALSE else left if right == FALSE else node


def _not(node: Call) -> Expression:
    (arg,) = node.args
    if not isinstance(arg, Literal):
        return node
    return Literal(None if arg.value is None else not arg.value, BOOLEAN)


def _is_null(node: Call) -> Expression:
    (arg,) = node.args
    if not isinstance(arg, Literal):
        return node
    return Literal((arg.value is None) == (node.function == "is_null"), BOOLEAN)


def _case(node: Call) -> Expression:
    """Branches that cannot be taken go; a first branch that is always taken is all."""
    args = node.args
    while len(args) >= 2 and isinstance(args[0], Literal):
        if args[0] == TRUE:
            return args[1]
        args = args[2:]
    if not args:
        return Literal(None, node.type)
    return args[0] if len(args) == 1 else Call("case", args, node.type) if args != node.args else node


def _coalesce(node: Call) -> Expression:
    args = tuple(arg for arg in node.args if not (isinstance(arg, Literal) and arg.value is None))
    if not args:
        return Literal(None, node.type)
    return args[0] if isinstance(args[0], Literal) or len(args) == 1 else Call("coalesce", args, node.type)


_CHOICES: dict[str, Callable[[Call], Expression]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is_null": _is_null,
    "is_not_null": _is_null,
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
}
