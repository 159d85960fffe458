"""What `w.queries["top"]`, `w.streams["bids"]` and `w.tables["items"]` are: views of what runs, no copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Never, TypeVar

from windrow.algebra.canonical import canonical_text
from windrow.engine.analyze import observed
from windrow.engine.arguments import checked
from windrow.engine.explain import described
from windrow.engine.gaps import gap_table, with_gaps
from windrow.engine.output.schema import published, published_schema, rows_schema
from windrow.engine.sharing.script_plan import with_sharing
from windrow.engine.tables import BEGINNING
from windrow.errors import QueryError, nearest
from windrow.kernels.columnar.columns import frame_of
from windrow.optimizer.cost.model import total_cost
from windrow.optimizer.optimizer import RULES_ALONE
from windrow.sinks import MemorySink
from windrow.spark.failures import job_failed

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.catalog import Stream
    from windrow.algebra.explain import Explanation
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord, StreamRecord
    from windrow.engine.tables import TableRecord
    from windrow.language.catalog import StandingQuery
    from windrow.spark.frames import DataFrame, SparkSession
    from windrow.windows.domain import Instant

_View = TypeVar("_View")


class Named(dict[str, _View]):
    """What is registered, by name. A name that is not known is told with those that are.

    >>> Named("query", {"top": 1})["tip"]
    Traceback (most recent call last):
    windrow.errors.QueryError: no query `tip` (did you mean `top`?)
    """

    def __init__(self, kind: str, views: Mapping[str, _View]) -> None:
        super().__init__(views)
        self._kind = kind

    def __getitem__(self, name: Any) -> _View:
        return super().__getitem__(name) if isinstance(name, str) else self.__missing__(name)

    def __missing__(self, name: object) -> Never:
        raise QueryError(f"no {self._kind} `{name}`", code="unknown-source", hint=nearest(str(name), self))


@dataclass(frozen=True)
class QueryProgress:
    """How far a query is: its clock, the rows it has answered, and whether it still runs."""

    #: running, suspended under overload, failed, or stopped: the whole run has ended by itself
    status: str
    clock: Instant
    rows: int
    #: answers about windows that begin before this are not given; None if nothing is missing
    complete_from: int | None
    error: dict[str, Any] | None
    #: the synopses it shares, with how many queries and by which rules; None: it keeps a state of its own
    shares: str | None = None
    #: the ticks between two refreshes: as asked by EVERY, and as they are on the average
    period: int | None = None
    had: float | None = None
    #: how many ticks a refresh came after its time, on the average
    late: float = 0.0
    #: its part of the time that all queries took since this process runs
    cost: float = 0.0
    #: how many of its windows were left out under overload
    missing: int = 0


@dataclass(frozen=True)
class StreamProgress:
    """How far a stream is: P, and its rows so far."""

    progress: Instant
    accepted: int
    late: int
    #: the greatest value of WATTR seen
    greatest: int | None
    sealed: bool
    #: of the accepted rows, those that no query needed under overload
    shed: int = 0


_Record = TypeVar("_Record")
_PLURALS = {"query": "queries", "stream": "streams", "table": "tables"}


def _still(record: _Record | None, kind: str, name: str) -> _Record:
    """What a view shows, unless it is gone."""
    if record is None:
        raise QueryError(
            f"{kind} `{name}` was dropped",
            code="unknown-source",
            hint=f"ask for it again by name: w.{_PLURALS[kind]}",
        )
    return record


class Query:
    """A standing query that is registered."""

    def __init__(self, engine: Engine, name: str, spark: SparkSession) -> None:
        self._engine, self.name, self._spark = engine, name, spark

    def __repr__(self) -> str:
        return f"<query {self.name}: {self.progress.status}, {self.progress.rows} rows>"

    @property
    def _record(self) -> QueryRecord:
        return _still(self._engine.queries.get(self.name), "query", self.name)

    @property
    def text(self) -> str:
        """The query as SQL."""
        return self._record.text

    @property
    def id(self) -> str:
        """Its name and the commit it began with: dropped and created again, it is another query."""
        return self._record.id

    @property
    def standing(self) -> StandingQuery:
        """The query as it was registered."""
        return self._record.query

    @property
    def reads(self) -> list[str]:
        """The streams and tables it reads."""
        return [*self._record.streams, *self._record.tables]

    @property
    def columns(self) -> pa.Schema:
        """The columns of its answers."""
        return published_schema(self._record.query.plan)

    @property
    def sink(self) -> str | None:
        """What stands after INTO, if anything does."""
        return self._record.query.sink

    @property
    def progress(self) -> QueryProgress:
        """How far it is."""
        self._engine.note_sharing()
        record = self._record
        known = {name: self._engine.streams[name].known for name in record.streams}
        held = {name: self._engine.tables[name].progress for name in record.tables}
        clock = record.bundle.unit.progress(known, held)
        status, error = self._status(record)
        timing = self._engine.timing(record)
        asked = (timing.asked, timing.had, timing.late) if timing is not None else (None, None, 0.0)
        missing = sum(gap.windows for gap in self._engine.shedding.gaps.get(record.id, ()))
        more = record.physical.sharing.brief, *asked, self._engine.cost_share(record), missing
        return QueryProgress(status, clock, record.rows, record.complete_from, error, *more)

    def _status(self, record: QueryRecord) -> tuple[str, dict[str, Any] | None]:
        """How it does, and why so: if the run has ended by itself, it does not run either."""
        ended = self._engine.ended
        if ended is None or not record.is_running:
            return self._engine.shedding.status(record), record.error
        return "stopped", {"message": ended.message, "code": ended.code, "hint": ended.hint}

    @property
    def gaps(self) -> pa.Table:
        """The windows that were left out under overload, as runs: the ends of the first and the last one."""
        record = self._record
        return gap_table(record.query.plan, self._engine.shedding.gaps.get(record.id, ()))

    @property
    def losing(self) -> float:
        """The share of its windows that is left out from now on."""
        return self._engine.shedding.lost(self._record.id)

    @property
    def keeps_all(self) -> str | None:
        """Why no window of it is ever left out; None if some may be."""
        return self._engine.shedding.why_not(self._record)

    @checked
    def results(self, *, gaps: bool = False) -> pa.Table:
        """What the query has emitted since this process runs.

        With `gaps` there is also a row for each window that is known to be missing: its `op` is 'gap', that
        of answers '+'.
        """
        record = self._record
        if not isinstance(record.sink, MemorySink):
            raise QueryError(
                f"the answers of query `{self.name}` go to {record.query.sink or 'a function of yours'}",
                code="no-results",
                hint="read them there, or register the query without a sink",
            )
        table, plan = record.sink.table(), record.query.plan
        answers = table if table.num_columns else published_schema(plan).empty_table()
        return with_gaps(plan, answers, self._engine.shedding.gaps.get(record.id, ())) if gaps else answers

    def to_spark(self) -> DataFrame:
        """The same as a Spark DataFrame."""
        results = self.results()
        with job_failed(f"handing over the answers of query `{self.name}`"):
            return self._spark.createDataFrame(results)

    @property
    def plan(self) -> str:
        """How it runs, in a few words: from what, and what made its plan another one than the rules alone."""
        physical = self._record.physical
        chosen = "" if physical.chosen is None else physical.chosen.name
        by = f" by {chosen}" if chosen not in ("", RULES_ALONE) else ""
        return ("panes" if physical.is_paned else "rows") + by

    @checked
    def explain(self, analyze: bool = False) -> Explanation:
        """How it runs; with `analyze` also what its state is after the last commit."""
        self._engine.note_sharing()
        query, shares = self._record.query, self._record.shares
        ledger = self._engine.common.ledger_of(shares) if shares else None
        tallied = self._engine.common.tallied(self._record.id) if shares and analyze else {}
        known = self._engine.store, self._engine.last, self._record
        seen = observed(*known, ledger, tallied) if analyze else ()
        seen += tuple(self._engine.costs.lines(self._record.id)) if analyze else ()
        found = described(
            self._record.running, name=query.name, sink=query.sink, observed=seen, max_gap=query.max_gap
        )
        runs = with_sharing(found.runs, self._engine, self._record)
        return replace(found, runs=(*runs, *self._would_run()))

    def _would_run(self) -> list[str]:
        """Whether the plan was changed, and what would be chosen now, if that is another one."""
        record = self._record
        now = self._engine.would_run(record.query)
        lines = [f"plan    {record.physical.changed}"] if record.physical.changed else []
        if canonical_text(now.emit) == canonical_text(record.physical.emit):
            return lines
        costs = [total_cost(plan, now.statistics) for plan in (now.emit, record.physical.emit)]
        step = now.chosen.name if now.chosen is not None else "another form"
        least, cost = (f"{each:.3g}" for each in costs)
        better = f"now it would be: {step}, cost {least} instead of {cost}; REFRESH QUERY {self.name}"
        return [*lines, f"plan    {better}"]


class TableView:
    """A table that is registered."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self)} rows>"

    def __len__(self) -> int:
        return self._record.rows

    @property
    def _record(self) -> TableRecord:
        return _still(self._engine.tables.get(self.name), "table", self.name)

    @property
    def columns(self) -> dict[str, str]:
        """Names and types."""
        return {field.name: str(field.type) for field in self._record.table.schema}

    @property
    def kind(self) -> str:
        """NRR or RELATION."""
        return self._record.table.kind.value

    @property
    def changed(self) -> int | None:
        """The instant of its last change; None if it was never changed since it was first filled."""
        last = self._record.last
        return None if last == BEGINNING else last

    def rows(self) -> pa.Table:
        """What it holds, all changes included that are known by now."""
        with self._engine.lock:
            schema, contents = self._record.table.schema, self._record.shelf.contents
            rows = list(contents.rows.elements())
        return published(frame_of(schema, rows).to_arrow(), rows_schema(schema))


class StreamView:
    """A stream that is registered."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<stream {self.name}: {self.progress.accepted} rows>"

    @property
    def _record(self) -> StreamRecord:
        return _still(self._engine.streams.get(self.name), "stream", self.name)

    @property
    def columns(self) -> dict[str, str]:
        """Names and types."""
        return {field.name: str(field.type) for field in self._record.stream.schema}

    @property
    def declared(self) -> Stream:
        """The stream as it was declared."""
        return self._record.stream

    @property
    def wattr(self) -> str:
        """The attribute that windows of the stream are about."""
        return self._record.stream.wattr

    @property
    def progress(self) -> StreamProgress:
        """How far it is."""
        record = self._record
        p = record.known.progress_on(record.stream, record.stream.wattr)
        known = record.known
        return StreamProgress(p, known.accepted, record.late, record.greatest, known.sealed, record.shed)
