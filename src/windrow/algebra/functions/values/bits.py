"""Bits of integers in two's complement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.algebra.types import INTEGER_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Call


def wrapped(value: int, bits: int) -> int:
    """The value's lowest bits, read as a signed integer.

    >>> wrapped(130, 8)
    -126
    """
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _shift_left(call: Call) -> Callable[..., Value]:
    bits = INTEGER_BITS[call.type.kind]
    return lambda value, distance: wrapped(value << distance % bits, bits)


def _shift_right(call: Call) -> Callable[..., Value]:
    bits = INTEGER_BITS[call.type.kind]
    return lambda value, distance: value >> distance % bits


FUNCTIONS: dict[str, Strict] = {
    "&": plain(lambda a, b: a & b),
    "|": plain(lambda a, b: a | b),
    "^": plain(lambda a, b: a ^ b),
    "~": plain(lambda a: ~a),
    "shiftleft": _shift_left,
    "shiftright": _shift_right,
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": plain(lambda a: (a & (1 << 64) - 1).bit_count()),
}
