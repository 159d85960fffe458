"""The columns of a declaration: names with types, and the KEY of a table."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import QueryError, Span
from windrow.language.cursor import Cursor
from windrow.language.syntax import ColumnDef
from windrow.language.tokens import Kind, Tokens


@dataclass(frozen=True)
class Key:
    """KEY (a, b) and where it stands."""

    names: tuple[str, ...]
    span: Span


def declared_columns(cursor: Cursor) -> tuple[tuple[ColumnDef, ...], Key | None]:
    """The columns in parentheses, and the KEY among them."""
    begin = cursor.index
    inside = cursor.parenthesis()
    if not len(inside):
        span = cursor.span_since(begin)
        raise QueryError("there are no columns", code="syntax", span=span, hint="write name TYPE, …")
    keys: list[Key] = []
    columns = read_columns(inside, keys)
    if len(keys) > 1:
        raise QueryError("KEY is there twice", code="syntax", span=keys[1].span, hint="write KEY (a, b)")
    return columns, keys[0] if keys else None


def read_columns(tokens: Tokens, keys: list[Key] | None = None) -> tuple[ColumnDef, ...]:
    """Columns with their types, from all of the tokens; a KEY goes to `keys`, if that is given."""
    cursor, found = Cursor(tokens), list[ColumnDef]()
    while True:
        if cursor.next_is("PRIMARY", "KEY"):
            cursor.take("PRIMARY")
        if keys is not None and cursor.next_is("KEY", "("):
            keys.append(_key(cursor))
        else:
            found.append(_column(cursor))
        if cursor.done:
            return tuple(found)
        cursor.expect(",")


def _key(cursor: Cursor) -> Key:
    begin = cursor.index
    cursor.take("KEY")
    inside = Cursor(cursor.parenthesis())
    names = [inside.name("a column")]
    while inside.take(","):
        names.append(inside.name("a column"))
    inside.finish()
    return Key(tuple(names), cursor.span_since(begin))


def _column(cursor: Cursor) -> ColumnDef:
    begin = cursor.index
    name = cursor.name("a column")
    typed = cursor.index
    if cursor.done or cursor.here.kind is not Kind.WORD:
        cursor.fail("the type of the column", hint="write name TYPE, as in price DOUBLE")
    cursor.index += 1
    if cursor.word == "(":
        cursor.parenthesis()
    elif cursor.word == "<":
        _angle_brackets(cursor)
    elif cursor.tokens.word(typed) == "INTERVAL":
        _interval_fields(cursor)
    span = cursor.span_since(typed)
    form = cursor.string("a form, as in FORMAT 'epoch_ms',") if cursor.take("FORMAT") else None
    if cursor.word not in ("", ","):
        raise QueryError(
            f"unexpected `{cursor.word}` after the type of `{name}`",
            code="syntax",
            span=cursor.here.span,
            hint="a column is a name, a type and perhaps a FORMAT; every column may hold NULL",
        )
    return ColumnDef(cursor.span_since(begin), name, cursor.tokens.text[span.start : span.end], form)


def _interval_fields(cursor: Cursor) -> None:
    """INTERVAL DAY TO SECOND; which fields there may be is not decided here."""
    for words in range(3):
        if cursor.done or cursor.here.kind is not Kind.WORD or (words == 1 and cursor.word != "TO"):
            return
        cursor.index += 1


def _angle_brackets(cursor: Cursor) -> None:
    depth = 0
    while not cursor.done:
        depth += {"<": 1, ">": -1, ">>": -2}.get(cursor.word, 0)
        cursor.index += 1
        if depth <= 0:
            return
