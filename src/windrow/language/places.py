"""Where things stand: spans of nodes from the spans of their parts, and errors that learn their place.

Also sets of words, which half of the language needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.errors import QueryError, Span

if TYPE_CHECKING:
    from windrow.language.tokens import Tokens


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set.

    >>> sorted(words("RANGE ROWS"))
    ['RANGE', 'ROWS']
    """
    return frozenset(text.split())


def hull(spans: Iterable[Span]) -> Span:
    """The least span that holds all of them.

    >>> hull([Span(4, 6), Span(1, 2)])
    Span(start=1, end=6)
    """
    every = list(spans)
    return Span(min(span.start for span in every), max(span.end for span in every))


def grown(
    span: Span, tokens: Tokens, left: Sequence[Collection[str]] = (), right: Sequence[Collection[str]] = ()
) -> Span:
    """The span with the keywords and signs beside it that belong to it, one of each set, nearest first."""
    start, end = span.start, span.end
    before = tokens.before(start)
    for words_before in left:
        if tokens.word(before) not in words_before:
            break
        start, before = tokens[before].start, before - 1
    after = tokens.at(end)
    for words_after in right:
        if tokens.word(after) not in words_after:
            break
        end, after = tokens[after].end, after + 1
    return Span(start, end)


def enclosed(span: Span, tokens: Tokens) -> Span:
    """The span with the parentheses directly around it."""
    before, after = tokens.before(span.start), tokens.at(span.end)
    if tokens.word(before) == "(" and tokens.partner.get(before) == after:
        return Span(tokens[before].start, tokens[after].end)
    return span


def closed(span: Span, tokens: Tokens) -> Span:
    """The span up to the end of all parentheses that are opened in it."""
    inside = range(tokens.at(span.start), tokens.at(span.end))
    closing = [tokens.partner[index] for index in inside if tokens.word(index) == "("]
    return Span(span.start, max([span.end, *(tokens[index].end for index in closing)]))


@contextmanager
def placed(span: Span) -> Iterator[None]:
    """Errors raised inside that do not know their place are about this one."""
    try:
        yield
    except QueryError as error:
        error.span = error.span or span
        raise
