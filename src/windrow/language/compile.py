"""From text to plan: the front door of the language.

>>> catalog = Catalog(declare_stream("bids", "item BIGINT, price DOUBLE, ts TIMESTAMP"))
>>> plan = compile_query("SELECT item, MAX(price) AS top FROM bids [RANGE 5 MINUTES] GROUP BY item", catalog)
>>> plan.schema.names, plan.meaning.name
(('item', 'top'), 'AUTO')
>>> compile_query("SELECT prise FROM bids [NOW]", catalog)
Traceback (most recent call last):
windrow.errors.QueryError: error[unknown-column]: no column `prise`
  --> 1:8
  |
1 | SELECT prise FROM bids [NOW]
  |        ^^^^^
  = did you mean `price`?

The way of a text: `tokens` cuts it up, `statements` finds the statements, `lift` takes windows, stream
words and literals out of each SELECT, `sql` has sqlglot read what is left and turns its tree into ours
(`syntax`), and `binder` makes it a plan. The statements of a script are bound one after the other: each sees
the catalog as those before it left it. Whatever goes wrong is a `QueryError` that knows its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from windrow.algebra import Emit, Stream, Table
from windrow.errors import QueryError, Span, nearest
from windrow.language import columns, lift_literals, shape, sql, statements, syntax
from windrow.language.binder import bound_statements as bound, declarations, queries
from windrow.language.binder.once import Once, bind_once
from windrow.language.catalog import Catalog, Entry, StandingArchive, StandingQuery, kind_of
from windrow.language.tokens import Tokens, at, refuse, scan
from windrow.windows import COUNTED, Quantity

__all__ = [
    "Catalog",
    "compile_once",
    "compile_query",
    "compile_script",
    "declare_stream",
    "declare_table",
    "parse_columns",
    "parse_expression",
    "parse_quantity",
    "parse_query",
    "parse_script",
    "parse_stream_options",
]

# ------------------------------------------------------------ syntax trees


@shape.roomy
def parse_script(text: str, file: str | None = None) -> tuple[syntax.Statement, ...]:
    """The statements of a script.

    >>> [type(statement).__name__ for statement in parse_script("SHOW STREAMS; DROP QUERY top;")]
    ['Show', 'Drop']
    """
    with _about(text, file, Span(0, len(text))):
        return tuple(statements.read_script(scan(text)))


@shape.roomy
def parse_query(text: str) -> syntax.QueryExpression:
    """One SELECT, or SELECTs joined by UNION ALL and EXCEPT ALL; a `;` may end it.

    >>> query = parse_query("SELECT max(price) FROM bids [RANGE 4 MINUTES SLIDE 1 MINUTE]")
    >>> query.sources[0].window.clause.slide
    Quantity(value=1, unit='MINUTES')
    """
    with _about(text, place=Span(0, len(text))):
        return sql.read_query(_only_statement(scan(text)))


def parse_columns(text: str) -> tuple[syntax.ColumnDef, ...]:
    """The columns of a stream or table.

    >>> [(column.name, column.type_text) for column in parse_columns("a BIGINT, d DECIMAL(10, 2)")]
    [('a', 'BIGINT'), ('d', 'DECIMAL(10, 2)')]
    """
    with _about(text, place=Span(0, len(text))):
        return columns.read_columns(_checked(text))


@shape.roomy
def parse_stream_options(text: str) -> syntax.StreamOptions:
    """What follows the columns of CREATE STREAM.

    >>> options = parse_stream_options("WATTR ts SLACK 2 SECONDS LATE KEEP")
    >>> options.wattr, str(options.progress.amount), options.late
    ('ts', '2 SECONDS', 'KEEP')
    """
    with _about(text, place=Span(0, len(text))):
        return columns.read_stream_options(lift_literals.Cursor(_checked(text)))


def parse_quantity(text: str) -> Quantity:
    """A number with its unit, as in SLACK or EVERY.

    >>> print(parse_quantity("5 min"))
    5 MINUTES
    """
    with _about(text, place=Span(0, len(text))):
        cursor = lift_literals.Cursor(_checked(text))
        quantity = cursor.quantity("a number, as in 5 SECONDS,")
        cursor.finish()
        return quantity


@shape.roomy
def parse_expression(text: str) -> syntax.Node:
    """One expression.

    >>> parse_expression("price * 2").function
    '*'
    """
    with _about(text, place=Span(0, len(text))):
        return sql.read_expression(_checked(text))


def _checked(text: str) -> Tokens:
    tokens = scan(text)
    shape.check_nesting(tokens)
    tokens.partner  # noqa: B018  # refuses parentheses without a partner
    return tokens


def _only_statement(tokens: Tokens) -> Tokens:
    ends = [index for index, token in enumerate(tokens) if token.word == ";"]
    end = ends[0] if ends else len(tokens)
    rest = next((token for token in tokens.items[end:] if token.word != ";"), None)
    if rest is not None:
        refuse(
            rest,
            "there is more than one statement",
            "syntax",
            "one query is expected here; scripts may hold many statements",
        )
    return tokens.cut(0, end)


# ------------------------------------------------------------ plans


_SHOWN = {"STREAMS": "STREAM", "TABLES": "TABLE", "QUERIES": "QUERY", "ARCHIVES": "ARCHIVE"}


def bind_statement(statement: syntax.Statement, catalog: Catalog) -> bound.BoundStatement:
    """What a statement means; declarations change the catalog."""
    with at(statement):
        if getattr(statement, "if_missing", False) and (there := _there(statement, catalog)):
            return there
        match statement:
            case syntax.CreateStream():
                stream = declarations.bind_stream(statement, catalog.inference)
                catalog.add(stream)
                return bound.DeclareStream(stream)
            case syntax.CreateTable():
                table = declarations.bind_table(statement, catalog.inference)
                catalog.add(table)
                return bound.DeclareTable(table)
            case syntax.CreateQuery():
                return _registered_query(statement, catalog)
            case statements.CreateArchive() | statements.AlterArchive() | syntax.ExplainArchive():
                return _of_archive(statement, catalog)
            case syntax.Drop():
                return _dropped(statement, catalog)
            case syntax.Describe():
                return bound.DescribeEntry(_described(statement, catalog))
            case syntax.Show():
                return bound.ShowAll(_SHOWN.get(statement.kind, statement.kind))
            case syntax.Explain():
                asked = _asked(syntax.SelectOnce(statement.span, statement.query), catalog)
                return bound.ExplainQuery(asked.plan, asked.once)
            case syntax.Analyze() | syntax.Refresh():
                analyzed = isinstance(statement, syntax.Analyze)
                kind = bound.AnalyzeQuery if analyzed else bound.RefreshQuery
                return kind(_registered(statement, catalog))
            case syntax.SelectOnce():
                return _asked(statement, catalog)
    raise TypeError(f"no statement {type(statement).__name__}")


def _there(statement: Any, catalog: Catalog) -> bound.Nothing | None:
    """What IF NOT EXISTS leaves to do where something of the kind has the name: nothing."""
    found = catalog.entry(statement.name)
    kind = type(statement).__name__.removeprefix("Create").upper()
    return bound.Nothing(kind, found.name) if found is not None and kind_of(found) == kind else None


def _dropped(statement: syntax.Drop, catalog: Catalog) -> bound.Dropped | bound.Nothing:
    if statement.if_there and catalog.entry(statement.name) is None:
        return bound.Nothing(statement.kind, statement.name)
    return bound.Dropped(statement.kind, catalog.drop(statement.kind, statement.name).name)


def _registered_query(statement: syntax.CreateQuery, catalog: Catalog) -> bound.RegisterQuery | bound.Nothing:
    found = catalog.entry(statement.name)
    replaces = statement.replaces and isinstance(found, StandingQuery)
    query = _standing(statement, catalog)
    if replaces:
        if query == found:
            return bound.Nothing("QUERY", query.name)
        catalog.drop("QUERY", statement.name)
    catalog.add(query)
    return bound.RegisterQuery(query, statement.replaces)


def _asked(statement: syntax.SelectOnce, catalog: Catalog) -> bound.RunOnce:
    """A SELECT by itself; where it would not be a standing query, its plan is that of the one answer."""
    once, refusal = None, None
    try:
        once = bind_once(statement, catalog)
    except QueryError as error:
        refusal = error
    try:
        return bound.RunOnce(queries.bind_query(statement.query, catalog), once, refusal)
    except QueryError:
        if once is None:
            raise
        return bound.RunOnce(once.plan, once)


def _unknown(what: str, name: str, known: Iterable[str], otherwise: str) -> QueryError:
    """Nothing of the kind has this name."""
    return QueryError(f"{what} `{name}`", code="unknown-source", hint=nearest(name, list(known)) or otherwise)


def _described(statement: syntax.Describe, catalog: Catalog) -> Entry:
    found = catalog.entry(statement.name)
    if found is None:
        otherwise = "SHOW STREAMS, TABLES or QUERIES tells names"
        raise _unknown("nothing is called", statement.name, catalog.names, otherwise)
    return found


def _registered(statement: syntax.Analyze | syntax.Refresh, catalog: Catalog) -> StandingQuery:
    found = catalog.entry(statement.name)
    if not isinstance(found, StandingQuery):
        runs = "EXPLAIN ANALYZE and REFRESH are about a query that runs: CREATE QUERY name AS … first"
        raise _unknown("no query", statement.name, catalog.queries, runs)
    return found


def _of_archive(
    statement: statements.CreateArchive | statements.AlterArchive | syntax.ExplainArchive, catalog: Catalog
) -> bound.DeclareArchive | bound.RelayArchive | bound.ExplainLayout:
    if isinstance(statement, statements.CreateArchive):
        archive = declarations.bind_archive(statement, catalog)
        catalog.add(archive)
        return bound.DeclareArchive(archive)
    found = catalog.entry(statement.name)
    if not isinstance(found, StandingArchive):
        raise _unknown("no archive", statement.name, catalog.archives, "CREATE ARCHIVE it first")
    if isinstance(statement, statements.AlterArchive):
        return bound.RelayArchive(found.name, statement.layout)
    return bound.ExplainLayout(found.name)


def _standing(statement: syntax.CreateQuery, catalog: Catalog) -> StandingQuery:
    plan = queries.bind_query(statement.query, catalog)
    if statement.max_gap is not None:
        _may_shed(plan, statement.max_gap)
    every = _every(statement, plan)
    at_most = _at_most(statement, plan, every)
    return StandingQuery(
        statement.name, plan, statement.sink, statement.priority, statement.max_gap, every, at_most
    )


def _may_shed(plan: Emit, max_gap: int) -> None:
    """MAX GAP lets whole windows be dropped, so there must be windows, each with an answer of its own."""
    if max_gap < 1:
        raise QueryError(
            f"MAX GAP {max_gap} allows nothing",
            code="bad-max-gap",
            hint="MAX GAP counts windows from 1 on; leave it out to lose none",
        )
    if any(not leaf.spec.is_logical for leaf in plan.leaves):
        raise QueryError(
            f"MAX GAP lets whole windows be dropped, which is impossible for this query: {COUNTED}",
            code="bad-max-gap",
            hint="give it windows of time, RANGE and SLIDE, or leave MAX GAP out",
        )
    if not plan.reports_extents:
        raise QueryError(
            "MAX GAP lets whole windows be dropped, but this query has no answer per window of time",
            code="bad-max-gap",
            hint="give its windows RANGE and SLIDE, or leave MAX GAP out",
        )


def _every(statement: syntax.CreateQuery, plan: Emit) -> int | None:
    if statement.every is None:
        return None
    period: int = statement.every.ticks(plan.leaves[0].domain)
    if period < 1:
        raise QueryError(f"EVERY {statement.every} is no period", code="bad-every", hint="1 or more")
    return period


def _at_most(statement: syntax.CreateQuery, plan: Emit, every: int | None) -> int | None:
    if statement.at_most is None or every is None:
        return None
    longest: int = statement.at_most.ticks(plan.leaves[0].domain)
    if longest < every:
        raise QueryError(
            f"AT MOST {statement.at_most} is less than EVERY {statement.every}",
            code="bad-every",
            hint="an answer is as old as the period before the next one comes; give AT MOST more than that",
        )
    return longest


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"\bKEY\s*\([^)]*\)", re.IGNORECASE)


@shape.roomy
def compile_query(text: str, catalog: Catalog) -> Emit:
    with _about(text):
        return queries.bind_query(parse_query(text), catalog)


@shape.roomy
def compile_once(text: str, catalog: Catalog) -> Once:
    """A SELECT that is answered once; what follows it (WITH ISOLATION, PRIORITY) may be there."""
    with _about(text):
        (*others, statement) = parse_script(text) or (None,)
        if others or not isinstance(statement, syntax.SelectOnce):
            raise QueryError("one SELECT is expected here", code="syntax", hint="write SELECT …")
        return bind_once(statement, catalog)


@shape.roomy
def compile_script(text: str, catalog: Catalog) -> list[bound.BoundStatement]:
    """All statements of a script. Its declarations change the catalog, or, if one fails, none does."""
    working = catalog.copy()
    with _about(text):
        made = [bind_statement(statement, working) for statement in parse_script(text)]
    catalog.adopt(working)
    return made


def declare_stream(name: str, columns: str, options: str | None = None) -> Stream:
    """A stream from the text of its columns and options, as they stand in CREATE STREAM.

    Without WATTR it is ordered by its only time column; without a time column, by its last integer.

    >>> declare_stream("s", "a BIGINT, ts TIMESTAMP", "SLACK 2 SECONDS LATE DROP").wattr
    'ts'
    """
    (made,) = compile_script(f"CREATE STREAM {_quoted(name)} ({columns}) {options or ''}", Catalog())
    assert isinstance(made, bound.DeclareStream)
    return made.stream


def declare_table(name: str, columns: str, options: str | None = None) -> Table:
    """A table from the text of its columns and options: NRR (the default) or RELATION, and KEY (…).

    >>> declare_table("items", "item BIGINT, name STRING", "RELATION KEY (item)").key
    ('item',)
    """
    written = options or ""
    key = _KEY.search(written)
    kind = _KEY.sub("", written).strip() or "NRR"
    inside = f"{columns}, {key[0]}" if key else columns
    (made,) = compile_script(f"CREATE TABLE {_quoted(name)} ({inside}) {kind}", Catalog())
    assert isinstance(made, bound.DeclareTable)
    return made.table


def _quoted(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else "`" + name.replace("`", "``") + "`"


@contextmanager
def _about(text: str, file: str | None = None, place: Span | None = None) -> Iterator[None]:
    """Errors raised inside show the text they are about, those without a place of their own this one."""
    try:
        yield
    except QueryError as error:
        raise error.located(text, file, place) from None
    except RecursionError:
        if not shape.has_room():
            raise
        raise shape.too_deep(Span(0, len(text))).located(text, file) from None
