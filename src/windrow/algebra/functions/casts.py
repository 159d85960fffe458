"""CAST and TRY_CAST: which exist, and the functions named after types (`double('NaN')`).

Spark's ANSI mode allows a cast only where it makes sense for some value: a DATE is no number, a truth
value is no time.
"""

from __future__ import annotations

from windrow.algebra import types as dt
from windrow.algebra.expressions import Cast, Expression, cast
from windrow.algebra.functions.registry import Function
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
            f"{'an' if str(arg.type)[0] in 'AEIOU' else 'a'} {arg.type} cannot be cast to {target}",
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


def _conversion(target: dt.DataType, example: str) -> Function:
    """The function called as a type, as in the example."""
    name = example.partition("(")[0]
    return Function(
        name,
        (1, 1),
        lambda _, args: explicit_cast(args[0], target),
        f"CAST(… AS {target})",
        example,
        can_fail=True,
    )


FUNCTIONS = (
    _conversion(dt.BOOLEAN, "boolean('yes') -> TRUE"),
    _conversion(dt.TINYINT, "tinyint(1) -> 1"),
    _conversion(dt.SMALLINT, "smallint(1) -> 1"),
    _conversion(dt.INT, "int(' 12 ') -> 12"),
    _conversion(dt.BIGINT, "bigint(-1.9) -> -1"),
    _conversion(dt.FLOAT, "float('0.5') -> 0.5"),
    _conversion(dt.DOUBLE, "double('1e3') -> 1000.0"),
    _conversion(dt.decimal(10, 0), "decimal(2.5) -> 3"),
    _conversion(dt.STRING, "string(double(12345678)) -> '1.2345678E7'"),
    _conversion(dt.BINARY, "binary('a') -> X'61'"),
    _conversion(dt.DATE, "date('2024-2-29') -> DATE '2024-02-29'"),
    _conversion(dt.TIMESTAMP, "timestamp('2024-02-29') -> TIMESTAMP '2024-02-29 00:00:00'"),
)
