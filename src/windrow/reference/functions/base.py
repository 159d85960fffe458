"""What an implementation is: a call, whose types are known, becomes a function of values.

A *strict* function never sees NULL: the compiler answers NULL before it is called. A *lazy* one gets
its compiled arguments instead of their values, and computes those it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from windrow.algebra.expressions import Call
from windrow.errors import DataError

Value = Any


class WindowContext(NamedTuple):
    """The extent a row is reported for."""

    start: Value
    end: Value


Row = tuple[Value, ...]
Compiled = Callable[[Row, WindowContext | None], Value]
Strict = Callable[[Call], Callable[..., Value]]
Lazy = Callable[[Call, tuple[Compiled, ...]], Compiled]


def plain(function: Callable[..., Value]) -> Strict:
    """An implementation that does not depend on types."""
    return lambda _: function


def forgiving(implementation: Strict) -> Strict:
    """The `try_` form: NULL where the function fails. Errors of its arguments remain errors."""

    def build(call: Call) -> Callable[..., Value]:
        function = implementation(call)

        def attempt(*values: Value) -> Value:
            try:
                return function(*values)
            except DataError:
                return None

        return attempt

    return build
