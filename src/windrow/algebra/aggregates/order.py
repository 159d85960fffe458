"""Order and hashes of values.

One total order of values, as Spark orders them: NULL first, NaN last, -0.0 equal to 0.0.

`sortable` gives a value that Python's own comparisons and dictionaries treat that way, also after
pickling (a NaN is equal to nothing, and found in a dictionary only by identity, which pickling
loses). `restored` is the way back. Strings need nothing: code points sort as UTF-8 bytes do.

>>> values = [2.5, float("nan"), None, -0.0]
>>> [restored(key) for key in sorted(map(sortable, values))]
[None, 0.0, 2.5, nan]

A 64-bit hash of values is the same in every process, on every machine and in every version.

Sketches place values by it, and sketches are kept in checkpoints, so it must never change. Equal values have
equal hashes: -0.0 hashes as 0.0, every NaN as one, a decimal by its digits at the scale of its type. Values
of up to 64 bits have different hashes if they are different. `windrow.kernels.columnar.hashing` is the same
on columns.

The last step is the finaliser of SplitMix64 (Steele, Lea and Flood 2014); longer values are chained through
it eight bytes at a time.

>>> hash64("item"), hash64(7), hash64(-0.0) == hash64(0.0)
(5969999345467545438, 7191089600892374487, True)
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from enum import Enum
from typing import Any

from windrow.algebra.types import DataType

GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
MASK = (1 << 64) - 1
_EXACT = Context(prec=100)


def hash64(value: Any, kind: DataType | None = None) -> int:
    """The hash of a value that is not NULL; `kind` says at which scale a decimal is meant."""
    match value:
        case bool() | int():
            return mixed(value & MASK)
        case float():
            canonical = value + 0.0 if value == value else math.nan
            return mixed(int.from_bytes(struct.pack("<d", canonical), "little"))
        case Decimal():
            whole = _unscaled(value, kind)
            return chained(mixed(whole & MASK), (whole >> 64) & MASK)
        case str():
            return _of_bytes(value.encode("utf-8", "surrogatepass"))
        case bytes():
            return _of_bytes(value)
    raise TypeError(f"no hash of {type(value).__name__}")


def mixed(word: int) -> int:
    """64 bits, each of which depends on all bits of `word`; different words stay different."""
    word = (word + GOLDEN) & MASK
    word = ((word ^ (word >> 30)) * FIRST) & MASK
    word = ((word ^ (word >> 27)) * SECOND) & MASK
    return word ^ (word >> 31)


def chained(before: int, word: int) -> int:
    """The hash of what was hashed before, followed by one more word."""
    return mixed(before ^ word)


def _of_bytes(data: bytes) -> int:
    found = mixed(len(data))
    for start in range(0, len(data), 8):
        found = chained(found, int.from_bytes(data[start : start + 8], "little"))
    return found


def _unscaled(value: Decimal, kind: DataType | None) -> int:
    exponent = value.as_tuple().exponent
    scale = kind.scale if kind is not None else max(0, -exponent) if isinstance(exponent, int) else 0
    return int(value.scaleb(scale, _EXACT))


class OrderEnd(Enum):
    """Stands for NULL below, and for NaN above, every other value."""

    NULL = -1
    NAN = 1

    def __lt__(self, other: Any) -> bool:
        return self is OrderEnd.NULL and other is not OrderEnd.NULL

    def __gt__(self, other: Any) -> bool:
        return self is OrderEnd.NAN and other is not OrderEnd.NAN

    def __le__(self, other: Any) -> bool:
        return self is other or self is OrderEnd.NULL

    def __ge__(self, other: Any) -> bool:
        return self is other or self is OrderEnd.NAN


def sortable(value: Any) -> Any:
    """A stand-in for `value` that compares by the order above; other than NULL, NaN and -0.0: itself."""
    if isinstance(value, float):
        return value + 0.0 if value == value else OrderEnd.NAN
    if value is None:
        return OrderEnd.NULL
    if isinstance(value, tuple):
        return tuple(map(sortable, value))
    return value


def restored(key: Any) -> Any:
    """The value `key` stands for."""
    if isinstance(key, OrderEnd):
        return None if key is OrderEnd.NULL else math.nan
    if isinstance(key, tuple):
        return tuple(map(restored, key))
    return key
