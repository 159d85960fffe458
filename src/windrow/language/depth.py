"""How deep a text may go. Both limits are counted, before anything recurses over what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from windrow.errors import QueryError, Span
from windrow.language.syntax import Node, Query
from windrow.language.tokens import Tokens
from windrow.language.vocabulary import ends_operand

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
        depth = 0 if isinstance(node, Query) else depth + 1
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
