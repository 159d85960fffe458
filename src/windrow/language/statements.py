"""Statements: CREATE, ALTER, DROP, REFRESH, SHOW, DESCRIBE, EXPLAIN, and a SELECT.

`_STATEMENTS` says which word begins which statement; the SELECT inside one is handed to `sql`.

    CREATE ARCHIVE name ON query_or_stream KEY column [option …] KEEP duration
    ALTER ARCHIVE name option …

    LAYOUT g BY e (or PARTITIONS g x e)      REBUILD | NOREBUILD
    ALLOCATION ROUND_ROBIN | CHRONOLOGICAL | SHUFFLED
    EXPECT n PROBES, n SCANS PER [n] UPDATES     for what is not said, a layout is chosen
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from windrow.archive.declaration import ALLOCATIONS, Declaration
from windrow.archive.layout import Mix, SaidOfLayout
from windrow.errors import QueryError, Span, nearest
from windrow.language import columns, shape, sql, syntax
from windrow.language.binder.once import read_once
from windrow.language.lift_literals import Cursor
from windrow.language.tokens import TokenKind, Tokens, mistake, refuse
from windrow.windows.domain import Domain, Quantity

_SHAPE = re.compile(r"(\d{1,4})(?:x|×|by)(\d{1,4})", re.IGNORECASE)
_AS_IN = "as in EXPECT 40 PROBES, 1 SCAN PER UPDATE"


@dataclass(frozen=True)
class CreateArchive(syntax.Statement):
    """CREATE ARCHIVE; `source` is the query or the stream whose rows are kept. The last three are places."""

    name: str
    source: str
    key: str
    layout: SaidOfLayout
    keep: Quantity
    source_at: Span
    key_at: Span
    keep_at: Span

    def ticks(self, domain: Domain) -> int:
        """How long rows are kept, where the source's time is of this domain."""
        return Declaration.of(self.key, self.keep.ticks(domain)).keep


@dataclass(frozen=True)
class AlterArchive(syntax.Statement):
    """ALTER ARCHIVE: what is said of its layout takes the place of what was said before."""

    name: str
    layout: SaidOfLayout


def read_create_archive(cursor: Cursor) -> CreateArchive:
    name = cursor.name("the name of the archive")
    cursor.expect("ON")
    source = cursor.name("the query or stream to keep")
    source_at = cursor.span_since(cursor.index - 1)
    cursor.expect("KEY")
    key = cursor.name("the column rows are found by")
    key_at = cursor.span_since(cursor.index - 1)
    layout = _layout(cursor)
    if not cursor.take("KEEP"):
        cursor.fail("KEEP", _OPTIONS, "say how long rows are kept, as in KEEP 7 DAYS")
    begin = cursor.index
    keep = cursor.quantity("how long rows are kept, as in KEEP 7 DAYS,")
    places = source_at, key_at, cursor.span_since(begin)
    cursor.finish()
    return CreateArchive(cursor.tokens.span, name, source, key, layout, keep, *places)


def _alter(cursor: Cursor) -> syntax.Statement:
    cursor.expect("ALTER")
    kinds = ("STREAM", "TABLE", "QUERY")
    anew = "only the layout of an archive can be altered: DROP this and CREATE it anew"
    cursor.choose(("ARCHIVE",), "ARCHIVE", dict.fromkeys(kinds, anew))
    name = cursor.name("the name of the archive")
    layout = _layout(cursor)
    if layout == SaidOfLayout() or not cursor.done:
        fixed = {"KEY", "ON", "KEEP"} & {cursor.word if not cursor.done else ""}
        hint = "only its layout can be altered: DROP ARCHIVE, then CREATE it anew" if fixed else None
        cursor.fail("LAYOUT, REBUILD, NOREBUILD, ALLOCATION or EXPECT", _LAID_OUT, hint or _ALTERED)
    return AlterArchive(cursor.tokens.span, name, layout)


def _layout(cursor: Cursor) -> SaidOfLayout:
    """The options of the layout, each at most once, in any order."""
    said: dict[str, Any] = {}
    while not cursor.done and cursor.word in _LAID_OUT:
        part, read = _LAID_OUT[cursor.word]
        if part in said:
            break
        cursor.index += 1
        said[part] = read(cursor)
    return SaidOfLayout(**said)


