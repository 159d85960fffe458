"""Three-valued logic. AND and OR look at the right side only if the left does not decide."""

from __future__ import annotations

from functools import partial

from windrow.algebra.functions.registry import ANY, TRUTH, Function, returns
from windrow.algebra.types import BOOLEAN

_logic = partial(Function, arity=(2, 2), rule=returns(BOOLEAN, TRUTH, TRUTH), null_propagating=False)
_null = partial(Function, arity=(1, 1), rule=returns(BOOLEAN, ANY), precedence=50, null_propagating=False)

FUNCTIONS = (
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
