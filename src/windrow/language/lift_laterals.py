"""`LATERAL VIEW [OUTER] explode(x) t AS a`, which follows FROM. sqlglot is not shown it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.language.lift_literals import Cursor
from windrow.language.syntax import Unnesting
from windrow.language.vocabulary import is_keyword

if TYPE_CHECKING:
    from windrow.language.lift import Lifted
    from windrow.language.windows import ReadExpression

UNNESTING = ("UNNEST", "EXPLODE", "POSEXPLODE")


def lift_laterals(lifted: Lifted, expression: ReadExpression) -> None:
    """Take all LATERAL VIEWs."""
    tokens = lifted.tokens
    for index in range(len(tokens)):
        if tokens.words(index, 2) == ("LATERAL", "VIEW"):
            cursor = Cursor(tokens)
            cursor.index = index + 2
            lifted.laterals[tokens[index].start] = _lateral(cursor, index, expression)
            lifted.blank(*range(index, cursor.index))


def _lateral(cursor: Cursor, begin: int, expression: ReadExpression) -> Unnesting:
    outer = cursor.take("OUTER")
    function, place = cursor.word.removesuffix("_OUTER"), cursor.here.span if not cursor.done else None
    if function not in UNNESTING:
        raise QueryError(
            "LATERAL VIEW takes explode(…) or posexplode(…)",
            code="not-supported",
            span=place or cursor.tokens[begin].span,
            hint="write LATERAL VIEW explode(x) t AS a",
        )
    outer = outer or cursor.word.endswith("_OUTER")
    cursor.index += 1
    array = expression(cursor.parenthesis())
    alias = cursor.name("a name") if _is_name(cursor) else None
    columns = [cursor.name("a column")] if cursor.take("AS") else []
    while columns and cursor.take(","):
        columns.append(cursor.name("a column"))
    return Unnesting(cursor.span_since(begin), function, array, alias, tuple(columns), outer)


def _is_name(cursor: Cursor) -> bool:
    return not cursor.done and cursor.here.is_name and not is_keyword(cursor.tokens, cursor.index)
