"""The columns of a declaration: names with types, and the KEY of a table."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import QueryError, Span
from windrow.language.cursor import Cursor
from windrow.language.sql import read_expression
from windrow.language.syntax import ColumnDef, Node
from windrow.language.tokens import Kind, Tokens
from windrow.windows.units import Quantity


@dataclass(frozen=True)
class Key:
    """KEY (a, b) and where it stands."""

    names: tuple[str, ...]
    span: Span


@dataclass(frozen=True)
class Watermark:
    """WATERMARK FOR ts AS ts - d, and where it stands."""

    column: str
    #: None: rows come in order
    delay: Quantity | None
    span: Span


@dataclass(frozen=True)
class Declared:
    """What stands in the parentheses of a declaration."""

    columns: tuple[ColumnDef, ...]
    key: Key | None = None
    watermark: Watermark | None = None

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.key.names if self.key else ()


def declared_columns(cursor: Cursor) -> Declared:
    """The columns in parentheses, and the KEY and WATERMARK among them."""
    begin = cursor.index
    inside = cursor.parenthesis()
    if not len(inside):
        span = cursor.span_since(begin)
        raise QueryError("there are no columns", code="syntax", span=span, hint="write name TYPE, …")
    others: list[Key | Watermark] = []
    columns = read_columns(inside, others)
    keys = [part for part in others if isinstance(part, Key)]
    marks = [part for part in others if isinstance(part, Watermark)]
    if len(keys) > 1:
        raise QueryError("KEY is there twice", code="syntax", span=keys[1].span, hint="write KEY (a, b)")
    if len(marks) > 1:
        hint = "a stream has one WATTR; leave one out"
        raise QueryError("WATERMARK is there twice", code="syntax", span=marks[1].span, hint=hint)
    return Declared(columns, keys[0] if keys else None, marks[0] if marks else None)


def read_columns(tokens: Tokens, others: list[Key | Watermark] | None = None) -> tuple[ColumnDef, ...]:
    """Columns with their types, from all of the tokens; what is none goes to `others`, if that is given."""
    cursor, found = Cursor(tokens), list[ColumnDef]()
    while True:
        if cursor.next_is("PRIMARY", "KEY"):
            cursor.take("PRIMARY")
        if others is not None and cursor.next_is("KEY", "("):
            others.append(_key(cursor))
        elif others is not None and cursor.next_is("WATERMARK", "FOR"):
            others.append(_watermark(cursor))
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


def _watermark(cursor: Cursor) -> Watermark:
    begin = cursor.index
    cursor.take("WATERMARK", "FOR")
    column = cursor.name("a column")
    cursor.expect("AS")
    if cursor.done or cursor.here.name.lower() != column.lower():
        hint = f"write WATERMARK FOR {column} AS {column} - INTERVAL '5' SECOND"
        cursor.fail(f"`{column}`", hint=hint)
    cursor.index += 1
    delay = None
    if cursor.take("-"):
        delay = cursor.quantity("how late rows may be, as in INTERVAL '5' SECOND,")
    return Watermark(column, delay, cursor.span_since(begin))


def _column(cursor: Cursor) -> ColumnDef:
    begin = cursor.index
    name = cursor.name("a column")
    if cursor.take("AS"):
        return ColumnDef(cursor.span_since(begin), name, "", computed=_computed(cursor))
    typed = cursor.index
    if cursor.done or cursor.here.kind is not Kind.WORD:
        cursor.fail("the type of the column", hint="write name TYPE, as in price DOUBLE")
    cursor.index += 1
    if (cursor.tokens.word(typed), cursor.word) in _TWO_WORDS:
        cursor.index += 1
    if cursor.word == "(":
        cursor.parenthesis()
        _zone(cursor)
    elif cursor.word in ("WITH", "WITHOUT"):
        _zone(cursor)
    elif cursor.word == "<":
        _angle_brackets(cursor)
    elif cursor.tokens.word(typed) == "INTERVAL":
        _interval_fields(cursor)
    span = cursor.span_since(typed)
    if cursor.take("AS"):
        text = cursor.tokens.text[span.start : span.end]
        return ColumnDef(cursor.span_since(begin), name, text, computed=_computed(cursor))
    form = cursor.string("a form, as in FORMAT 'epoch_ms',") if cursor.take("FORMAT") else None
    zone = cursor.string("a zone, as in ZONE 'Europe/Berlin',") if cursor.take("ZONE") else None
    if cursor.word not in ("", ","):
        raise QueryError(
            f"unexpected `{cursor.word}` after the type of `{name}`",
            code="syntax",
            span=cursor.here.span,
            hint="a column is a name, a type and perhaps FORMAT, ZONE or AS expression;"
            " every column may hold NULL",
        )
    text = cursor.tokens.text[span.start : span.end]
    return ColumnDef(cursor.span_since(begin), name, text, form, zone=zone)


def _computed(cursor: Cursor) -> Node:
    """The expression of a column that is computed, up to the next column."""
    return read_expression(cursor.until({","}, "an expression over the columns before"))


_TWO_WORDS = {("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING"), ("CHAR", "VARYING"), ("BINARY", "VARYING")}


def _zone(cursor: Cursor) -> None:
    """TIMESTAMP(3) WITH LOCAL TIME ZONE, and its like."""
    if cursor.word in ("WITH", "WITHOUT") and cursor.tokens.word(cursor.index + 1) in ("LOCAL", "TIME"):
        cursor.index += 1
        cursor.take("LOCAL")
        cursor.expect("TIME", "ZONE")


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
