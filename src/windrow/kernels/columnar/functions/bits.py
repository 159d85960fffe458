"""Bits of integer columns in two's complement; a shift takes its distance modulo the width, as in Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.types import INTEGER_BITS
from windrow.kernels.columnar.functions.base import Operation, Strict, longs, plain, total

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call


def _shift(left: bool) -> Strict:
    def build(call: Call) -> Operation:
        width = INTEGER_BITS[call.type.kind]

        def shifted(value: pl.Series, distance: pl.Series) -> pl.Series:
            bits, places = value.to_numpy(), (distance.to_numpy() % width).astype(value.to_numpy().dtype)
            return pl.Series(np.left_shift(bits, places) if left else np.right_shift(bits, places))

        return total(shifted)

    return build


FUNCTIONS: dict[str, Strict] = {
    "&": plain(lambda a, b: pl.Series(a.to_numpy() & b.to_numpy())),
    "|": plain(lambda a, b: pl.Series(a.to_numpy() | b.to_numpy())),
    "^": plain(lambda a, b: pl.Series(a.to_numpy() ^ b.to_numpy())),
    "~": plain(lambda a: pl.Series(~a.to_numpy())),
    "shiftleft": _shift(left=True),
    "shiftright": _shift(left=False),
    # a narrow negative number is widened first, so its sign counts 64 times
    "bit_count": plain(lambda a: pl.Series(np.bitwise_count(longs(a).view(np.uint64)))),
}
