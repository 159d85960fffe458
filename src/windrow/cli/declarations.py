"""Statements that are checked, and kept until an engine runs them.

What an engine would refuse is known best by an engine: one of a temporary directory takes all statements in
the same way as the one that will run them, and is never run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import pyarrow as pa

from windrow.algebra.explain.warnings import query_warnings
from windrow.engine import declarations, explain, gaps, show
from windrow.engine.adhoc.snapshot import snapshot_of
from windrow.engine.engine import Engine
from windrow.errors import QueryError, Span
from windrow.execution.local import HereJobs
from windrow.language import compile, syntax
from windrow.language.binder import bound_statements
from windrow.sinks import MemorySink
from windrow.spark.sources import infer_columns
from windrow.state import log, store


class Declarations:
    """Takes statements as an engine would, and runs nothing.

    >>> declared = Declarations()
    >>> declared.sql("CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts ORDERED FROM 'generator:trafic'")
    Traceback (most recent call last):
    windrow.errors.QueryError: error[unknown-generator]: no generator `trafic`
      --> 1:61
      |
    1 | CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts ORDERED FROM 'generator:trafic'
      |                                                             ^^^^^^^^^^^^^^^^^^
      = did you mean `traffic`?
    """

    def __init__(self) -> None:
        self.catalog = compile.Catalog(inference=infer_columns)
        self._texts: list[str] = []
        folder = Path(mkdtemp(prefix="windrow-check-"))
        self._engine = Engine(HereJobs(), log.CommitLog.open(store.LocalStore(folder)), shards=1)
        finalize(self, _forget, self._engine, folder)

    @property
    def text(self) -> str:
        """All that was declared, as one script."""
        return "\n".join(self._texts)

    def sql(self, text: str) -> list[Any]:
        """Check statements, and keep them if all are in order. Gives what SHOW and EXPLAIN show."""
        with self.keeping(text) as (shown, _):
            return shown

    @contextmanager
    def keeping(self, text: str) -> Iterator[tuple[list[Any], list[bound_statements.BoundStatement]]]:
        """The same, with what the statements mean; if the block fails, they are not kept after all."""
        before = self.catalog.copy()
        try:
            with self._engine.all_or_nothing():
                bound, written = compile.compile_script(text, self.catalog), compile.parse_script(text)
                for statement, source in zip(bound, written, strict=True):
                    try:
                        self._take(statement)
                    except QueryError as error:
                        error.located(text, span=_place(statement, source, text))
                        raise
                yield [shown for each in bound if (shown := self._shown(each)) is not None], bound
        except BaseException:
            self.catalog.adopt(before)
            raise
        for statement, source in zip(bound, written, strict=True):
            if not isinstance(statement, _ASK_ONLY):
                self._texts.append(text[source.span.start : source.span.end] + ";")
            if isinstance(statement, bound_statements.RegisterQuery):
                for each in query_warnings(statement.query.plan, statement.query.name):
                    print(each.render(), file=sys.stderr)

    def _take(self, statement: bound_statements.BoundStatement) -> None:
        """Refuse what an engine would refuse. Where answers and late rows go to is looked at, not opened."""
        match statement:
            case bound_statements.RunOnce(_, once, refusal):
                if once is None:
                    raise refusal or QueryError("this cannot be asked once", code="unsupported")
                snapshot_of(once.plan)
        declarations.register(self._engine, statement, MemorySink())

    def asks(self, text: str) -> bool:
        """Whether there is a SELECT by itself among the statements."""
        return any(
            isinstance(each, bound_statements.RunOnce)
            for each in compile.compile_script(text, self.catalog.copy())
        )

    def check_sources(self, text: str) -> None:
        """Every stream says where its rows come from; if not, the error points into `text`."""
        for stream in self.catalog.streams.values():
            if stream.source is None:
                written = [
                    each for each in compile.parse_script(text) if isinstance(each, syntax.CreateStream)
                ]
                spans = [each.span for each in written if each.name == stream.name]
                raise QueryError(
                    f"stream `{stream.name}` has no source",
                    code="no-source",
                    hint="declare it with FROM '…': files, a generator or Kafka; see docs/sources.md",
                ).located(text, span=spans[-1] if spans else None)

    def _shown(self, statement: bound_statements.BoundStatement) -> Any:
        match statement:
            case bound_statements.ExplainQuery(plan, _):
                return explain.explain_plan(plan)
            case bound_statements.AnalyzeQuery(query):
                return explain.explain_plan(
                    query.plan, name=query.name, sink=query.sink, max_gap=query.max_gap
                )
            case bound_statements.ShowAll(kind):
                return self._names(kind)
            case bound_statements.DescribeEntry(entry):
                return show.describe(entry)
        return None

    def _names(self, kind: str) -> Any:
        if kind == "GAPS":  # nothing runs yet, so nothing is missing
            return gaps.all_gaps({})
        catalog = self.catalog
        kinds: dict[str, Iterable[str]] = {
            "STREAM": catalog.streams,
            "TABLE": catalog.tables,
            "QUERY": catalog.queries,
            "ARCHIVE": catalog.archives,
        }
        return pa.table({"name": pa.array(kinds[kind], pa.string())})


#: statements that change nothing
_ASK_ONLY = (
    bound_statements.ShowAll,
    bound_statements.ExplainQuery,
    bound_statements.AnalyzeQuery,
    bound_statements.RefreshQuery,
    bound_statements.RunOnce,
    bound_statements.DescribeEntry,
    bound_statements.Nothing,
)


def _forget(engine: Engine, folder: Path) -> None:
    """Nobody looks at the declarations any more. Nothing was committed, so there is nothing to deliver."""
    engine.archives.close()
    engine.log.close()
    rmtree(folder, ignore_errors=True)


def _place(statement: bound_statements.BoundStatement, source: syntax.Statement, text: str) -> Span:
    """The text of a source or sink if the statement has one, else the statement's first line."""
    urls: list[str | None] = []
    match statement:
        case bound_statements.DeclareStream(stream):
            urls = [stream.source, stream.late_sink]
        case bound_statements.RegisterQuery(query):
            urls = [query.sink]
    word = next((f"'{url}'" for url in urls if url is not None), "")
    found = text.find(word, source.span.start, source.span.end) if word else -1
    return Span(found, found + len(word)) if found >= 0 else source.span
