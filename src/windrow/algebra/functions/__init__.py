"""Scalar functions and operators: their names, their types, and how they are written in Spark SQL.

`call("upper", [column])` is the way to build an expression: it checks the arguments and writes out the
implicit casts, so that no executor has to guess a type.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.types import INT, STRING, parse_type
>>> price, rate = ColumnRef("price", INT), ColumnRef("rate", parse_type("decimal(5, 2)"))
>>> call("*", [price, rate]).type
DECIMAL(16,2)
>>> call("uper", [ColumnRef("item", STRING)])
Traceback (most recent call last):
windrow.errors.QueryError: no function `uper` (did you mean `upper`?)
"""

from windrow.algebra.functions import (
    arithmetic,
    casts,
    comparison,
    nested,
    patterns,
    refusals as refused,
    strings,
    times,
)
from windrow.algebra.functions.casts import castable, explicit_cast
from windrow.algebra.functions.registry import Function, call, catalogue, install, lookup

__all__ = ["Function", "call", "castable", "catalogue", "explicit_cast", "lookup"]

for _category, _functions in (
    ("arithmetic", arithmetic.FUNCTIONS),
    ("comparison", comparison.FUNCTIONS),
    ("logic", comparison.LOGIC),
    ("conditional", comparison.CONDITIONAL),
    ("numbers", arithmetic.NUMERIC),
    ("bits", arithmetic.BITS),
    ("text", strings.FUNCTIONS),
    ("patterns", patterns.FUNCTIONS),
    ("time", times.FUNCTIONS),
    ("time", times.EXTRACTION),
    ("nested data", nested.FUNCTIONS),
    ("casts", casts.FUNCTIONS),
    ("refused", refused.FUNCTIONS),
):
    install(_category, _functions)
