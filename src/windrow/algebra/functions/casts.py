"""CAST and TRY_CAST: which exist, and the functions named after types (`double('NaN')`).

Spark's ANSI mode allows a cast only where it makes sense for some value: a DATE is no number, a truth
value is no time.
"""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Cast, Expression
from windrow.algebra.functions.coercion import cast
from windrow.algebra.functions.registry import Function, Rule
from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    Kind,
    decimal,
)
from windrow.errors import QueryError

_NUMBERS = frozenset(
    {Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL},
)
_FROM_NUMBER = _NUMBERS | {Kind.BOOLEAN, Kind.TIMESTAMP}
_TARGETS: dict[Kind, frozenset[Kind]] = {
    **dict.fromkeys(_NUMBERS, _FROM_NUMBER),
    Kind.BOOLEAN: _NUMBERS,
    Kind.STRING: _NUMBERS | {Kind.BOOLEAN, Kind.BINARY, Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL},
    Kind.BINARY: frozenset(),
    Kind.DATE: frozenset({Kind.TIMESTAMP}),
    Kind.TIMESTAMP: _NUMBERS | {Kind.DATE},
    Kind.INTERVAL: frozenset(),
}


def castable(source: DataType, target: DataType) -> bool:
    """Whether CAST from one type to the other exists."""
    if source == target or source.kind is Kind.NULL:
        return True
    targets = _TARGETS.get(source.kind)
    return targets is not None and (target.kind in targets or target.kind in (Kind.STRING, source.kind))


def explicit_cast(arg: Expression, target: DataType, *, safe: bool = False) -> Expression:
    """CAST (or TRY_CAST) as a user writes it, refused where it does not exist.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> explicit_cast(ColumnRef("day", DATE), INT)
    Traceback (most recent call last):
    windrow.errors.QueryError: a DATE cannot be cast to INT (unix_date counts days)
    """
    if not castable(arg.type, target):
        raise QueryError(
            f"{_with_article(arg.type)} cannot be cast to {target}",
            code="bad-cast",
            hint=_OTHER_WAYS.get((arg.type.kind, target.is_numeric)),
        )
    if arg.type.kind is Kind.NULL:
        return cast(arg, target)
    return arg if arg.type == target else Cast(arg, target, safe)


_OTHER_WAYS = {
    (Kind.DATE, True): "unix_date counts days",
    (Kind.INTERVAL, True): "EXTRACT(… FROM interval) or `interval div INTERVAL '1' SECOND` give numbers",
}


def _with_article(kind: DataType) -> str:
    return f"{'an' if str(kind)[0] in 'AEIOU' else 'a'} {kind}"


def _to(target: DataType) -> Rule:
    return lambda name, args: explicit_cast(args[0], target)


_conversion = partial(Function, arity=(1, 1), can_fail=True)

FUNCTIONS = (
    *(
        _conversion(name=name, rule=_to(target), description=f"CAST(… AS {target})", example=example)
        for name, target, example in (
            ("boolean", BOOLEAN, "boolean('yes') -> TRUE"),
            ("tinyint", TINYINT, "tinyint(1) -> 1"),
            ("smallint", SMALLINT, "smallint(1) -> 1"),
            ("int", INT, "int(' 12 ') -> 12"),
            ("bigint", BIGINT, "bigint(-1.9) -> -1"),
            ("float", FLOAT, "float('0.5') -> 0.5"),
            ("double", DOUBLE, "double('1e3') -> 1000.0"),
            ("decimal", decimal(10, 0), "decimal(2.5) -> 3"),
            ("string", STRING, "string(double(12345678)) -> '1.2345678E7'"),
            ("binary", BINARY, "binary('a') -> X'61'"),
            ("date", DATE, "date('2024-2-29') -> DATE '2024-02-29'"),
            ("timestamp", TIMESTAMP, "timestamp('2024-02-29') -> TIMESTAMP '2024-02-29 00:00:00'"),
        )
    ),
)
