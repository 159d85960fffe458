"""How deep a text may go. Both limits are counted, before anything recurses over what is counted.

Room to recurse, so that what can be read does not depend on how deep the caller is already.

Python's recursion limit counts the caller's calls as well. A text within the limits of `nesting` needs up to
two thousand calls, in sqlglot and here; whoever runs out of them gets a thread with a stack of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import ParamSpec, TypeVar

from windrow.errors import QueryError, Span
from windrow.language.syntax import Node, QueryExpression
from windrow.language.tokens import Tokens
from windrow.language.vocabulary import ends_operand

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


#: parentheses, brackets, CASE and signs inside one another
MAX_NESTING = 32
#: operators and calls above one another, of which `a + b + c` has two; sides of a set operation
MAX_DEPTH = 100

_PARTNER = {")": "(", "]": "[", "END": "CASE"}
_OPENING = frozenset(_PARTNER.values())
_SIGNS = frozenset({"NOT", "-", "+", "~", "!"})


def too_deep(span: Span) -> QueryError:
    """The refusal of what only a machine writes."""
    return QueryError(
        "this is nested too deeply",
        code="too-deep",
        span=span,
        hint="take inner parts out into nested queries or WITH; write long chains of OR as IN (…)",
    )


def check_nesting(tokens: Tokens) -> None:
    """Refuse a statement of too many levels."""
    opened: list[str] = []
    signs = 0
    for index, token in enumerate(tokens):
        signs = signs + 1 if token.word in _SIGNS and not ends_operand(tokens, index - 1) else 0
        if token.word in _OPENING:
            opened.append(token.word)
        elif opened and opened[-1] == _PARTNER.get(token.word):
            opened.pop()
        if len(opened) + signs > MAX_NESTING and _levels(opened) + signs > MAX_NESTING:
            raise too_deep(token.span)


def _levels(opened: list[str]) -> int:
    """A window in its bracket is no level of nesting, but brackets inside brackets are."""
    return len(opened) - ("[" in opened)


def check_depth(root: Node) -> None:
    """Refuse expressions with too many operators above one another; each query in it counts by itself."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise too_deep(root.span)
        depth = 0 if isinstance(node, QueryExpression) else depth + 1
        waiting += [(child, depth) for child in children(node)]


def children(node: Node) -> Sequence[Node]:
    """The parts of a node that are syntax themselves, in the order of the text."""
    found: list[Node] = []
    for part in fields(node):
        _collect(getattr(node, part.name), found)
    return found


def _collect(value: object, found: list[Node]) -> None:
    if isinstance(value, Node):
        found.append(value)
    elif isinstance(value, tuple):
        for item in value:
            _collect(item, found)
