"""Order and equality of values. Python's own, except for NaN: it equals itself and is the greatest number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.types import DataType, Kind
from windrow.reference.functions.base import Lazy, Strict, Value, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Call
    from windrow.reference.functions.base import Compiled, Row, WindowContext


def equality(kind: DataType) -> Callable[[Value, Value], bool]:
    """When two values of the type are equal; inside arrays and structs NULL equals NULL."""
    if kind.is_fractional:
        return lambda a, b: bool(a == b or (a != a and b != b))
    if kind.fields:
        key = order(kind)
        return lambda a, b: bool(key(a) == key(b))
    return lambda a, b: bool(a == b)


def order(kind: DataType) -> Callable[[Value], Value]:
    """A key that sorts values as Spark does: NULL first, NaN last."""
    if kind.is_fractional:
        return lambda a: (a != a, 0.0 if a != a else a)
    if kind.kind is Kind.ARRAY:
        element = nullable(order(kind.fields[0][1]))
        return lambda a: tuple(element(each) for each in a)
    if kind.kind is Kind.STRUCT:
        keys = [nullable(order(inner)) for _, inner in kind.fields]
        return lambda a: tuple(key(each) for key, each in zip(keys, a, strict=True))
    return lambda a: a


def nullable(key: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """The key for values that may be NULL, which sorts first."""
    return lambda a: (False,) if a is None else (True, key(a))


def less(kind: DataType) -> Callable[[Value, Value], bool]:
    """Strict order of two values of the type."""
    if kind.is_fractional:
        return lambda a, b: bool(a < b or (a == a and b != b))
    if kind.fields:
        key = order(kind)
        return lambda a, b: bool(key(a) < key(b))
    return lambda a, b: bool(a < b)


def _equal(call: Call) -> Callable[..., Value]:
    return equality(call.args[0].type)


def _unequal(call: Call) -> Callable[..., Value]:
    same = equality(call.args[0].type)
    return lambda a, b: not same(a, b)


def _less(call: Call) -> Callable[..., Value]:
    return less(call.args[0].type)


def _greater(call: Call) -> Callable[..., Value]:
    below = less(call.args[0].type)
    return lambda a, b: below(b, a)


def _at_most(call: Call) -> Callable[..., Value]:
    below = less(call.args[0].type)
    return lambda a, b: not below(b, a)


def _at_least(call: Call) -> Callable[..., Value]:
    below = less(call.args[0].type)
    return lambda a, b: not below(a, b)


def _null_safe(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = equality(call.args[0].type)
    left, right = args

    def evaluate(row: Row, window: WindowContext | None) -> bool:
        a, b = left(row, window), right(row, window)
        return a is b if a is None or b is None else same(a, b)

    return evaluate


def _in(call: Call, args: tuple[Compiled, ...]) -> Compiled:
    same = equality(call.args[0].type)
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


def _extremum(better: Callable[[DataType], Callable[[Value, Value], bool]]) -> Lazy:
    def build(call: Call, args: tuple[Compiled, ...]) -> Compiled:
        beats = better(call.type)

        def evaluate(row: Row, window: WindowContext | None) -> Value:
            best = None
            for arg in args:
                value = arg(row, window)
                if value is not None and (best is None or beats(value, best)):
                    best = value
            return best

        return evaluate

    return build


def _greater_than(kind: DataType) -> Callable[[Value, Value], bool]:
    below = less(kind)
    return lambda a, b: below(b, a)


def _isnan(_: Call, args: tuple[Compiled, ...]) -> Compiled:
    def evaluate(row: Row, window: WindowContext | None) -> bool:
        value = args[0](row, window)
        return value is not None and value != value

    return evaluate


FUNCTIONS: dict[str, Strict] = {
    "=": _equal,
    "<>": _unequal,
    "<": _less,
    "<=": _at_most,
    ">": _greater,
    ">=": _at_least,
    "not": plain(lambda a: not a),
}

LAZY: dict[str, Lazy] = {
    "<=>": _null_safe,
    "in": _in,
    "greatest": _extremum(_greater_than),
    "least": _extremum(less),
    "isnan": _isnan,
}
