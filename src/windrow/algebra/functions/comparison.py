"""Comparisons. NaN equals NaN and exceeds every number; -0.0 equals 0.0; text compares by its bytes.

Choices. Only the branch that is taken is computed, so a guarded division cannot fail.
"""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Expression, Literal, cast, mismatch, unify, widest
from windrow.algebra.functions.arithmetic import exact_literal
from windrow.algebra.functions.registry import ANY, REAL, TRUTH, Function, accept, call, returns
from windrow.algebra.types import BOOLEAN, INT, NULL, Kind


def _operands(name: str, args: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Both sides as one type; next to a decimal an integer literal counts with its own digits."""
    if any(each.type.kind is Kind.DECIMAL for each in args) and not any(
        each.type.is_fractional for each in args
    ):
        args = tuple(exact_literal(each) for each in args)
    return unify(name, args)


def _compare(name: str, args: tuple[Expression, ...]) -> Expression:
    return Call(name, _operands(name, args), BOOLEAN)


def _in(name: str, args: tuple[Expression, ...]) -> Expression:
    return Call(name, unify(name, args), BOOLEAN)


def _between(_: str, args: tuple[Expression, ...]) -> Expression:
    value, low, high = args
    return call("and", (call(">=", (value, low)), call("<=", (value, high))))


def _extremum(name: str, args: tuple[Expression, ...]) -> Expression:
    target = widest(name, args)
    if target.kind is Kind.STRUCT:
        mismatch(name, args)
    return Call(name, tuple(cast(each, target) for each in args), target)


def _operator(sign: str, description: str, example: str, *aliases: str, strict: bool = True) -> Function:
    return Function(
        sign,
        (2, 2),
        _compare,
        description,
        example,
        sql=f"{{0}} {sign} {{1}}",
        precedence=50,
        aliases=aliases,
        null_propagating=strict,
    )


FUNCTIONS = (
    _operator("=", "equal", "1 = 1.0 -> TRUE", "=="),
    _operator("<>", "not equal", "1 <> 2 -> TRUE", "!="),
    _operator("<", "less", "'a' < 'b' -> TRUE"),
    _operator("<=", "less or equal", "2 <= 1 -> FALSE"),
    _operator(">", "greater", "DATE '2024-03-01' > '2024-02-29' -> TRUE"),
    _operator(">=", "greater or equal", "2 >= NULL -> NULL"),
    _operator("<=>", "equal, where NULL equals NULL", "NULL <=> 1 -> FALSE", strict=False),
    Function(
        "in",
        (2, None),
        _in,
        "equal to one of the others",
        "3 IN (1, 2, 3) -> TRUE",
        sql="{0} IN ({1*})",
        precedence=50,
        null_propagating=False,
    ),
    Function("between", (3, 3), _between, "within two bounds, both included", "2 BETWEEN 1 AND 3 -> TRUE"),
    Function(
        "greatest",
        (2, None),
        _extremum,
        "the greatest argument that is not NULL",
        "greatest(1, NULL, 3) -> 3",
        null_propagating=False,
    ),
    Function(
        "least",
        (2, None),
        _extremum,
        "the least argument that is not NULL",
        "least(1, NULL, 3) -> 1",
        null_propagating=False,
    ),
    Function(
        "isnan",
        (1, 1),
        returns(BOOLEAN, REAL),
        "whether it is NaN; FALSE for NULL",
        "isnan(double('NaN')) -> TRUE",
        null_propagating=False,
    ),
)


# ------------------------------------------------------------ logic
#
# Three-valued logic. AND and OR look at the right side only if the left does not decide.


_logic = partial(Function, arity=(2, 2), rule=returns(BOOLEAN, TRUTH, TRUTH), null_propagating=False)
_null = partial(Function, arity=(1, 1), rule=returns(BOOLEAN, ANY), precedence=50, null_propagating=False)

LOGIC = (
    _logic(
        name="and",
        sql="{0} AND {1}",
        precedence=30,
        description="both hold",
        example="FALSE AND NULL -> FALSE",
    ),
    _logic(
        name="or",
        sql="{0} OR {1}",
        precedence=20,
        description="at least one holds",
        example="TRUE OR NULL -> TRUE",
    ),
    Function(
        "not",
        (1, 1),
        returns(BOOLEAN, TRUTH),
        "it does not hold",
        "NOT FALSE -> TRUE",
        sql="NOT {0}",
        precedence=40,
        aliases=("!",),
    ),
    _null(
        name="is_null",
        sql="{0} IS NULL",
        aliases=("isnull",),
        description="whether it is NULL",
        example="NULL IS NULL -> TRUE",
    ),
    _null(
        name="is_not_null",
        sql="{0} IS NOT NULL",
        aliases=("isnotnull",),
        description="whether it is not NULL",
        example="NULL IS NOT NULL -> FALSE",
    ),
)


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

CONDITIONAL = (
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
