"""What SHOW shows: one table for each kind of thing that is registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.algebra.catalog import Stream, form_text
from windrow.algebra.explain.operators import policy, resolution_text
from windrow.algebra.functions.sql_text import to_sql
from windrow.engine.gaps import all_gaps
from windrow.errors import QueryError
from windrow.language.catalog import Catalog, Entry, StandingArchive, StandingQuery

if TYPE_CHECKING:
    from windrow.algebra.types import DataType
    from windrow.engine.archives.view import ArchiveView
    from windrow.engine.views import Query, StreamView, TableView

_QUERIES = pa.schema(
    [
        ("name", pa.string()),
        ("status", pa.string()),
        ("rows", pa.int64()),
        ("query", pa.string()),
        ("shares", pa.string()),
        ("every", pa.int64()),
        ("had", pa.float64()),
        ("late", pa.float64()),
        ("cost", pa.float64()),
        ("plan", pa.string()),
    ]
)
_COLUMNS = pa.schema([("column", pa.string()), ("type", pa.string()), ("about", pa.string())])
_TABLES = pa.schema(
    [("name", pa.string()), ("kind", pa.string()), ("rows", pa.int64()), ("source", pa.string())]
)
_STREAMS = pa.schema(
    [
        ("name", pa.string()),
        ("rows", pa.int64()),
        ("late", pa.int64()),
        ("shed", pa.int64()),
        ("malformed", pa.int64()),
        ("source", pa.string()),
        ("warnings", pa.string()),
    ]
)

_ARCHIVES = pa.schema(
    [
        ("name", pa.string()),
        ("source", pa.string()),
        ("key", pa.string()),
        ("rows", pa.int64()),
        ("files", pa.int64()),
        ("layout", pa.string()),
        ("folder", pa.string()),
    ]
)


def describe(entry: Entry) -> pa.Table:
    """The columns of something declared, each with its type and what is said about it."""
    rows = [{"column": name, "type": str(kind), "about": about} for name, kind, about in _columns_of(entry)]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def _columns_of(entry: Entry) -> Iterator[tuple[str, DataType, str]]:
    if isinstance(entry, StandingArchive):
        raise QueryError(
            f"`{entry.name}` is an archive: it has the columns of `{entry.source}`",
            code="unknown-source",
            hint=f"write DESCRIBE {entry.source}",
        )
    if isinstance(entry, StandingQuery):
        yield from ((field.name, field.type, "") for field in entry.plan.schema)
        return
    forms = dict(entry.forms)
    for field in entry.schema:
        notes = [form_text(forms[field.name])] if field.name in forms else []
        if isinstance(entry, Stream):
            notes += [f"WATTR{resolution_text(entry)}"] if field.name == entry.wattr else []
            notes += [found] if field.name == entry.wattr and (found := policy(entry)) else []
        else:
            notes += ["KEY"] if field.name in entry.key else []
        yield field.name, field.type, " ".join(notes)
    for name, value in entry.computed:
        yield name, value.type, f"AS {to_sql(value, str)}"


def show_archives(archives: Mapping[str, ArchiveView]) -> pa.Table:
    """The archives, and how much they hold."""
    rows = [
        {
            "name": name,
            "source": archive.source,
            "key": archive.key,
            "rows": len(archive),
            "files": len(archive.files),
            "layout": archive.layout,
            "folder": archive.folder,
        }
        for name, archive in archives.items()
    ]
    return pa.Table.from_pylist(rows, schema=_ARCHIVES)


def explain_archive(archive: ArchiveView) -> pa.Table:
    """How an archive is laid out, and why."""
    return pa.table([list(column) for column in zip(*archive.facts, strict=True)], ["about", "what"])


def show_gaps(queries: Mapping[str, Query]) -> pa.Table:
    """The windows that were left out under overload."""
    return all_gaps({name: query.gaps for name, query in queries.items()})


def show_queries(queries: Mapping[str, Query]) -> pa.Table:
    """The standing queries, and how they do: what they share, how often they are refreshed, their cost, and
    how they run."""
    found = []
    for name, query in queries.items():
        known = query.progress
        row = {"name": name, "status": known.status, "rows": known.rows, "query": query.text}
        row |= {"shares": known.shares, "every": known.period, "had": known.had, "late": known.late}
        found.append({**row, "cost": known.cost, "plan": query.plan})
    return pa.Table.from_pylist(found, schema=_QUERIES)


def show_streams(streams: Mapping[str, StreamView], catalog: Catalog) -> pa.Table:
    """The streams, and what came of their rows."""
    rows = [
        {
            "name": name,
            "rows": stream.progress.accepted,
            "late": stream.progress.late,
            "shed": stream.progress.shed,
            "malformed": stream.progress.malformed,
            "source": catalog.streams[name].source,
            "warnings": "; ".join(f"{each.code}: {each.message}" for each in stream.warnings) or None,
        }
        for name, stream in streams.items()
    ]
    return pa.Table.from_pylist(rows, schema=_STREAMS)


def show_tables(tables: Mapping[str, TableView], catalog: Catalog) -> pa.Table:
    """The tables, and how much they hold."""
    rows = [
        {"name": name, "kind": table.kind, "rows": len(table), "source": catalog.tables[name].source}
        for name, table in tables.items()
    ]
    return pa.Table.from_pylist(rows, schema=_TABLES)
