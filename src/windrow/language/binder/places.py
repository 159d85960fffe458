"""Where in the text an error belongs.

Plan nodes, windows and functions refuse what has no meaning, but know no text. Whoever binds a piece of
syntax does so `at` its node, and an error that has no place yet gets the place of the innermost one.

>>> from windrow.language.syntax import Star
>>> try:
...     with at(Star(Span(0, 9))), at(Star(Span(4, 5))):
...         raise QueryError("no")
... except QueryError as error:
...     print(error.span)
Span(start=4, end=5)
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn

from windrow.errors import QueryError, Span
from windrow.language.shape import children
from windrow.language.syntax import Node, QueryExpression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Span", "at", "mistake", "rebuilt", "refuse", "walk"]


@contextmanager
def at(node: Node) -> Iterator[None]:
    """Errors without a place, raised inside, are about `node`."""
    try:
        yield
    except QueryError as error:
        if error.span is None and error.text is None:
            error.span = node.span
        raise


def mistake(node: Node, message: str, code: str, hint: str | None) -> QueryError:
    """What is wrong with a piece of the text."""
    return QueryError(message, code=code, span=node.span, hint=hint)


def refuse(node: Node, message: str, code: str, hint: str | None) -> NoReturn:
    """Say what is wrong with a piece of the text."""
    raise mistake(node, message, code, hint)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text; nested queries are not entered."""
    yield node
    for child in children(node):
        if not isinstance(child, QueryExpression):
            yield from walk(child)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with `change` applied to each part of it that is syntax; nested queries stay as they are."""
    changed: dict[str, Any] = {}
    for part in fields(node):
        value = getattr(node, part.name)
        if isinstance(value, Node) and not isinstance(value, QueryExpression):
            changed[part.name] = change(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[part.name] = tuple(change(each) for each in value)
        elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
            changed[part.name] = tuple((change(key), descending) for key, descending in value)
    return replace(node, **changed)