def _allocation(cursor: Cursor) -> str:
    words = {name.upper().replace("-", "_"): name for name in ALLOCATIONS}
    return words[cursor.choose(words, "ROUND_ROBIN, CHRONOLOGICAL or SHUFFLED")]


def _mix(cursor: Cursor) -> Mix:
    """`40 PROBES, 1 SCAN PER 10 UPDATES`, in either order, one of them or both."""
    counts: dict[str, int] = {}
    while not counts or not cursor.next_is("PER"):
        number = cursor.whole(f"how many, {_AS_IN},")
        begin = cursor.index
        word = cursor.choose(("PROBES", "PROBE", "SCANS", "SCAN"), "PROBES or SCANS")
        kind = word.removesuffix("S").lower() + "s"
        if kind in counts or number < 0:
            refuse(
                cursor.span_since(begin - 1),
                f"{kind.upper()} {'is there twice' if kind in counts else 'cannot be less than none'}",
                "syntax",
                f"say it once, {_AS_IN}",
            )
        counts[kind] = number
        cursor.take(",")
    cursor.expect("PER")
    updates = 1
    if not cursor.take("UPDATE"):
        begin = cursor.index
        updates = cursor.whole("per how many updates, as in PER 10 UPDATES,")
        if updates < 1:
            refuse(cursor.span_since(begin), f"PER {updates} UPDATES is no rate", "bad-value", "1 or more")
        cursor.choose(("UPDATES", "UPDATE"), "UPDATES")
    return Mix(**counts, updates=updates)


def _shape(cursor: Cursor) -> tuple[int, int]:
    """`4 BY 4` or `4 x 4`, with or without spaces."""
    begin = cursor.index
    text = "".join(token.text for token in cursor.upto(lambda at: at.word in _OPTIONS))
    found = _SHAPE.fullmatch(text)
    if not found or "0" in found.groups():
        if cursor.index == begin:
            cursor.fail("how many partitions", hint="write LAYOUT 4 BY 4")
        refuse(
            cursor.span_since(begin),
            f"`{text}` are no partitions",
            "partitions",
            "write how many by insertion and how many by expiry: LAYOUT 4 BY 4",
        )
    return int(found[1]), int(found[2])


#: the words that begin an option of the layout: what it is about, and how the rest is read
_LAID_OUT: dict[str, tuple[str, Callable[[Cursor], Any]]] = {
    "LAYOUT": ("partitions", _shape),
    "PARTITIONS": ("partitions", _shape),
    "REBUILD": ("rebuild", lambda _: True),
    "NOREBUILD": ("rebuild", lambda _: False),
    "ALLOCATION": ("allocation", _allocation),
    "EXPECT": ("mix", _mix),
}
_OPTIONS = (*_LAID_OUT, "KEEP")
_ALTERED = "say what to change, as in ALTER ARCHIVE name LAYOUT 4 BY 4"


def read_script(tokens: Tokens) -> Iterator[syntax.Statement]:
    """The statements of a script, separated by `;`."""
    begin = 0
    for index in range(len(tokens) + 1):
        if index == len(tokens) or tokens.word(index) == ";":
            if index > begin:
                yield read_statement(tokens.cut(begin, index))
            begin = index + 1


def read_statement(tokens: Tokens) -> syntax.Statement:
    shape.check_nesting(tokens)
    tokens.partner  # noqa: B018  # refuses parentheses without a partner
    _check_is_one(tokens)
    reader = _STATEMENTS.get(tokens.word(0))
    if reader is None:
        raise _unknown(tokens)
    return reader(Cursor(tokens))


def begins_statement(word: str) -> bool:
    """Whether a statement may begin with this word.

    >>> begins_statement("create"), begins_statement("start")
    (True, False)
    """
    return word.upper() in _STATEMENTS


def _check_is_one(tokens: Tokens) -> None:
    """No second statement begins inside of it: then a semicolon is missing."""
    for index in range(2 if tokens.word(0) == "SHOW" else 1, len(tokens) - 1):
        if tokens.word(index) == "CREATE" and tokens.word(index + 1) in _CREATED:
            refuse(
                tokens[index].span.to(tokens[index + 1].span),
                f"`{tokens[index].text} {tokens[index + 1].text}` inside of a statement",
                "syntax",
                f"end the statement before it with a semicolon: `{tokens[index - 1].text};`",
            )


