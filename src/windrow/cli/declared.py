"""Statements that are checked, all that can be checked without Spark, and kept until an engine runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.engine import explain_plan
from windrow.engine.adhoc.snapshot import snapshot_of
from windrow.engine.running import runnable
from windrow.errors import QueryError, Span
from windrow.language.binder.bound import (
    AnalyzeQuery,
    DeclareStream,
    ExplainQuery,
    RegisterQuery,
    RunOnce,
    ShowAll,
)
from windrow.language.compile import Catalog, compile_script
from windrow.language.parse import parse_script
from windrow.language.syntax import CreateStream
from windrow.spark.sinks import check_sink
from windrow.spark.sources import check_url

if TYPE_CHECKING:
    from windrow.language.binder.bound import BoundStatement
    from windrow.language.syntax import Statement


class Declared:
    """Takes statements as an engine would, and runs nothing.

    >>> declared = Declared()
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
        self.catalog = Catalog()
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        """All that was declared, as one script."""
        return "\n".join(self._texts)

    def sql(self, text: str) -> list[Any]:
        """Check statements, and keep them if all are in order. Gives what SHOW and EXPLAIN show."""
        working = self.catalog.copy()
        bound = compile_script(text, working)
        written = parse_script(text)
        for statement, source in zip(bound, written, strict=True):
            try:
                _check(statement)
            except QueryError as error:
                error.located(text, span=_place(statement, source, text))
                raise
        self.catalog.adopt(working)
        for statement, source in zip(bound, written, strict=True):
            if not isinstance(statement, ShowAll | ExplainQuery | AnalyzeQuery | RunOnce):
                self._texts.append(text[source.span.start : source.span.end] + ";")
        return [shown for each in bound if (shown := self._shown(each)) is not None]

    def asks(self, text: str) -> bool:
        """Whether there is a SELECT by itself among the statements."""
        return any(isinstance(each, RunOnce) for each in compile_script(text, self.catalog.copy()))

    def check_sources(self, text: str) -> None:
        """Every stream says where its rows come from; if not, the error points into `text`."""
        for stream in self.catalog.streams.values():
            if stream.source is None:
                raise QueryError(
                    f"stream `{stream.name}` has no source",
                    code="no-source",
                    hint="declare it with FROM '…': files, a generator or Kafka; see docs/sources.md",
                ).located(text, span=_declaration(stream.name, text))

    def _shown(self, statement: BoundStatement) -> Any:
        match statement:
            case ExplainQuery(plan, _):
                return explain_plan(plan)
            case AnalyzeQuery(query):
                return explain_plan(query.plan, name=query.name, sink=query.sink, max_gap=query.max_gap)
            case ShowAll(kind):
                return self._names(kind)
        return None

    def _names(self, kind: str) -> Any:
        import pyarrow as pa

        from windrow.engine.missing import all_gaps

        catalog = self.catalog
        if kind == "GAPS":  # nothing runs yet, so nothing is missing
            return all_gaps({})
        kinds = {"STREAM": [*catalog.streams], "TABLE": [*catalog.tables], "QUERY": [*catalog.queries]}
        kinds["ARCHIVE"] = [*catalog.archives]
        return pa.table({"name": pa.array(kinds[kind], pa.string())})


def _declaration(stream: str, text: str) -> Span | None:
    """Where a stream is declared."""
    found = [each for each in parse_script(text) if isinstance(each, CreateStream) and each.name == stream]
    return found[-1].span if found else None


def _check(statement: BoundStatement) -> None:
    """What an engine would refuse, as far as that can be said without one."""
    match statement:
        case DeclareStream(stream):
            if stream.source is not None:
                check_url(stream.source)
            if stream.late_sink is not None:
                check_sink(stream.late_sink)
        case RegisterQuery(query):
            if query.sink is not None:
                check_sink(query.sink)
            runnable(query.plan)
        case RunOnce(_, once, refusal):
            if once is None:
                raise refusal or QueryError("this cannot be asked once", code="unsupported")
            snapshot_of(once.plan)


def _place(statement: BoundStatement, source: Statement, text: str) -> Span:
    """The text of a source or sink if the statement has one, else the statement's first line."""
    urls: list[str | None] = []
    match statement:
        case DeclareStream(stream):
            urls = [stream.source, stream.late_sink]
        case RegisterQuery(query):
            urls = [query.sink]
    written = [f"'{url}'" for url in urls if url is not None]
    return _word(text, written[0], source.span) if written else source.span


def _word(text: str, word: str, within: Span) -> Span:
    found = text.find(word, within.start, within.end)
    return Span(found, found + len(word)) if found >= 0 else within
