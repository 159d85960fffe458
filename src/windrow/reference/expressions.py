"""What an expression means: Spark SQL's answer in ANSI mode and UTC, on plain Python values.

An expression is compiled once, against the columns of its rows, to a closure.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> half = compile_expression(call("/", [ColumnRef("n", INT), Literal(2, INT)]), ["k", "n"])
>>> half(("a", 3), None), half(("a", None), None)
(1.5, None)
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions.values import STRICT
from windrow.algebra.functions.values.base import Value
from windrow.algebra.functions.values.casts import caster
from windrow.algebra.types import DOUBLE, DataType
from windrow.reference.functions import LAZY, Compiled, Row, WindowContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Spark computes the divisor first: where that is NULL, the dividend is not computed and cannot fail
_DIVISIONS = frozenset({"/", "%", "div", "pmod", "try_divide", "try_mod"})

__all__ = ["Compiled", "WindowContext", "compile_expression", "evaluate"]


def compile_expression(expression: Expression, columns: Sequence[str]) -> Compiled:
    """The expression as a function of a row, in the order of `columns`, and of the extent reported."""
    match expression:
        case Literal(value):
            return lambda row, window: value
        case ColumnRef(name):
            index = list(columns).index(name)
            return lambda row, window: row[index]
        case WindowBound(which, kind, Decimal() as step):
            return _strict(lambda tick: _valued(tick, kind, step), (_bound(which),))
        case WindowBound(which):
            return _bound(which)
        case Cast(arg, kind, safe):
            return _strict(caster(arg.type, kind, safe), (compile_expression(arg, columns),))
        case Call(name, args):
            compiled = tuple(compile_expression(arg, columns) for arg in args)
            if name in LAZY:
                return LAZY[name](expression, compiled)
            function = STRICT[name](expression)
            if name in _DIVISIONS:
                return _binary(lambda divisor, dividend: function(dividend, divisor), *reversed(compiled))
            return _strict(function, compiled)
    raise AssertionError(f"cannot evaluate {type(expression).__name__}")


def evaluate(expression: Expression, row: Mapping[str, Value], window: WindowContext | None = None) -> Value:
    """The value of an expression for one row, given by name."""
    return compile_expression(expression, list(row))(tuple(row.values()), window)


def _bound(which: str) -> Compiled:
    field = which.removeprefix("window_")

    def evaluate(_: Row, window: WindowContext | None) -> Value:
        assert window is not None, f"{which} outside of a reported extent"
        return getattr(window, field)

    return evaluate


def _valued(tick: int, kind: DataType, step: Decimal) -> Value:
    """The value of a tick of an attribute with a RESOLUTION."""
    value = tick * Fraction(step)
    return float(value) if kind == DOUBLE else Decimal(f"{value * 10**kind.scale}e-{kind.scale}")


def _strict(function: Callable[..., Value], args: tuple[Compiled, ...]) -> Compiled:
    """NULL in, NULL out. One and two arguments are the common cases, worth their own closures."""
    if len(args) == 1:
        return _unary(function, *args)
    if len(args) == 2:
        return _binary(function, *args)

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        values = [arg(row, window) for arg in args]
        return None if any(value is None for value in values) else function(*values)

    return evaluate


def _unary(function: Callable[..., Value], arg: Compiled) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> Value:
        value = arg(row, window)
        return None if value is None else function(value)

    return evaluate


def _binary(function: Callable[..., Value], left: Compiled, right: Compiled) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> Value:
        first = left(row, window)
        if first is None:
            return None
        second = right(row, window)
        return None if second is None else function(first, second)

    return evaluate