def _unknown(tokens: Tokens) -> QueryError:
    first, hint = tokens[0], _INSTEAD.get(tokens.word(0))
    close = nearest(first.text, _STATEMENTS) or ""
    if tokens.words(0, 2) == ("INSERT", "INTO") and len(tokens) > 3 and tokens[2].is_name:
        query = f"CREATE QUERY {tokens[2].text} AS SELECT … INTO 'files:///…'"
        hint = f"write {query}; rows of streams come from their source"
    elif hint is None and close.startswith("did"):
        hint = close
    return mistake(
        first,
        f"no statement begins with `{first.text}`",
        "syntax",
        hint or "statements begin with CREATE, ALTER, DROP, REFRESH, SHOW, DESCRIBE, EXPLAIN or SELECT",
    )


_ONLY_GROWS = "a stream only grows; tables change through their source"
_INSTEAD = {
    "INSERT": "rows come from the source of a stream; write CREATE QUERY … INTO 'sink' to write answers",
    **dict.fromkeys(("UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY"), _ONLY_GROWS),
    **dict.fromkeys(
        ("SET", "USE", "RESET"),
        "settings are given where it is run: windrow run script.cql --conf name=value",
    ),
    "TERMINATE": "write DROP QUERY name",
    "PRINT": "write SELECT * FROM name [RANGE 1 MINUTE]",
    **dict.fromkeys(
        ("BEGIN", "END"), "leave it out: the queries of a script run together and share what they can"
    ),
    "FROM": "write SELECT … FROM …",
}


# CREATE.


def _create(cursor: Cursor) -> syntax.Statement:
    cursor.expect("CREATE")
    if cursor.take("OR"):
        cursor.expect("REPLACE")
        cursor.choose(("QUERY",), "QUERY", dict.fromkeys(("STREAM", "TABLE", "ARCHIVE"), _ONLY_QUERIES))
        return replace(_create_query(cursor), replaces=True)
    words = [token for token in cursor.tokens.items[cursor.index :] if token.word not in _CREATE_WORDS]
    name = words[0].text if words and words[0].is_name else "name"
    query = f"write CREATE QUERY {name} AS SELECT …"
    others = _CREATE_INSTEAD | {
        "VIEW": query,
        "MATERIALIZED": query,
        "SOURCE": f"write CREATE STREAM {name} (…)",
        "SINK": f"write CREATE QUERY {name} AS … INTO '…'",
    }
    kind = cursor.choose(_CREATED, "STREAM, TABLE, QUERY or ARCHIVE", others)
    if not cursor.take("IF"):
        return _CREATED[kind](cursor)
    cursor.expect("NOT", "EXISTS")
    if kind == "ARCHIVE":
        cursor.fail("the name of the archive", hint="CREATE ARCHIVE takes no IF NOT EXISTS")
    return replace(_CREATED[kind](cursor), if_missing=True)  # type: ignore[call-arg]


_CREATE_WORDS = ("VIEW", "MATERIALIZED", "SOURCE", "SINK", "IF", "NOT", "EXISTS")


def _refuse_query_as(cursor: Cursor, name: str) -> None:
    """`CREATE STREAM s AS SELECT …` of ksqlDB, `CREATE TABLE t AS SELECT …` of everyone."""
    if cursor.word == "AS":
        cursor.fail(
            "`(`", hint=f"a query has a name, and can be read as a stream: CREATE QUERY {name} AS SELECT …"
        )


def _refuse_connector(cursor: Cursor, name: str) -> None:
    """`WITH ('connector' = 'kafka', …)`: here a source is an address."""
    if cursor.word != "WITH" or cursor.tokens.word(cursor.index + 1) != "(":
        return
    said = cursor.tokens.items[cursor.index :]
    values = {
        key.text.strip("'").lower().rsplit(".", 1)[-1]: value.text.strip("'")
        for key, sign, value in zip(said, said[1:], said[2:], strict=False)
        if sign.word == "="
    }
    topic = values.get("topic") or values.get("kafka_topic") or name
    host = values.get("servers") or values.get("server") or "host:9092"
    path = values.get("path")
    source = f"files://{path.removeprefix('file://')}" if path else f"kafka://{host}/{topic}"
    refuse(
        cursor.here,
        "a source is an address, not a list of properties",
        "syntax",
        f"write FROM '{source}' in place of WITH (…)"
        if path or values.get("connector", "kafka") == "kafka"
        else f"write FROM 'files:///…' or FROM 'kafka://{host}/{topic}' in place of WITH (…)",
    )


