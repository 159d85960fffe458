"""Exact numbers in columns: decimals as unscaled integers, and sums too wide for 64 bits as limbs.

A DECIMAL is an integer and a scale. Up to 18 digits the integers fit 64 bits and numpy computes them;
wider ones are arrays of Python integers: slower, and just as exact.

A *limb* holds 32 bits of an integer in 64, so that 2³¹ of them can be added, and subtracted again, without
overflow and without rounding: value = Σ limbᵢ·2³²ⁱ, where only the last limb is signed at first. A total
thus exceeds its type only if the true total does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra.aggregates.numbers import half_up
from windrow.algebra.types import MAX_PRECISION, DataType
from windrow.windows.domain import Flags, Ints, Numbers

LONG_DIGITS = 18
_BITS = 32
_MASK = (1 << _BITS) - 1


def unscaled(column: pl.Series) -> Numbers:
    """The integers of a decimal column without NULLs: 64-bit up to 18 digits, else Python's.

    >>> from decimal import Decimal
    >>> unscaled(pl.Series([Decimal("1.25"), Decimal("-3")], dtype=pl.Decimal(10, 2)))
    array([ 125, -300])
    """
    words = _words(column)
    if isinstance(column.dtype, pl.Decimal) and column.dtype.precision <= LONG_DIGITS:
        return words[:, 0].copy()
    low, high = words[:, 0].view(np.uint64).astype(object), words[:, 1].astype(object)
    return np.asarray(high * (1 << 64) + low, dtype=object)


def decimal_column(values: Numbers, kind: DataType) -> pl.Series:
    """Unscaled integers, which must fit, as a decimal column."""
    if values.dtype == object:
        data = b"".join(int(value).to_bytes(16, "little", signed=True) for value in values)
    else:
        data = np.column_stack([values, values >> 63]).astype("<i8").tobytes()
    arrow = pa.decimal128(kind.precision, kind.scale)
    return pl.Series(pa.Array.from_buffers(arrow, len(values), [None, pa.py_buffer(data)]))


def too_long(values: Numbers, kind: DataType) -> Flags:
    """Where an unscaled integer has more digits than its type."""
    limit = 10**kind.precision
    if values.dtype != object and kind.precision > LONG_DIGITS:
        return np.zeros(len(values), dtype=bool)
    return np.asarray((values <= -limit) | (values >= limit), dtype=bool)


def rescaled(values: Numbers, source: int, target: int) -> Numbers:
    """The integers at another scale, rounded half up (away from zero).

    >>> rescaled(np.array([125, -125, 124]), 2, 1)
    array([13, -13, 12], dtype=object)
    """
    if source == target:
        return values
    if target > source:
        return np.asarray(values.astype(object) * 10 ** (target - source), dtype=object)
    unit = 10 ** (source - target)
    return ints(half_up(int(value), unit) for value in values)


def ints(values: Any) -> Numbers:
    """Python integers as an array of objects."""
    listed = list(values)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def narrow(values: Numbers) -> Numbers:
    """As 64-bit integers, where all fit."""
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values


# ------------------------------------------------------------ limbs


def limb_count(kind: DataType) -> int:
    """How many limbs a value of the type needs; one holds a whole INT."""
    if kind.is_integer and kind.bounds[1] < 1 << _BITS:
        return 1
    return 4 if kind.precision > LONG_DIGITS else 2


def split(values: Numbers, count: int) -> list[Ints]:
    """Integers as limbs, least first."""
    if count == 1:
        return [values.astype(np.int64)]
    limbs = [np.asarray((values >> _BITS * i) & _MASK).astype(np.int64) for i in range(count - 1)]
    return [*limbs, np.asarray(values >> _BITS * (count - 1)).astype(np.int64)]


def squares(values: Numbers, count: int) -> list[Ints]:
    """The squares of integers of `count` limbs, as twice as many limbs."""
    small = values.dtype != object and bool(np.all((values < 1 << 31) & (values > -(1 << 31))))
    if small:
        return split(values.astype(np.int64) * values.astype(np.int64), 2 * count)
    wide = values.astype(object)
    return split(np.asarray(wide * wide, dtype=object), 2 * count)


def joined(limbs: Sequence[Ints]) -> Numbers:
    """The integers again: 64-bit where all fit, else Python's.

    >>> most = np.array([(1 << 63) - 1, 5])
    >>> doubled = [limb * 2 for limb in split(most, 2)]
    >>> joined(doubled).tolist() == [(1 << 64) - 2, 10]
    True
    """
    if len(limbs) == 1:
        return limbs[0]
    carry = np.zeros(len(limbs[0]), dtype=np.int64)
    digits = []
    for limb in limbs:
        digits.append((limb + carry) & _MASK)
        carry = (limb + carry) >> _BITS
    low = digits[0] | (digits[1] << _BITS)
    rest = [*digits[2:], carry]
    if all(bool(np.all(part == (low >> 63 if part is carry else (low >> 63) & _MASK))) for part in rest):
        return low
    total = carry.astype(object)
    for digit in reversed(digits):
        total = total * (1 << _BITS) + digit.astype(object)
    return np.asarray(total, dtype=object)


def _words(column: pl.Series) -> Ints:
    scale = column.dtype.scale if isinstance(column.dtype, pl.Decimal) else 0
    array = column.rechunk().to_arrow().cast(pa.decimal128(MAX_PRECISION, scale))
    words = np.frombuffer(array.buffers()[1], dtype="<i8").reshape(-1, 2)
    return words[array.offset : array.offset + len(array)]
