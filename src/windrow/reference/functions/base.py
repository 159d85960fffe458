"""What a lazy function is: it gets compiled arguments, not values, and computes those it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windrow.algebra.expressions import Call
from windrow.algebra.functions.values.base import Value


class WindowContext(NamedTuple):
    """The extent a row is reported for."""

    start: Value
    end: Value


Row = tuple[Value, ...]
Compiled = Callable[[Row, WindowContext | None], Value]
Lazy = Callable[[Call, tuple[Compiled, ...]], Compiled]