def _create_stream(cursor: Cursor) -> syntax.Statement:
    name = cursor.name("the name of the stream")
    _refuse_query_as(cursor, name)
    declared = columns.declared_columns(cursor)
    _refuse_connector(cursor, name)
    if declared.key is not None:
        refuse(
            declared.key,
            "a stream has no KEY",
            "syntax",
            "its rows are ordered by WATTR; keys are for tables",
        )
    options = columns.with_watermark(columns.read_stream_options(cursor), declared.watermark)
    said = {part.name: getattr(options, part.name) for part in fields(options) if part.name != "span"}
    return syntax.CreateStream(cursor.tokens.span, name, declared.columns, **said)


def _create_table(cursor: Cursor) -> syntax.Statement:
    name = cursor.name("the name of the table")
    _refuse_query_as(cursor, name)
    declared = columns.declared_columns(cursor)
    if declared.watermark is not None:
        refuse(
            declared.watermark,
            "a table has no WATERMARK",
            "syntax",
            f"rows with a time that only grows are a stream: CREATE STREAM {name} (…)",
        )
    _refuse_connector(cursor, name)
    plain = cursor.done or cursor.word == "FROM"
    kind = "NRR" if plain else cursor.choose(("NRR", "RELATION"), "NRR, RELATION or FROM")
    source = cursor.url("the source") if cursor.take("FROM") else None
    cursor.finish()
    key = declared.key.names if declared.key else ()
    return syntax.CreateTable(cursor.tokens.span, name, declared.columns, key, kind, source)


def _create_query(cursor: Cursor) -> syntax.CreateQuery:
    name = cursor.name("the name of the query")
    cursor.expect("AS")
    written = cursor.upto(_begins_option)
    if not len(written):
        cursor.fail("a query", hint="write AS SELECT …")
    query = sql.read_query(written)
    options: dict[str, Any] = {"sink": None, "priority": 0, "max_gap": None}
    seen: set[str] = set()
    while not cursor.done:
        word = cursor.choose(_QUERY_OPTIONS, "INTO, PRIORITY, MAX GAP or EVERY")
        if word in seen:
            span = cursor.tokens[cursor.index - 1].span
            refuse(span, f"{word} is there twice", "syntax", "leave one out")
        seen.add(word)
        options |= _QUERY_OPTIONS[word](cursor)
    return syntax.CreateQuery(cursor.tokens.span, name=name, query=query, **options)


def _begins_option(cursor: Cursor) -> bool:
    """Whether the SELECT ends here. The words of the options may be names inside it."""
    after = cursor.index + 1
    match cursor.word:
        case "MAX":
            return cursor.next_is("MAX", "GAP")
        case "INTO":
            return cursor.tokens.is_kind(after, TokenKind.STRING)
        case "PRIORITY" if cursor.next_is("PRIORITY", "-"):
            return True
        case "EVERY" if cursor.next_is("EVERY", "INTERVAL"):
            return True
        case "PRIORITY" | "EVERY":
            return cursor.tokens.is_kind(after, TokenKind.NUMBER)
    return False


def _max_gap(cursor: Cursor) -> dict[str, Any]:
    cursor.expect("GAP")
    return {"max_gap": cursor.whole("how many windows in a row may be dropped")}


def _every(cursor: Cursor) -> dict[str, Any]:
    period = cursor.quantity("a period, as in EVERY 10 SECONDS,", ("AT", *_QUERY_OPTIONS))
    if not cursor.take("AT"):
        return {"every": period}
    cursor.expect("MOST")
    return {"every": period, "at_most": cursor.quantity("how old an answer may get,", _QUERY_OPTIONS)}


