"""CAST and TRY_CAST: which exist, and the functions named after types (`double('NaN')`).

Spark's ANSI mode allows a cast only where it makes sense for some value: a DATE is no number, a truth
value is no time.
"""

from __future__ import annotations

from functools import partial

from windrow.algebra import types as dt
from windrow.algebra.expressions import Cast, Expression, cast
from windrow.algebra.functions.registry import Function, Rule
from windrow.algebra.functions.values.casts import CASTS
from windrow.errors import QueryError


def castable(source: dt.DataType, target: dt.DataType) -> bool:
    """Whether CAST from one type to the other exists."""
    if source == target or source.kind is dt.Kind.NULL:
        return True
    targets = CASTS.get(source.kind)
    return targets is not None and target.kind in (source.kind, *targets)


def explicit_cast(arg: Expression, target: dt.DataType, *, safe: bool = False) -> Expression:
    """CAST (or TRY_CAST) as a user writes it, refused where it does not exist.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> explicit_cast(ColumnRef("day", dt.DATE), dt.INT)
    Traceback (most recent call last):
    windrow.errors.QueryError: a DATE cannot be cast to INT (unix_date counts days)
    """
    if not castable(arg.type, target):
        raise QueryError(
            f"{_with_article(arg.type)} cannot be cast to {target}",
            code="bad-cast",
            hint=_OTHER_WAYS.get((arg.type.kind, target.is_numeric)),
        )
    if arg.type.kind is dt.Kind.NULL:
        return cast(arg, target)
    return arg if arg.type == target else Cast(arg, target, safe)


_OTHER_WAYS = {
    (dt.Kind.DATE, True): "unix_date counts days",
    (dt.Kind.INTERVAL, True): "EXTRACT(… FROM interval) or `interval div INTERVAL '1' SECOND` give numbers",
}


def _with_article(kind: dt.DataType) -> str:
    return f"{'an' if str(kind)[0] in 'AEIOU' else 'a'} {kind}"


def _to(target: dt.DataType) -> Rule:
    return lambda name, args: explicit_cast(args[0], target)


_conversion = partial(Function, arity=(1, 1), can_fail=True)

FUNCTIONS = (
    *(
        _conversion(name=name, rule=_to(target), description=f"CAST(… AS {target})", example=example)
        for name, target, example in (
            ("boolean", dt.BOOLEAN, "boolean('yes') -> TRUE"),
            ("tinyint", dt.TINYINT, "tinyint(1) -> 1"),
            ("smallint", dt.SMALLINT, "smallint(1) -> 1"),
            ("int", dt.INT, "int(' 12 ') -> 12"),
            ("bigint", dt.BIGINT, "bigint(-1.9) -> -1"),
            ("float", dt.FLOAT, "float('0.5') -> 0.5"),
            ("double", dt.DOUBLE, "double('1e3') -> 1000.0"),
            ("decimal", dt.decimal(10, 0), "decimal(2.5) -> 3"),
            ("string", dt.STRING, "string(double(12345678)) -> '1.2345678E7'"),
            ("binary", dt.BINARY, "binary('a') -> X'61'"),
            ("date", dt.DATE, "date('2024-2-29') -> DATE '2024-02-29'"),
            ("timestamp", dt.TIMESTAMP, "timestamp('2024-02-29') -> TIMESTAMP '2024-02-29 00:00:00'"),
        )
    ),
)
