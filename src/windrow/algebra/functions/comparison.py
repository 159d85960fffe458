"""Comparisons. NaN equals NaN and exceeds every number; -0.0 equals 0.0; text compares by its bytes.

Choices. Only the branch that is taken is computed, so a guarded division cannot fail.
"""

from __future__ import annotations

from windrow.algebra.expressions import Call, Expression, Literal, cast, mismatch, unify, widest
from windrow.algebra.functions.arithmetic import exact_literal
from windrow.algebra.functions.registry import TRUTH, accept, call, family
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


FUNCTIONS = family(
    r"""
=, == (x, y); binds 50; sql {0} = {1}
    equal | 1 = 1.0 -> TRUE
<>, != (x, y); binds 50; sql {0} <> {1}
    not equal | 1 <> 2 -> TRUE
< (x, y); binds 50; sql {0} < {1}
    less | 'a' < 'b' -> TRUE
<= (x, y); binds 50; sql {0} <= {1}
    less or equal | 2 <= 1 -> FALSE
> (x, y); binds 50; sql {0} > {1}
    greater | DATE '2024-03-01' > '2024-02-29' -> TRUE
>= (x, y); binds 50; sql {0} >= {1}
    greater or equal | 2 >= NULL -> NULL
<=> (x, y); sees NULL; binds 50; sql {0} <=> {1}
    equal, where NULL equals NULL | NULL <=> 1 -> FALSE
in (x, y, …); sees NULL; binds 50; sql {0} IN ({1*})
    equal to one of the others | 3 IN (1, 2, 3) -> TRUE
between (x, y, z)
    within two bounds, both included | 2 BETWEEN 1 AND 3 -> TRUE
greatest (x, y, …); sees NULL
    the greatest argument that is not NULL | greatest(1, NULL, 3) -> 3
least (x, y, …); sees NULL
    the least argument that is not NULL | least(1, NULL, 3) -> 1
isnan (real) BOOLEAN; sees NULL
    whether it is NaN; FALSE for NULL | isnan(double('NaN')) -> TRUE
""",
    {
        **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>"), _compare),
        "in": _in,
        "between": _between,
        "greatest": _extremum,
        "least": _extremum,
    },
)


# ------------------------------------------------------------ logic
#
# Three-valued logic. AND and OR look at the right side only if the left does not decide.


LOGIC = family(
    r"""
and (boolean, boolean) BOOLEAN; sees NULL; binds 30; sql {0} AND {1}
    both hold | FALSE AND NULL -> FALSE
or (boolean, boolean) BOOLEAN; sees NULL; binds 20; sql {0} OR {1}
    at least one holds | TRUE OR NULL -> TRUE
not, ! (boolean) BOOLEAN; binds 40; sql NOT {0}
    it does not hold | NOT FALSE -> TRUE
is_null, isnull (any) BOOLEAN; sees NULL; binds 50; sql {0} IS NULL
    whether it is NULL | NULL IS NULL -> TRUE
is_not_null, isnotnull (any) BOOLEAN; sees NULL; binds 50; sql {0} IS NOT NULL
    whether it is not NULL | NULL IS NOT NULL -> FALSE
""",
)


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


CONDITIONAL = family(
    r"""
case (x, y, …)
    the value of the first condition that holds | CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END -> 'b'
if (x, y, z)
    the second argument where the first holds, else the third | if(1 < 2, 'a', 'b') -> 'a'
coalesce (x, …)
    the first argument that is not NULL | coalesce(NULL, 2, 3) -> 2
nvl, ifnull (x, y)
    the first argument, or the second where it is NULL | nvl(NULL, 2) -> 2
nvl2 (x, y, z)
    the second argument, or the third where the first is NULL | nvl2(NULL, 2, 3) -> 3
nullif (x, y)
    the first argument, or NULL where both are equal | nullif(2, 2) -> NULL
zeroifnull (x)
    0 where it is NULL | zeroifnull(NULL) -> 0
nullifzero (x)
    NULL where it is 0 | nullifzero(0) -> NULL
""",
    {
        "case": _case,
        "if": _if,
        "coalesce": _coalesce,
        "nvl": lambda _, args: call("coalesce", args),
        "nvl2": lambda _, args: call("if", (call("is_not_null", args[:1]), *args[1:])),
        "nullif": lambda _, args: call("if", (call("=", args), Literal(None, NULL), args[0])),
        "zeroifnull": lambda _, args: call("coalesce", (args[0], Literal(0, INT))),
        "nullifzero": lambda _, args: call("nullif", (args[0], Literal(0, INT))),
    },
    null_propagating=False,
)
