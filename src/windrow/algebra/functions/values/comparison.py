"""Order and equality of values. Python's own, except for NaN: it equals itself and is the greatest number."""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra.expressions import Call
from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.types import DataType, Kind

#: of two values of a type
Relation = Callable[[DataType], Callable[[Value, Value], bool]]


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


def _by(relation: Relation, *, swapped: bool = False, negated: bool = False) -> Strict:
    def build(call: Call) -> Callable[..., Value]:
        holds = relation(call.args[0].type)
        if negated:
            return (lambda a, b: not holds(b, a)) if swapped else (lambda a, b: not holds(a, b))
        return (lambda a, b: holds(b, a)) if swapped else holds

    return build


FUNCTIONS: dict[str, Strict] = {
    "=": _by(equality),
    "<>": _by(equality, negated=True),
    "<": _by(less),
    "<=": _by(less, swapped=True, negated=True),
    ">": _by(less, swapped=True),
    ">=": _by(less, negated=True),
    "not": plain(lambda a: not a),
}
