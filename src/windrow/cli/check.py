"""`windrow check`: does a script mean something, and could it run? It is registered, and nothing is run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.algebra.catalog import Forms, form_text
from windrow.cli.scripts import name_of, read_script, within

if TYPE_CHECKING:
    from windrow.algebra.expressions import Schema
    from windrow.language.binder.bound_statements import BoundStatement

_PLURALS = {"query": "queries"}


def check(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.cql", dir_okay=False, help="A script; - reads from standard input."),
    ],
) -> None:
    """Parse, bind and type every statement of a script, and refuse what an engine would not run."""
    from windrow.cli.declarations import Declarations

    with within(name_of(file)), Declarations().keeping(read_script(file)) as (_, bound):
        described = [_described(statement) for statement in bound]
    widest = max((len(name) for _, name, _ in described), default=0)
    for kind, name, about in described:
        print(f"{kind:<8}{name:<{widest}}  {about}".rstrip())
    print(_summary([kind for kind, _, _ in described]))


def _described(statement: BoundStatement) -> tuple[str, str, str]:
    """Kind, name and what it comes to."""
    from windrow.language.binder.bound_statements import (
        AnalyzeQuery,
        DeclareArchive,
        DeclareStream,
        DeclareTable,
        DescribeEntry,
        Dropped,
        ExplainLayout,
        Nothing,
        RefreshQuery,
        RegisterQuery,
        RelayArchive,
        ShowAll,
    )

    match statement:
        case DeclareStream(stream):
            return "stream", stream.name, _columns(stream.schema, stream.forms)
        case DeclareTable(table):
            return "table", table.name, _columns(table.schema, table.forms)
        case RegisterQuery(query):
            return "query", query.name, _columns(query.plan.schema)
        case DeclareArchive(archive):
            return "archive", archive.name, f"of {archive.source} by {archive.key}"
        case RelayArchive(name=name) | ExplainLayout(name=name):
            return "explain" if isinstance(statement, ExplainLayout) else "alter", name, "archive"
        case Dropped(kind, name):
            return "drop", name, kind.lower()
        case ShowAll(kind):
            return "show", "", kind.lower()
        case DescribeEntry(entry):
            return "describe", entry.name, ""
        case Nothing(kind, name):
            return "nothing", name, f"{kind.lower()}: nothing to do"
        case AnalyzeQuery(query):
            return "analyze", query.name, ""
        case RefreshQuery(query):
            return "refresh", query.name, ""
    return "query", "", _columns(statement.plan.schema)


def _columns(schema: Schema, forms: Forms = ()) -> str:
    written = {name: f" {form_text(form)}" for name, form in forms}
    return ", ".join(f"{field.name} {field.type}{written.get(field.name, '')}" for field in schema)


def _summary(kinds: list[str]) -> str:
    """
    >>> _summary(["stream", "query", "query"]), _summary([])
    ('ok  3 statements: 1 stream, 2 queries', 'ok  0 statements')
    """
    counts = [_counted(count, kind) for kind, count in Counter(kinds).items()]
    return f"ok  {_counted(len(kinds), 'statement')}" + (f": {', '.join(counts)}" if counts else "")


def _counted(count: int, kind: str) -> str:
    return f"{count} {kind if count == 1 else _PLURALS.get(kind, kind + 's')}"
