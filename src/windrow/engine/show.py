"""What SHOW shows: one table for each kind of thing that is registered.

What `w.archives["past"]` is: the rows an archive keeps, by key or all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from statistics import pvariance
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.algebra.catalog import Stream, form_text
from windrow.algebra.explain.operators import policy, resolution_text
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.values import instant
from windrow.engine import declarations, gaps
from windrow.errors import QueryError
from windrow.language.catalog import Catalog, Entry, StandingArchive, StandingQuery

if TYPE_CHECKING:
    from windrow.algebra.types import DataType
    from windrow.archive.snapshot import Reading
    from windrow.engine.archives import Archiving, Kept
    from windrow.engine.views import Query, StreamView, TableView


class ArchiveView:
    """An archive that is registered. Questions are answered as of the last commit, while a run goes on.

    Each gives a table of pyarrow, its rows in no order. With `at`, a question is about a later instant: what
    of the rows that are there now will not have expired by then.
    """

    def __init__(self, archives: Archiving, name: str) -> None:
        self._archives, self.name = archives, name

    def __repr__(self) -> str:
        return f"<archive {self.name} of {self.source} by {self.key}>"

    @property
    def _kept(self) -> Kept:
        found = self._archives.kept.get(self.name)
        if found is None:
            hint = "ask for it again by name: w.archives"
            raise QueryError(f"archive `{self.name}` was dropped", code="unknown-source", hint=hint)
        return found

    @property
    def source(self) -> str:
        """The stream or query whose rows it keeps."""
        return self._kept.spec.source

    @property
    def key(self) -> str:
        """The column rows are found by."""
        return self._kept.spec.key

    @property
    def keep(self) -> int:
        """How long rows are kept at most: microseconds, or ticks of an integer attribute."""
        return self._kept.spec.keep

    @property
    def layout(self) -> str:
        """How it is laid out, in the words of ALTER ARCHIVE."""
        return str(self._kept.laid.layout)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How it is laid out, and why, and how even that is: what EXPLAIN ARCHIVE shows."""
        layout, why, update, *more = self._kept.laid.facts(is_equal=self._kept.is_equal)
        sizes = self.sizes
        even = f"{min(sizes):,} to {max(sizes):,} each, variance {pvariance(sizes):,.1f}"
        return [layout, why, update, ("rows", even), *more]

    @property
    def sizes(self) -> list[int]:
        """The rows on disk in each of its sub-indices, as of its last update."""
        return self._kept.archive.sizes

    @property
    def expires(self) -> str:
        """The column that says until when a row is valid."""
        return self._kept.shape.declaration.expires

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return self._kept.shape.schema

    @property
    def now(self) -> int:
        """The instant that questions are about if they do not say `at`."""
        with self._reading() as reading:
            return reading.now

    @property
    def complete_from(self) -> int | None:
        """Rows from before this may be missing: they came before the archive was there. None: none did."""
        return self._kept.complete_from

    @property
    def folder(self) -> str:
        """Where its files are: a directory, or the URL of a prefix."""
        return self._archives.place(self._kept)

    @property
    def files(self) -> list[str]:
        """The Parquet files as of its last update; rows in them are valid while they expire after `updated`.

        Rows of the last commits may still be on their way; when a run ends, all are there.
        """
        return self._kept.archive.files

    @property
    def updated(self) -> int:
        """The instant of its last update."""
        return self._kept.archive.now

    def __len__(self) -> int:
        return int(self.scan(columns=[self.key]).num_rows)

    def _reading(self) -> AbstractContextManager[Reading]:
        return self._archives.reading(self._kept.spec.name)

    @declarations.checked
    def probe(self, key: Any, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with this key."""
        with self._reading() as reading:
            return reading.find(key, at=_instant(at), columns=columns)

    @declarations.checked
    def range(self, low: Any, high: Any, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The valid rows with keys from `low` to `high`, both included; None is no bound."""
        with self._reading() as reading:
            return reading.find_between(low, high, at=_instant(at), columns=columns)

    @declarations.checked
    def scan(self, *, at: Any = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All valid rows."""
        with self._reading() as reading:
            return reading.scan(at=_instant(at), columns=columns)


def _instant(at: Any) -> int | None:
    return None if at is None else instant(at)


_TEXT, _COUNT, _NUMBER = pa.string(), pa.int64(), pa.float64()
_QUERIES = pa.schema(
    {"name": _TEXT, "status": _TEXT, "rows": _COUNT, "query": _TEXT, "shares": _TEXT}
    | {"every": _COUNT, "had": _NUMBER, "late": _NUMBER, "cost": _NUMBER, "plan": _TEXT}
)
_COLUMNS = pa.schema({"column": _TEXT, "type": _TEXT, "about": _TEXT})
_TABLES = pa.schema({"name": _TEXT, "kind": _TEXT, "rows": _COUNT, "source": _TEXT})
_STREAMS = pa.schema(
    {"name": _TEXT, "rows": _COUNT, "late": _COUNT, "shed": _COUNT, "malformed": _COUNT}
    | {"source": _TEXT, "warnings": _TEXT}
)
_ARCHIVES = pa.schema(
    {"name": _TEXT, "source": _TEXT, "key": _TEXT, "rows": _COUNT, "files": _COUNT}
    | {"layout": _TEXT, "folder": _TEXT}
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
        if isinstance(entry, Stream) and field.name == entry.wattr:
            notes += filter(None, (f"WATTR{resolution_text(entry)}", policy(entry)))
        elif not isinstance(entry, Stream) and field.name in entry.key:
            notes += ["KEY"]
        yield field.name, field.type, " ".join(notes)
    for name, value in entry.computed:
        yield name, value.type, f"AS {to_sql(value, str)}"


def show_archives(archives: Mapping[str, ArchiveView]) -> pa.Table:
    """The archives, and how much they hold."""
    rows = []
    for name, each in archives.items():
        row = {"name": name, "source": each.source, "key": each.key, "rows": len(each)}
        rows.append(row | {"files": len(each.files), "layout": each.layout, "folder": each.folder})
    return pa.Table.from_pylist(rows, schema=_ARCHIVES)


def explain_archive(archive: ArchiveView) -> pa.Table:
    """How an archive is laid out, and why."""
    return pa.table([list(column) for column in zip(*archive.facts, strict=True)], ["about", "what"])


def show_gaps(queries: Mapping[str, Query]) -> pa.Table:
    """The windows that were left out under overload."""
    return gaps.all_gaps({name: query.gaps for name, query in queries.items()})


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
    rows = []
    for name, stream in streams.items():
        known = stream.progress
        row = {"name": name, "rows": known.accepted, "late": known.late, "shed": known.shed}
        warnings = "; ".join(f"{each.code}: {each.message}" for each in stream.warnings)
        source = catalog.streams[name].source
        rows.append(row | {"malformed": known.malformed, "source": source, "warnings": warnings or None})
    return pa.Table.from_pylist(rows, schema=_STREAMS)


def show_tables(tables: Mapping[str, TableView], catalog: Catalog) -> pa.Table:
    """The tables, and how much they hold."""
    rows = []
    for name, each in tables.items():
        source = catalog.tables[name].source
        rows.append({"name": name, "kind": each.kind, "rows": len(each), "source": source})
    return pa.Table.from_pylist(rows, schema=_TABLES)
