"""One total order of values, as Spark orders them: NULL first, NaN last, -0.0 equal to 0.0.

`sortable` gives a value that Python's own comparisons and dictionaries treat that way, also after
pickling (a NaN is equal to nothing, and found in a dictionary only by identity, which pickling
loses). `restored` is the way back. Strings need nothing: code points sort as UTF-8 bytes do.

>>> values = [2.5, float("nan"), None, -0.0]
>>> [restored(key) for key in sorted(map(sortable, values))]
[None, 0.0, 2.5, nan]
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any


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
