"""A SELECT by itself: answered once, about now.

    SELECT … [WITH ISOLATION LATEST | WINDOW] [PRIORITY n]

It asks for a relation, so no stream word is needed, and ORDER BY may stand without LIMIT. In FROM, a
registered query that answers window by window stands for its last answer, with the column `at`; where there
is no stream at all, tables stand for what they hold. `now()` is the time at which it is asked.

>>> from windrow.language.catalog import Catalog
>>> from windrow.language.compile import compile_once, declare_stream
>>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
>>> once = compile_once("SELECT item FROM bids [RANGE 1 HOUR] WITH ISOLATION WINDOW PRIORITY 2", catalog)
>>> once.isolation, once.priority
('WINDOW', 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import time_ns
from typing import Any

from windrow.algebra import Emit, Field, Schema, Stream, StreamWord, Table, instant_type
from windrow.algebra.functions import calendar, refusals
from windrow.language import lift_literals, sql, syntax
from windrow.language.binder.queries import bind_relation
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.tokens import TokenKind, Tokens, refuse
from windrow.windows.clause import WindowClause
from windrow.windows.domain import ARRIVAL_TS

LATEST, WINDOW = "LATEST", "WINDOW"
_LEVELS = (LATEST, WINDOW)
_NO_LIMIT = str((1 << 62) - 1)


@dataclass(frozen=True)
class Once:
    """A SELECT that is answered once. Some of the streams in its plan stand for something else."""

    plan: Emit
    #: None: as the caller says
    isolation: str | None = None
    priority: int = 0
    #: streams that stand for the last answer of a query, and for the rows of a table
    answers: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)


def read_once(tokens: Tokens) -> syntax.SelectOnce:
    """A SELECT and what follows it, from all of the tokens."""
    cursor = lift_literals.Cursor(tokens)
    query = sql.read_query(cursor.upto(_begins_option))
    found: dict[str, Any] = {}
    while not cursor.done:
        word = cursor.choose(("WITH", "PRIORITY"), "WITH ISOLATION or PRIORITY")
        if word == "WITH":
            cursor.expect("ISOLATION")
            option = {"isolation": cursor.choose(_LEVELS, "LATEST or WINDOW", _INSTEAD)}
        else:
            option = {"priority": cursor.whole("a whole number")}  # type: ignore[dict-item]
        if option.keys() & found.keys():
            span = cursor.tokens[cursor.index - 1].span
            refuse(span, f"{word} is there twice", "syntax", "leave one out")
        found |= option
    return syntax.SelectOnce(tokens.span, query, **found)


_INSTEAD = {
    "SERIALIZABLE": "write LATEST: the window as it is when the read ends",
    "SNAPSHOT": "write WINDOW: the window as it is when the read begins",
}


def _begins_option(cursor: lift_literals.Cursor) -> bool:
    if cursor.word == "WITH":
        return cursor.next_is("WITH", "ISOLATION")
    after = cursor.index + 1
    negative = cursor.tokens.word(after) == "-"
    return cursor.word == "PRIORITY" and (negative or cursor.tokens.is_kind(after, TokenKind.NUMBER))


def bind_once(statement: syntax.SelectOnce, catalog: Catalog, now: int | None = None) -> Once:
    """What a SELECT by itself means, asked at a microsecond since 1970: this one, if none is given."""
    moment = time_ns() // 1000 if now is None else now
    query = _as_relation(_with_time(statement.query, moment))
    stand_ins = _StandIns(catalog, query)
    working = catalog.copy()
    changed = stand_ins.changed(query)
    assert isinstance(changed, syntax.QueryExpression)
    for stream in stand_ins.streams.values():
        working.add(stream)
    plan = bind_relation(changed, working)
    return Once(plan, statement.isolation, statement.priority, stand_ins.answers, stand_ins.tables)


def _as_relation(query: syntax.Node) -> syntax.QueryExpression:
    if isinstance(query, syntax.SetOperation):
        return replace(query, left=_as_relation(query.left), right=_as_relation(query.right))
    assert isinstance(query, syntax.Select)
    if query.word not in (StreamWord.AUTO, StreamWord.RSTREAM):
        refuse(
            query,
            f"a SELECT by itself gives what its windows hold now, and {query.word.value} is about changes",
            "stream-word",
            f"leave {query.word.value} out, or write CREATE QUERY name AS SELECT {query.word.value}(…)",
        )
    if query.order_by and query.limit is None:
        limit = syntax.Constant(query.order_by[-1][0].span, _NO_LIMIT, "NUMBER")
        query = replace(query, limit=limit)
    return replace(query, word=StreamWord.RSTREAM)


def _with_time(node: syntax.Node, now: int) -> syntax.Node:
    """The query with the time at which it is asked in the place of `now()` and its like."""
    name = None
    if isinstance(node, syntax.Apply) and not node.args:
        name = node.function.lower()
    elif (
        isinstance(node, syntax.Name)
        and len(node.parts) == 1
        and node.parts[0].lower() in refusals.CLOCK_WORDS
    ):
        name = node.parts[0].lower()
    if name in _TIMES:
        return syntax.Constant(node.span, calendar.timestamp_text(now), "TIMESTAMP")
    if name in _DATES:
        return syntax.Constant(node.span, calendar.date_text(now), "DATE")
    return syntax.rebuilt(node, lambda part: _with_time(part, now), into_queries=True)


_TIMES = ("now", "current_timestamp", "localtimestamp")
_DATES = ("current_date", "curdate")


class _StandIns:
    """Puts streams in the place of answers and of tables."""

    def __init__(self, catalog: Catalog, query: syntax.QueryExpression) -> None:
        self.catalog = catalog
        self.streams: dict[str, Stream] = {}
        self.answers: dict[str, str] = {}
        self.tables: dict[str, str] = {}
        nodes = syntax.walk(query, into_queries=True)
        sources = (node for node in nodes if isinstance(node, syntax.FromEntry))
        entries = [catalog.entry(source.name) for source in sources if source.name is not None]
        self._only_tables = bool(entries) and all(isinstance(entry, Table) for entry in entries)

    def changed(self, node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.FromEntry) and node.query is None:
            return self._source(node)
        return syntax.rebuilt(node, self.changed, into_queries=True)

    def _source(self, source: syntax.FromEntry) -> syntax.FromEntry:
        if source.window is not None or source.name is None:
            return source
        match self.catalog.entry(source.name):
            case Table() as table if self._only_tables:
                stream = Stream(f"rows of {table.name}", table.schema, ARRIVAL_TS)
                self.tables[stream.name] = table.name
            case StandingQuery() as entry if entry.plan.is_by_extent:
                stream = answers_of(entry)
                self.answers[stream.name] = entry.name
            case _:
                return source
        self.streams[stream.name] = stream
        unbounded = syntax.WindowSyntax(source.span, WindowClause("UNBOUNDED"))
        return replace(source, name=stream.name, alias=source.alias or source.name, window=unbounded)


def answers_of(query: StandingQuery) -> Stream:
    """The stream of a query's answers, as users get them."""
    at = instant_type(query.plan.leaves[0].domain)
    columns = [Field(f.name + "_" * (f.name == "at"), f.type) for f in query.plan.schema]
    return Stream(f"answers of {query.name}", Schema((Field("at", at), *columns)), "at")