_QUERY_OPTIONS: dict[str, Callable[[Cursor], dict[str, Any]]] = {
    "INTO": lambda cursor: {"sink": cursor.url("the sink")},
    "PRIORITY": lambda cursor: {"priority": cursor.whole("a whole number")},
    "MAX": _max_gap,
    "EVERY": _every,
}
_ONLY_QUERIES = "a query can be replaced while its streams go on; DROP the other and CREATE it anew"
_CREATE_INSTEAD = {
    "TEMPORARY": "write CREATE STREAM, TABLE or QUERY without it",
    "FUNCTION": "aggregates of your own are written in Python, with @wr.aggregate",
    "AGGREGATE": "aggregates of your own are written in Python, with @wr.aggregate",
}
_CREATED: dict[str, Callable[[Cursor], syntax.Statement]] = {
    "STREAM": _create_stream,
    "TABLE": _create_table,
    "QUERY": _create_query,
    "ARCHIVE": read_create_archive,
}


# The others.


def _drop(cursor: Cursor) -> syntax.Statement:
    cursor.expect("DROP")
    words = [token.text for token in cursor.tokens.items[1:] if token.word not in _CREATE_WORDS]
    said = words[0] if words else "name"
    others = dict.fromkeys(("VIEW", "MATERIALIZED", "SINK"), f"write DROP QUERY {said}")
    others["SOURCE"] = f"write DROP STREAM {said}"
    kinds = ("QUERY", "STREAM", "TABLE", "ARCHIVE")
    kind = cursor.choose(kinds, "QUERY, STREAM, TABLE or ARCHIVE", others)
    if_there = cursor.take("IF", "EXISTS")
    name = cursor.name(f"the name of the {kind.lower()}")
    cursor.finish()
    return syntax.Drop(cursor.tokens.span, kind, name, if_there)


def _describe(cursor: Cursor) -> syntax.Statement:
    cursor.index += 1
    if cursor.word in ("EXTENDED", "FORMATTED", "TABLE", "STREAM", "QUERY") and len(cursor.tokens) > 2:
        cursor.index += 1
    return _named(cursor, syntax.Describe, "the name of a stream, table, query or archive")


def _refresh(cursor: Cursor) -> syntax.Statement:
    cursor.expect("REFRESH")
    cursor.choose(("QUERY",), "QUERY")
    return _named(cursor, syntax.Refresh, "the name of the query")


def _named(cursor: Cursor, kind: Callable[[Span, str], syntax.Statement], what: str) -> syntax.Statement:
    """A statement that ends with a name."""
    name = cursor.name(what)
    cursor.finish()
    return kind(cursor.tokens.span, name)


def _show(cursor: Cursor) -> syntax.Statement:
    cursor.expect("SHOW")
    kinds = ("QUERIES", "STREAMS", "TABLES", "ARCHIVES", "GAPS")
    others = {
        "VIEWS": "write SHOW QUERIES",
        "MATERIALIZED": "write SHOW QUERIES",
        "SOURCES": "write SHOW STREAMS",
        "SINKS": "write SHOW QUERIES, which tells where their answers go",
        "FUNCTIONS": "docs/language.md lists the functions",
        "CREATE": f"write DESCRIBE {cursor.tokens[len(cursor.tokens) - 1].text}",
    }
    kind = cursor.choose(kinds, "QUERIES, STREAMS, TABLES, ARCHIVES or GAPS", others)
    cursor.finish()
    return syntax.Show(cursor.tokens.span, kind)


def _explain(cursor: Cursor) -> syntax.Statement:
    cursor.expect("EXPLAIN")
    if cursor.done:
        cursor.fail("a query")
    plan = cursor.take("PLAN", "FOR") or cursor.take("EXTENDED") or cursor.take("FORMATTED")
    if not plan and cursor.take("ANALYZE"):
        if cursor.next_is("SELECT"):
            hint = "a query that runs has a name: CREATE QUERY name AS SELECT …"
            cursor.fail("the name of a query", hint=hint)
        return _named(cursor, syntax.Analyze, "the name of a query that runs")
    if not plan and cursor.take("ARCHIVE"):
        return _named(cursor, syntax.ExplainArchive, "the name of an archive")
    query = read_once(cursor.tokens.cut(cursor.index, len(cursor.tokens))).query
    return syntax.Explain(cursor.tokens.span, query)


_STATEMENTS: dict[str, Callable[[Cursor], syntax.Statement]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "REFRESH": _refresh,
    "SHOW": _show,
    **dict.fromkeys(("DESCRIBE", "DESC"), _describe),
    "EXPLAIN": _explain,
    **dict.fromkeys(("SELECT", "WITH", "("), lambda cursor: read_once(cursor.tokens)),
}
