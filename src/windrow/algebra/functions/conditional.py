"""Choices. Only the branch that is taken is computed, so a guarded division cannot fail."""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.coercion import unify
from windrow.algebra.functions.registry import TRUTH, Function, accept, call
from windrow.algebra.types import INT, NULL

_NOTHING = Literal(None, NULL)


def _case(name: str, args: tuple[Expression, ...]) -> Expression:
    """Conditions and values in turn, then perhaps the ELSE value."""
    pairs, rest = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]
    conditions = accept(name, pairs[::2], (TRUTH,))
    values = unify(name, (*pairs[1::2], *rest))
    chosen = [part for pair in zip(conditions, values, strict=False) for part in pair]
    return Call(name, (*chosen, *values[len(conditions) :]), values[0].type)


def _if(name: str, args: tuple[Expression, ...]) -> Expression:
    condition = accept(name, args[:1], (TRUTH,))
    values = unify(name, args[1:])
    return Call(name, (*condition, *values), values[0].type)


def _coalesce(name: str, args: tuple[Expression, ...]) -> Expression:
    values = unify(name, args)
    return Call(name, values, values[0].type)


def _nullif(_: str, args: tuple[Expression, ...]) -> Expression:
    return call("if", (call("=", args), _NOTHING, args[0]))


def _nvl(_: str, args: tuple[Expression, ...]) -> Expression:
    return call("coalesce", args)


def _nvl2(_: str, args: tuple[Expression, ...]) -> Expression:
    return call("if", (call("is_not_null", args[:1]), *args[1:]))


def _zero_if_null(_: str, args: tuple[Expression, ...]) -> Expression:
    return call("coalesce", (args[0], Literal(0, INT)))


def _null_if_zero(_: str, args: tuple[Expression, ...]) -> Expression:
    return call("nullif", (args[0], Literal(0, INT)))


_choice = partial(Function, null_propagating=False)

FUNCTIONS = (
    _choice(
        "case",
        (2, None),
        _case,
        "the value of the first condition that holds",
        "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END -> 'b'",
    ),
    _choice(
        "if",
        (3, 3),
        _if,
        "the second argument where the first holds, else the third",
        "if(1 < 2, 'a', 'b') -> 'a'",
    ),
    _choice(
        "coalesce", (1, None), _coalesce, "the first argument that is not NULL", "coalesce(NULL, 2, 3) -> 2"
    ),
    _choice(
        "nvl",
        (2, 2),
        _nvl,
        "the first argument, or the second where it is NULL",
        "nvl(NULL, 2) -> 2",
        aliases=("ifnull",),
    ),
    _choice(
        "nvl2",
        (3, 3),
        _nvl2,
        "the second argument, or the third where the first is NULL",
        "nvl2(NULL, 2, 3) -> 3",
    ),
    _choice(
        "nullif", (2, 2), _nullif, "the first argument, or NULL where both are equal", "nullif(2, 2) -> NULL"
    ),
    _choice("zeroifnull", (1, 1), _zero_if_null, "0 where it is NULL", "zeroifnull(NULL) -> 0"),
    _choice("nullifzero", (1, 1), _null_if_zero, "NULL where it is 0", "nullifzero(0) -> NULL"),
)
