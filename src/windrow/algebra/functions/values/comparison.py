"""Order and equality of values. Python's own, except for NaN: it equals itself and is the greatest number."""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.expressions import Call
from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.types import DataType, Kind


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


FUNCTIONS: dict[str, Strict] = {
    "=": _equal,
    "<>": _unequal,
    "<": _less,
    "<=": _at_most,
    ">": _greater,
    ">=": _at_least,
    "not": plain(lambda a: not a),
}
