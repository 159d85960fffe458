"""Text to syntax trees: the entrance to the language.

The way of a text: `tokens` cuts it up, `statements` finds the statements, `lift` takes windows, stream
words and literals out of each SELECT, and `sql` has sqlglot read what is left and turns its tree into ours
(`syntax`). All that goes wrong is a `QueryError` that knows its place in the text.

>>> parse_query("SELECT max(price) FROM bids [RANGE 4 MINUTES SLIDE 1 MINUTE]").sources[0].window.clause.slide
Quantity(value=1, unit='MINUTES')
>>> parse_query("SELECT max(price) FORM bids")
Traceback (most recent call last):
windrow.errors.QueryError: error[syntax]: unexpected `FORM`
  --> 1:19
  |
1 | SELECT max(price) FORM bids
  |                   ^^^^
  = did you mean `FROM`?
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windrow.errors import QueryError, Span
from windrow.language.columns import StreamOptions, read_columns, read_stream_options
from windrow.language.lift_literals import Cursor
from windrow.language.shape import check_nesting, has_room, roomy, too_deep
from windrow.language.sql import read_expression, read_query
from windrow.language.statements import read_script
from windrow.language.syntax import ColumnDef, Node, QueryExpression, Statement
from windrow.language.tokens import Tokens, scan
from windrow.windows.units import Quantity

__all__ = [
    "parse_columns",
    "parse_expression",
    "parse_quantity",
    "parse_query",
    "parse_script",
    "parse_stream_options",
]


@roomy
def parse_script(text: str, file: str | None = None) -> tuple[Statement, ...]:
    """The statements of a script.

    >>> [type(statement).__name__ for statement in parse_script("SHOW STREAMS; DROP QUERY top;")]
    ['Show', 'Drop']
    """
    with _located(text, file):
        return tuple(read_script(scan(text)))


@roomy
def parse_query(text: str) -> QueryExpression:
    """One SELECT, or SELECTs joined by UNION ALL and EXCEPT ALL; a `;` may end it."""
    with _located(text):
        return read_query(_only_statement(scan(text)))


def parse_columns(text: str) -> tuple[ColumnDef, ...]:
    """The columns of a stream or table.

    >>> [(column.name, column.type_text) for column in parse_columns("a BIGINT, d DECIMAL(10, 2)")]
    [('a', 'BIGINT'), ('d', 'DECIMAL(10, 2)')]
    """
    with _located(text):
        return read_columns(_checked(scan(text)))


@roomy
def parse_stream_options(text: str) -> StreamOptions:
    """What follows the columns of CREATE STREAM.

    >>> options = parse_stream_options("WATTR ts SLACK 2 SECONDS LATE KEEP")
    >>> options.wattr, str(options.progress.amount), options.late
    ('ts', '2 SECONDS', 'KEEP')
    """
    with _located(text):
        return read_stream_options(Cursor(_checked(scan(text))))


def parse_quantity(text: str) -> Quantity:
    """A number with its unit, as in SLACK or EVERY.

    >>> print(parse_quantity("5 min"))
    5 MINUTES
    """
    with _located(text):
        cursor = Cursor(_checked(scan(text)))
        quantity = cursor.quantity("a number, as in 5 SECONDS,")
        cursor.finish()
        return quantity


@roomy
def parse_expression(text: str) -> Node:
    """One expression.

    >>> parse_expression("price * 2").function
    '*'
    """
    with _located(text):
        return read_expression(_checked(scan(text)))


def _checked(tokens: Tokens) -> Tokens:
    check_nesting(tokens)
    tokens.partner  # noqa: B018  # refuses parentheses without a partner
    return tokens


def _only_statement(tokens: Tokens) -> Tokens:
    ends = [index for index, token in enumerate(tokens) if token.word == ";"]
    end = ends[0] if ends else len(tokens)
    rest = next((token for token in tokens.items[end:] if token.word != ";"), None)
    if rest is not None:
        raise QueryError(
            "there is more than one statement",
            code="syntax",
            span=rest.span,
            hint="one query is expected here; scripts may hold many statements",
        )
    return tokens.cut(0, end)


@contextmanager
def _located(text: str, file: str | None = None) -> Iterator[None]:
    try:
        yield
    except QueryError as error:
        raise error.located(text, file, Span(0, len(text))) from None
    except RecursionError:
        if not has_room():
            raise
        raise too_deep(Span(0, len(text))).located(text, file) from None
