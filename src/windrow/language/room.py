"""Room to recurse, so that what can be read does not depend on how deep the caller is already.

Python's recursion limit counts the caller's calls as well. A text within the limits of `nesting` needs up to
two thousand calls, in sqlglot and here; whoever runs out of them gets a thread with a stack of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_CALLS = 10_000
_STACK = 64 << 20
#: the recursion limit and the size of new stacks belong to the process
_LOCK = threading.Lock()

P = ParamSpec("P")
T = TypeVar("T")


class _Room(threading.Thread):
    """A thread for one call."""


def has_room() -> bool:
    """Whether this is a stack of its own: to run out of it is an answer."""
    return isinstance(threading.current_thread(), _Room)


def roomy(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which must be pure, begun again on a stack of its own where that of its caller is full.

    >>> @roomy
    ... def depth(levels: int) -> int:
    ...     return 1 + depth.__wrapped__(levels - 1) if levels else 0
    >>> depth(3000)
    3000
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if has_room():
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except RecursionError:
            pass
        return _apart(lambda: function(*args, **kwargs))

    return run


def _apart(call: Callable[[], T]) -> T:
    """What a call gives or raises on a stack of its own."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _CALLS))
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001  # raised again where the result is awaited
            errors.append(error)
        finally:
            sys.setrecursionlimit(limit)

    with _LOCK:
        size = threading.stack_size(_STACK)
        try:
            thread = _Room(target=work, daemon=True)
            thread.start()
        finally:
            threading.stack_size(size)
        thread.join()
    for error in errors:
        raise error
    return results[0]
