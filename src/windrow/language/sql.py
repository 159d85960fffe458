"""From tokens to a syntax tree, through sqlglot: the one place that calls it.

Whatever goes wrong inside, only a `QueryError` comes out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow.errors import QueryError
from windrow.language.convert import QueryConverter
from windrow.language.depth import check_depth, check_nesting
from windrow.language.lift import Lifted, lift, refuse_before_select
from windrow.language.shape import check_shape, unexpected
from windrow.language.tokens import Tokens

if TYPE_CHECKING:
    from windrow.language.syntax import Node, QueryExpression, SelectItem

_PREFIX = "SELECT "


def read_query(tokens: Tokens) -> QueryExpression:
    """A SELECT or set operation, from all of the tokens."""
    check_nesting(tokens)
    if not len(tokens):
        raise QueryError("there is no query here", code="syntax", span=tokens.span, hint="write SELECT …")
    if tokens.word(0) not in ("SELECT", "WITH", "("):
        refuse_before_select(tokens)
        raise unexpected(tokens.cut(0, 1), tokens[0].start)
    lifted = lift(tokens, read_expression)
    check_shape(lifted.tokens, lifted.ignored)
    base = lifted.tokens[0].start
    with _only_query_errors(tokens):
        query = _Converter(lifted, base).query(_parsed(lifted.skeleton(), base, lifted.tokens))
    _refuse_unused(lifted)
    check_depth(query)
    return query


def read_expression(tokens: Tokens) -> Node:
    """One expression, from all of the tokens."""
    check_nesting(tokens)
    if not len(tokens):
        raise QueryError("there is no expression here", code="syntax", span=tokens.span, hint="write one")
    lifted = lift(tokens, read_expression)
    with _only_query_errors(tokens):
        items = _Converter(lifted, 0).items(lifted.tokens)
    _refuse_unused(lifted)
    if len(items) != 1 or items[0].alias is not None:
        raise QueryError(
            "one expression is expected here", code="syntax", span=tokens.span, hint="remove the rest"
        )
    check_depth(items[0].expression)
    return items[0].expression


class _Converter(QueryConverter):
    """A converter that can call sqlglot again, for the select list inside a WSTREAM."""

    def items(self, tokens: Tokens) -> tuple[SelectItem, ...]:
        """A select list by itself."""
        begin = self.tokens.at(tokens[0].start)
        check_shape(tokens, self.lifted.ignored_between(begin, begin + len(tokens)))
        base = tokens[0].start - len(_PREFIX)
        tree = _parsed(_PREFIX + self.lifted.skeleton(begin, begin + len(tokens)), base, tokens)
        if not isinstance(tree, exp.Select):
            raise unexpected(tokens, tokens[0].start)
        part = self.fragment(base)
        part.only(tree, {"expressions"})
        return tuple(part.item(item) for item in tree.expressions)


@contextmanager
def _only_query_errors(tokens: Tokens) -> Iterator[None]:
    """A tree that sqlglot makes and nobody has seen before must not end in a traceback."""
    try:
        yield
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise QueryError(
            "this cannot be read",
            code="syntax",
            span=tokens.span,
            hint="write it in a simpler way, with parentheses",
        ) from error


def _parsed(skeleton: str, base: int, tokens: Tokens) -> exp.Expr:
    try:
        trees = sqlglot.parse(skeleton.replace("\n", " "), read="spark")
    except SqlglotError as error:
        raise unexpected(tokens, base + _offset(error, skeleton), str(error)) from None
    if len(trees) != 1 or trees[0] is None:
        raise QueryError(
            "one query is expected here", code="syntax", span=tokens.span, hint="remove the rest"
        )
    return trees[0]


def _offset(error: SqlglotError, skeleton: str) -> int:
    """Where sqlglot stopped. The skeleton is one line, and its columns are those of the tokens' ends."""
    known = getattr(error, "errors", None) or [{}]
    return max(0, (known[0].get("col") or len(skeleton)) - 1)


def _refuse_unused(lifted: Lifted) -> None:
    for window in lifted.windows.values():
        raise QueryError(
            "this window is not on a stream",
            code="window-place",
            span=window.span,
            hint="a window stands directly after a stream or a nested query in FROM",
        )
