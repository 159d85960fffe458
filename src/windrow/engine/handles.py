"""What `w.queries["top"]` and `w.streams["bids"]` are: views of what runs, never copies of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.engine.explaining import explain_plan
from windrow.engine.published import published_schema
from windrow.errors import QueryError
from windrow.spark.sinks import MemorySink

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.explain import Explanation
    from windrow.engine.core import Engine
    from windrow.engine.records import QueryRecord, StreamRecord
    from windrow.spark.frames import DataFrame, SparkSession
    from windrow.windows.domain import Instant


@dataclass(frozen=True)
class QueryProgress:
    """How far a query is: its clock, the rows it has answered, and whether it still runs."""

    status: str
    clock: Instant
    rows: int
    #: answers about windows that begin before this are not given; None if nothing is missing
    complete_from: int | None
    error: dict[str, Any] | None


@dataclass(frozen=True)
class StreamProgress:
    """How far a stream is: P, and its rows so far."""

    progress: Instant
    accepted: int
    late: int
    #: the greatest value of WATTR seen
    greatest: int | None
    sealed: bool


class Query:
    """A standing query that is registered."""

    def __init__(self, engine: Engine, name: str, spark: SparkSession) -> None:
        self._engine, self.name, self._spark = engine, name, spark

    def __repr__(self) -> str:
        return f"<query {self.name}: {self.progress.status}, {self.progress.rows} rows>"

    @property
    def _record(self) -> QueryRecord:
        found = self._engine.queries.get(self.name)
        if found is None:
            raise QueryError(f"query `{self.name}` was dropped", code="unknown-source")
        return found

    @property
    def text(self) -> str:
        """The query as SQL."""
        return self._record.text

    @property
    def sink(self) -> str | None:
        """What stands after INTO, if anything does."""
        return self._record.query.sink

    @property
    def progress(self) -> QueryProgress:
        """How far it is."""
        record = self._record
        known = {name: self._engine.streams[name].known for name in record.streams}
        clock = record.bundle.unit.progress(known)
        return QueryProgress(record.status, clock, record.rows, record.complete_from, record.error)

    def results(self) -> pa.Table:
        """What the query has emitted since this process runs."""
        record = self._record
        if not isinstance(record.sink, MemorySink):
            raise QueryError(
                f"the answers of query `{self.name}` go to {record.query.sink or 'a function of yours'}",
                code="no-results",
                hint="read them there, or register the query without a sink",
            )
        table = record.sink.table()
        return table if table.num_columns else published_schema(record.query.plan).empty_table()

    def to_spark(self) -> DataFrame:
        """The same as a Spark DataFrame."""
        return self._spark.createDataFrame(self.results())

    def explain(self) -> Explanation:
        """How it runs."""
        query = self._record.query
        return explain_plan(query.plan, name=query.name, sink=query.sink)


class StreamView:
    """A stream that is registered."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<stream {self.name}: {self.progress.accepted} rows>"

    @property
    def _record(self) -> StreamRecord:
        return self._engine.streams[self.name]

    @property
    def columns(self) -> dict[str, str]:
        """Names and types."""
        return {field.name: str(field.type) for field in self._record.stream.schema}

    @property
    def wattr(self) -> str:
        """The attribute that windows of the stream are about."""
        return self._record.stream.wattr

    @property
    def progress(self) -> StreamProgress:
        """How far it is."""
        record = self._record
        p = record.known.progress_on(record.stream, record.stream.wattr)
        return StreamProgress(p, record.known.accepted, record.late, record.greatest, record.known.sealed)
