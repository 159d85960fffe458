"""What the meaning of a strict function is: a call, whose types are known, becomes a function of values.

It never sees NULL: whoever calls it answers NULL itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windrow.algebra.expressions import Call
from windrow.errors import DataError

Value = Any
Strict = Callable[[Call], Callable[..., Value]]


def plain(function: Callable[..., Value]) -> Strict:
    """An implementation that does not depend on types."""
    return lambda _: function


def forgiving(implementation: Strict) -> Strict:
    """The `try_` form: NULL where the function fails. Errors of its arguments remain errors."""
    return lambda call: attempt(implementation(call))


def attempt(function: Callable[..., Value]) -> Callable[..., Value]:
    """The function, NULL where it fails."""

    def attempted(*values: Value) -> Value:
        try:
            return function(*values)
        except DataError:
            return None

    return attempted
