"""Bits of integers. Shifts take their distance modulo the width and never overflow, as in Java."""

from __future__ import annotations

from windrow.algebra.expressions import Call, Expression
from windrow.algebra.functions.coercion import cast
from windrow.algebra.functions.registry import INTEGER, SHORT, Function, accept, returns, same
from windrow.algebra.types import BIGINT, INT, common_type


def _bitwise(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = accept(name, args, (INTEGER,))
    target = common_type(left.type, right.type)
    assert target is not None
    return Call(name, (cast(left, target), cast(right, target)), target)


def _shift(name: str, args: tuple[Expression, ...]) -> Expression:
    value, distance = accept(name, args, (INTEGER, SHORT))
    target = BIGINT if value.type == BIGINT else INT
    return Call(name, (cast(value, target), distance), target)


FUNCTIONS = (
    Function("&", (2, 2), _bitwise, "bits set in both", "12 & 10 -> 8", sql="{0} & {1}", precedence=66),
    Function(
        "^", (2, 2), _bitwise, "bits set in one of both", "12 ^ 10 -> 6", sql="{0} ^ {1}", precedence=64
    ),
    Function(
        "|", (2, 2), _bitwise, "bits set in one or both", "12 | 10 -> 14", sql="{0} | {1}", precedence=62
    ),
    Function("~", (1, 1), returns(same, INTEGER), "all bits turned", "~5 -> -6", sql="~{0}", precedence=90),
    Function("shiftleft", (2, 2), _shift, "bits moved up", "shiftleft(3, 2) -> 12", aliases=("<<",)),
    Function(
        "shiftright",
        (2, 2),
        _shift,
        "bits moved down, keeping the sign",
        "shiftright(-8, 1) -> -4",
        aliases=(">>",),
    ),
    Function("bit_count", (1, 1), returns(INT, INTEGER), "how many bits are set", "bit_count(7) -> 3"),
)
