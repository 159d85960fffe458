"""The columns of a declaration: names with types, and the KEY of a table.

What follows the columns of CREATE STREAM: WATTR, how it makes progress, LATE, SHEDDABLE,
KEEP, EXPECT, FROM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from windrow.errors import Span
from windrow.language import sql, syntax
from windrow.language.lift_literals import Cursor
from windrow.language.tokens import TokenKind, Tokens, refuse
from windrow.windows.domain import Quantity


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

    columns: tuple[syntax.ColumnDef, ...]
    key: Key | None = None
    watermark: Watermark | None = None


def declared_columns(cursor: Cursor) -> Declared:
    """The columns in parentheses, and the KEY and WATERMARK among them; none, where FROM is to tell them."""
    begin = cursor.index
    if cursor.word in (*_READERS, "NRR", "RELATION"):
        return Declared(())
    inside = cursor.parenthesis()
    if not len(inside):
        refuse(cursor.span_since(begin), "there are no columns", "syntax", "write name TYPE, …")
    others: list[Key | Watermark] = []
    columns = read_columns(inside, others)
    keys = [part for part in others if isinstance(part, Key)]
    marks = [part for part in others if isinstance(part, Watermark)]
    if len(keys) > 1:
        refuse(keys[1], "KEY is there twice", "syntax", "write KEY (a, b)")
    if len(marks) > 1:
        refuse(marks[1], "WATERMARK is there twice", "syntax", "a stream has one WATTR; leave one out")
    return Declared(columns, keys[0] if keys else None, marks[0] if marks else None)


def read_columns(tokens: Tokens, others: list[Key | Watermark] | None = None) -> tuple[syntax.ColumnDef, ...]:
    """Columns with their types, from all of the tokens; what is none goes to `others`, if that is given."""
    cursor, found = Cursor(tokens), list[syntax.ColumnDef]()
    while True:
        if cursor.next_is("PRIMARY", "KEY"):
            cursor.step()
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
    cursor.take("NOT", "ENFORCED")  # Flink's word for what every KEY is
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


def _column(cursor: Cursor) -> syntax.ColumnDef:
    begin = cursor.index
    name = cursor.name("a column")
    if cursor.take("AS"):
        return syntax.ColumnDef(cursor.span_since(begin), name, "", computed=_computed(cursor))
    typed = cursor.index
    if cursor.done or cursor.here.kind is not TokenKind.WORD:
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
    while cursor.word == "ARRAY" or cursor.next_is("[", "]"):
        cursor.index += 1 + (cursor.word == "[")
    text = cursor.tokens.between(typed, cursor.index - 1)
    if cursor.take("AS"):
        return syntax.ColumnDef(cursor.span_since(begin), name, text, computed=_computed(cursor))
    form = cursor.string("a form, as in FORMAT 'epoch_ms',") if cursor.take("FORMAT") else None
    zone = cursor.string("a zone, as in ZONE 'Europe/Berlin',") if cursor.take("ZONE") else None
    if cursor.word not in ("", ","):
        refuse(
            cursor.here,
            f"unexpected `{cursor.word}` after the type of `{name}`",
            "syntax",
            _instead(cursor.word, f"{name} {text}"),
        )
    return syntax.ColumnDef(cursor.span_since(begin), name, text, form, zone=zone)


def _instead(word: str, column: str) -> str:
    """What to write for words that others have behind a column."""
    if word in ("PRIMARY", "KEY"):
        return f"of a table write {column}, KEY ({column.split()[0]}); a stream has none"
    if word in ("NOT", "NULL", "DEFAULT", "UNIQUE", "COMMENT"):
        return f"write {column}; every column may hold NULL, and nothing else is said of it"
    if word == "WATERMARK":
        name = column.split()[0]
        return f"write {column}, WATERMARK FOR {name} AS {name} - INTERVAL '5' SECOND"
    return f"write {column}; FORMAT, ZONE or AS expression may follow, and every column may hold NULL"


def _computed(cursor: Cursor) -> syntax.Node:
    """The expression of a column that is computed, up to the next column."""
    return sql.read_expression(cursor.until({","}, "an expression over the columns before"))


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
        if cursor.done or cursor.here.kind is not TokenKind.WORD or (words == 1 and cursor.word != "TO"):
            return
        cursor.index += 1
        if words != 1 and cursor.word == "(":
            cursor.parenthesis()


def _angle_brackets(cursor: Cursor) -> None:
    depth = 0
    while not cursor.done:
        depth += {"<": 1, ">": -1, ">>": -2}.get(cursor.word, 0)
        cursor.index += 1
        if depth <= 0:
            return


def read_stream_options(cursor: Cursor) -> syntax.StreamOptions:
    """All options from here to the end, in any order."""
    begin, found = cursor.index, dict[str, Any]()
    while not cursor.done:
        start = cursor.index
        word = cursor.choose(
            _READERS, "WATTR, SLACK, ORDERED, PUNCTUATED, ALSO, LATE, SHEDDABLE, KEEP, EXPECT or FROM"
        )
        fields = _READERS[word](cursor)
        if word == "ALSO":
            fields["also"] = found.pop("also", ()) + fields["also"]
        if fields.keys() & found.keys():
            progress = "progress" in fields
            message = "the stream says how it makes progress twice" if progress else f"{word} is there twice"
            refuse(cursor.span_since(start), message, "syntax", "leave one out")
        found |= fields
    span = cursor.span_since(begin) if begin < len(cursor.tokens) else cursor.tokens.span
    return syntax.StreamOptions(span, **found)


def with_watermark(options: syntax.StreamOptions, mark: Watermark | None) -> syntax.StreamOptions:
    """WATERMARK FOR ts AS ts - d among the columns means WATTR ts SLACK d."""
    if mark is None:
        return options
    if options.progress is not None or options.wattr not in (None, mark.column):
        refuse(
            mark,
            "the stream says how it makes progress twice",
            "syntax",
            "leave WATERMARK out, or WATTR and its policy",
        )
    kind = "ORDERED" if mark.delay is None else "SLACK"
    progress = syntax.ProgressSyntax(mark.span, kind, amount=mark.delay)
    return replace(options, wattr=mark.column, progress=progress)


def _wattr(cursor: Cursor) -> dict[str, Any]:
    """WATTR ts, WATTR x RESOLUTION 0.25."""
    found: dict[str, Any] = {"wattr": cursor.name("the windowing attribute")}
    if cursor.take("RESOLUTION"):
        begin = cursor.index
        amount = cursor.quantity("a number, as in RESOLUTION 0.001,", _AFTER_EXPRESSION)
        if amount.unit is not None:
            refuse(
                cursor.span_since(begin),
                f"RESOLUTION is a number, and {amount} is not",
                "bad-resolution",
                f"write RESOLUTION {amount.value}",
            )
        found["resolution"] = Decimal(amount.value)
    return found


def _also(cursor: Cursor) -> dict[str, Any]:
    """ALSO seq ORDERED, ALSO seq SLACK 5: another attribute, and how it makes progress."""
    name = cursor.name("the other windowing attribute")
    word = cursor.choose(("ORDERED", "SLACK"), "ORDERED or SLACK")
    begin = cursor.index - 1
    progress = _READERS[word](cursor)["progress"]
    if progress.per is not None:
        refuse(
            cursor.span_since(begin),
            "the sources of a stream are told apart by its WATTR only",
            "syntax",
            f"write ALSO {name} SLACK n ROWS, or declare another stream with WATTR {name}",
        )
    return {"also": ((name, progress),)}


def _slack(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    amount = cursor.quantity("a size, as in SLACK 5 SECONDS or SLACK 100 ROWS,", _AFTER_EXPRESSION)
    return {"progress": syntax.ProgressSyntax(cursor.span_since(begin), "SLACK", amount=amount)}


def _ordered(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    per = _per(cursor)
    idle = None
    if cursor.word == "IDLE" and per is None:
        refuse(
            cursor.here,
            "IDLE is about the sources of ORDERED PER",
            "syntax",
            "write ORDERED PER source IDLE 30 SECONDS",
        )
    if cursor.take("IDLE"):
        idle = cursor.quantity("a time, as in IDLE 30 SECONDS,", _AFTER_EXPRESSION)
    return {"progress": syntax.ProgressSyntax(cursor.span_since(begin), "ORDERED", per=per, idle=idle)}


def _punctuated(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    cursor.expect("BY")
    mark = sql.read_expression(cursor.until(_AFTER_EXPRESSION, "an expression"))
    per = _per(cursor)
    when = None
    if cursor.take("WHEN"):
        when = sql.read_expression(cursor.until(_AFTER_EXPRESSION, "a condition"))
    per = per or _per(cursor)
    return {
        "progress": syntax.ProgressSyntax(
            cursor.span_since(begin), "PUNCTUATED", per=per, mark=mark, when=when
        )
    }


def _per(cursor: Cursor) -> str | None:
    return cursor.name("the column that names the source") if cursor.take("PER") else None


def _late(cursor: Cursor) -> dict[str, Any]:
    policy = cursor.choose(("DROP", "KEEP", "TO"), "DROP, KEEP or TO 'sink'")
    return {"late": policy} | ({"late_sink": cursor.url("the sink")} if policy == "TO" else {})


def _expect(cursor: Cursor) -> dict[str, Any]:
    rate = cursor.whole("how many rows come per second, as in EXPECT 500 ROWS,")
    cursor.expect("ROWS")
    values: list[tuple[str, int]] = []
    more = cursor.take("(")
    while more:
        values.append((cursor.name("a column"), cursor.whole("how many different values it has")))
        more = cursor.take(",")
        if not more:
            cursor.expect(")")
    return {"expected": (rate, tuple(values))}


_READERS: dict[str, Callable[[Cursor], dict[str, Any]]] = {
    "WATTR": _wattr,
    "SLACK": _slack,
    "ORDERED": _ordered,
    "PUNCTUATED": _punctuated,
    "ALSO": _also,
    "LATE": _late,
    "SHEDDABLE": lambda cursor: {"sheddable": True},
    "KEEP": lambda cursor: {"keep": cursor.quantity(_HOW_MUCH, _AFTER_EXPRESSION)},
    "EXPECT": _expect,
    "FROM": lambda cursor: {"source": cursor.url("the source")},
}
_HOW_MUCH = "how much, as in KEEP 1 HOUR or KEEP 1000 ROWS,"
_AFTER_EXPRESSION: frozenset[str] = frozenset({"PER", "WHEN", "IDLE", *_READERS})
