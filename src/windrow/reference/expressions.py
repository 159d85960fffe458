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

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions.values import STRICT, casts, comparison, strings
from windrow.algebra.functions.values.base import Value
from windrow.algebra.types import DOUBLE, DataType

# ------------------------------------------------------------ lazy functions
#
# Lazy functions, row by row: they compute the arguments they need.
#
# Strict functions are those of `windrow.algebra.functions.values`.


class WindowContext(NamedTuple):
    """The extent a row is reported for."""

    start: Value
    end: Value


Row = tuple[Value, ...]
Compiled = Callable[[Row, WindowContext | None], Value]
Lazy = Callable[[Call, tuple[Compiled, ...]], Compiled]


def _null_safe(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = comparison.equality(call.args[0].type)
    left, right = args

    def evaluate(row: Row, window: WindowContext | None) -> bool:
        a, b = left(row, window), right(row, window)
        return a is b if a is None or b is None else same(a, b)

    return evaluate


def _in(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = comparison.equality(call.args[0].type)
    value, *items = args

    def evaluate(row: Row, window: WindowContext | None) -> bool | None:
        wanted = value(row, window)
        if wanted is None:
            return None
        unknown = False
        for item in items:
            found = item(row, window)
            if found is None:
                unknown = True
            elif same(wanted, found):
                return True
        return None if unknown else False

    return evaluate


def _extremum(greatest: bool) -> Lazy:
    def build(call: Call, args: tuple[Compiled, ...]) -> Compiled:
        less = comparison.less(call.type)

        def evaluate(row: Row, window: WindowContext | None) -> Value:
            best = None
            for arg in args:
                value = arg(row, window)
                if value is not None and (
                    best is None or (less(best, value) if greatest else less(value, best))
                ):
                    best = value
            return best

        return evaluate

    return build


def _isnan(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> bool:
        value = args[0](row, window)
        return value is not None and value != value

    return evaluate


def _connective(decisive: bool) -> Lazy:
    """AND is decided by the first FALSE, OR by the first TRUE; NULL means that it is not known."""

    def build(_: Call, args: tuple[Compiled, ...]) -> Compiled:
        left, right = args

        def evaluate(row: Row, window: WindowContext | None) -> Value:
            first = left(row, window)
            if first is decisive:
                return decisive
            second = right(row, window)
            if second is decisive:
                return decisive
            return None if first is None or second is None else not decisive

        return evaluate

    return build


def _case(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    branches = tuple(zip(args[::2], args[1::2], strict=False))
    otherwise = args[-1] if len(args) % 2 else lambda row, window: None

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        for condition, value in branches:
            if condition(row, window):
                return value(row, window)
        return otherwise(row, window)

    return evaluate


def _coalesce(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> Value:
        for arg in args:
            value = arg(row, window)
            if value is not None:
                return value
        return None

    return evaluate


def _locate(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    """Where a text stands, from a position on. A NULL position finds nothing, as in Hive."""

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        position = args[2](row, window) if len(args) > 2 else 1
        if position is None:
            return 0
        wanted, text = args[0](row, window), args[1](row, window)
        return None if wanted is None or text is None else strings.locate(wanted, text, position)

    return evaluate


def _concat_ws(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    separator, *texts = args

    def evaluate(row: Row, window: WindowContext | None) -> Value:
        between = separator(row, window)
        if between is None:
            return None
        values = [text(row, window) for text in texts]
        return between.join(value for value in values if value is not None)

    return evaluate


LAZY: dict[str, Lazy] = {
    "<=>": _null_safe,
    "in": _in,
    "greatest": _extremum(greatest=True),
    "least": _extremum(greatest=False),
    "isnan": _isnan,
    "array": lambda _, args: lambda row, window: tuple(arg(row, window) for arg in args),
    "named_struct": lambda _, args: lambda row, window: tuple(arg(row, window) for arg in args[1::2]),
    "and": _connective(False),
    "or": _connective(True),
    "is_null": lambda _, args: lambda row, window: args[0](row, window) is None,
    "is_not_null": lambda _, args: lambda row, window: args[0](row, window) is not None,
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "locate": _locate,
    "concat_ws": _concat_ws,
}

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
            return _strict(casts.caster(arg.type, kind, safe), (compile_expression(arg, columns),))
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
