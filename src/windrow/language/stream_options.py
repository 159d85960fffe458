"""What follows the columns of CREATE STREAM: WATTR, how it makes progress, LATE, SHEDDABLE,
KEEP, EXPECT, FROM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from windrow.errors import QueryError
from windrow.language.columns import Watermark
from windrow.language.cursor import Cursor
from windrow.language.sql import read_expression
from windrow.language.syntax import Node, ProgressSyntax
from windrow.windows.units import Quantity

_PROGRESS = ("SLACK", "ORDERED", "PUNCTUATED")


@dataclass(frozen=True)
class StreamOptions(Node):
    """The options of a stream; the fields are those of `CreateStream`."""

    wattr: str | None = None
    progress: ProgressSyntax | None = None
    late: str = "DROP"
    late_sink: str | None = None
    sheddable: bool = False
    source: str | None = None
    keep: Quantity | None = None
    expected: tuple[int, tuple[tuple[str, int], ...]] | None = None


def read_stream_options(cursor: Cursor) -> StreamOptions:
    """All options from here to the end, in any order."""
    begin, found = cursor.index, dict[str, Any]()
    while not cursor.done:
        start = cursor.index
        word = cursor.choose(
            _READERS, "WATTR, SLACK, ORDERED, PUNCTUATED, LATE, SHEDDABLE, KEEP, EXPECT or FROM"
        )
        fields = _READERS[word](cursor)
        twice = next((field for field in fields if field in found), None)
        if twice is not None:
            raise QueryError(
                "the stream says how it makes progress twice"
                if twice == "progress"
                else f"{word} is there twice",
                code="syntax",
                span=cursor.span_since(start),
                hint="leave one out",
            )
        found |= fields
    span = cursor.span_since(begin) if begin < len(cursor.tokens) else cursor.tokens.span
    return StreamOptions(span, **found)


def with_watermark(options: StreamOptions, mark: Watermark | None) -> StreamOptions:
    """WATERMARK FOR ts AS ts - d among the columns means WATTR ts SLACK d."""
    if mark is None:
        return options
    if options.progress is not None or options.wattr not in (None, mark.column):
        raise QueryError(
            "the stream says how it makes progress twice",
            code="syntax",
            span=mark.span,
            hint="leave WATERMARK out, or WATTR and its policy",
        )
    kind = "ORDERED" if mark.delay is None else "SLACK"
    progress = ProgressSyntax(mark.span, kind, amount=mark.delay)
    return replace(options, wattr=mark.column, progress=progress)


def _wattr(cursor: Cursor) -> dict[str, Any]:
    return {"wattr": cursor.name("the windowing attribute")}


def _slack(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    amount = cursor.quantity("a size, as in SLACK 5 SECONDS or SLACK 100 ROWS,", _AFTER_EXPRESSION)
    return {"progress": ProgressSyntax(cursor.span_since(begin), "SLACK", amount=amount)}


def _ordered(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    per = _per(cursor)
    idle = None
    if cursor.word == "IDLE" and per is None:
        raise QueryError(
            "IDLE is about the sources of ORDERED PER",
            code="syntax",
            span=cursor.here.span,
            hint="write ORDERED PER source IDLE 30 SECONDS",
        )
    if cursor.take("IDLE"):
        idle = cursor.quantity("a time, as in IDLE 30 SECONDS,", _AFTER_EXPRESSION)
    return {"progress": ProgressSyntax(cursor.span_since(begin), "ORDERED", per=per, idle=idle)}


def _punctuated(cursor: Cursor) -> dict[str, Any]:
    begin = cursor.index - 1
    cursor.expect("BY")
    mark = read_expression(cursor.until(_AFTER_EXPRESSION, "an expression"))
    per = _per(cursor)
    when = None
    if cursor.take("WHEN"):
        when = read_expression(cursor.until(_AFTER_EXPRESSION, "a condition"))
    per = per or _per(cursor)
    return {"progress": ProgressSyntax(cursor.span_since(begin), "PUNCTUATED", per=per, mark=mark, when=when)}


def _per(cursor: Cursor) -> str | None:
    return cursor.name("the column that names the source") if cursor.take("PER") else None


def _late(cursor: Cursor) -> dict[str, Any]:
    policy = cursor.choose(("DROP", "KEEP", "TO"), "DROP, KEEP or TO 'sink'")
    sink = {"late_sink": cursor.url("the sink")} if policy == "TO" else {}
    return {"late": policy, **sink}


def _keep(cursor: Cursor) -> dict[str, Any]:
    return {"keep": cursor.quantity("how much, as in KEEP 1 HOUR or KEEP 1000 ROWS,", _AFTER_EXPRESSION)}


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


def _from(cursor: Cursor) -> dict[str, Any]:
    return {"source": cursor.url("the source")}


_READERS: dict[str, Callable[[Cursor], dict[str, Any]]] = {
    "WATTR": _wattr,
    "SLACK": _slack,
    "ORDERED": _ordered,
    "PUNCTUATED": _punctuated,
    "LATE": _late,
    "SHEDDABLE": lambda cursor: {"sheddable": True},
    "KEEP": _keep,
    "EXPECT": _expect,
    "FROM": _from,
}
_AFTER_EXPRESSION = frozenset({"PER", "WHEN", "IDLE", *_READERS})
