"""Small parts that type rules are made of: what a parameter accepts, and functions of fixed result type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.coercion import cast, fits, mismatch
from windrow.algebra.functions.registry import Function, Rule
from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
)
from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Parameter:
    """What an argument may be, in words and as a test that returns the argument as it is passed on."""

    wanted: str
    accept: Callable[[Expression], Expression | None]


def _as(target: DataType, wanted: str) -> Parameter:
    return Parameter(wanted, lambda arg: cast(arg, target) if fits(arg, target) else None)


def _day(arg: Expression) -> Expression | None:
    if arg.type == TIMESTAMP:
        return cast(arg, DATE)
    return cast(arg, DATE) if fits(arg, DATE) else None


def _instant_only(arg: Expression) -> Expression | None:
    return cast(arg, TIMESTAMP) if arg.type == TIMESTAMP or arg.type.kind is Kind.NULL else None


def _bytes(arg: Expression) -> Expression | None:
    return cast(arg, BINARY) if arg.type in (STRING, BINARY) or arg.type.kind is Kind.NULL else None


def _printable(arg: Expression) -> Expression | None:
    # Spark writes numbers, times and truth values as text when it joins texts, and so do we.
    return None if arg.type.kind in (Kind.ARRAY, Kind.STRUCT, Kind.BINARY) else cast(arg, STRING)


def _number(arg: Expression) -> Expression | None:
    return cast(arg, DOUBLE) if arg.type.kind is Kind.NULL else arg if arg.type.is_numeric else None


def _integer(arg: Expression) -> Expression | None:
    return cast(arg, INT) if arg.type.kind is Kind.NULL else arg if arg.type.is_integer else None


TEXT = _as(STRING, "text")
SHORT = _as(INT, "an INT")
LONG = _as(BIGINT, "a BIGINT")
REAL = _as(DOUBLE, "a number")
TRUTH = _as(BOOLEAN, "a BOOLEAN")
INSTANT = _as(TIMESTAMP, "a TIMESTAMP")
INSTANT_ONLY = Parameter("a TIMESTAMP", _instant_only)
SPAN = _as(INTERVAL, "an INTERVAL")
DAY = Parameter("a DATE", _day)
BYTES = Parameter("text or bytes", _bytes)
PRINTABLE = Parameter("something with a text form", _printable)
NUMBER = Parameter("a number", _number)
INTEGER = Parameter("an integer", _integer)
ANY = Parameter("a value", lambda arg: arg)


def accept(name: str, args: tuple[Expression, ...], params: tuple[Parameter, ...]) -> tuple[Expression, ...]:
    """The arguments as the parameters want them; the last parameter repeats."""
    result = []
    for index, arg in enumerate(args):
        param = params[min(index, len(params) - 1)]
        accepted = param.accept(arg)
        if accepted is None:
            mismatch(name, args, _listed(params))
        result.append(accepted)
    return tuple(result)


def returns(result: DataType | Callable[[tuple[Expression, ...]], DataType], *params: Parameter) -> Rule:
    """The rule of a function with one type per parameter."""

    def rule(name: str, args: tuple[Expression, ...]) -> Expression:
        accepted = accept(name, args, params)
        return Call(name, accepted, result if isinstance(result, DataType) else result(accepted))

    return rule


def same(args: tuple[Expression, ...]) -> DataType:
    """The result's type is that of the first argument."""
    return args[0].type


def plain(
    name: str,
    result: DataType | Callable[[tuple[Expression, ...]], DataType],
    params: tuple[Parameter, ...],
    description: str,
    example: str,
    *,
    optional: int = 0,
    **facts: Any,
) -> Function:
    """A function of fixed parameters, of which the last `optional` may be left out."""
    arity = (len(params) - optional, len(params))
    return Function(name, arity, returns(result, *params), description, example, **facts)


def constant(name: str, arg: Expression, what: str) -> Any:
    """The value of an argument that must be a literal."""
    if not isinstance(arg, Literal):
        raise QueryError(
            f"`{name}` wants {what} as a literal", code="not-constant", hint="write the value itself"
        )
    return arg.value


def _listed(params: tuple[Parameter, ...]) -> str:
    return ", ".join(param.wanted for param in params)
