"""What `w.queries["top"]`, `w.streams["bids"]` and `w.tables["items"]` are: views of what runs, no copies.

How large a query's state is, the manifest knows of every operator. Only what kernels have seen of values, and
how they keep them for that, is read: a few numbers in the index of each shard.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeVar

from windrow.algebra.canonical import canonical_text
from windrow.algebra.explain.operators import Spelling
from windrow.algebra.explain.warnings import Warned, stream_warnings
from windrow.engine import declarations, display, explain, records, tables
from windrow.engine.gaps import gap_table, with_gaps
from windrow.engine.output.outbox import published_schema
from windrow.engine.sharing.arrangement import with_sharing
from windrow.errors import QueryError, WindrowError, nearest
from windrow.kernels.columnar.columns import frame_of, published, rows_schema
from windrow.kernels.panes.subtract_on_evict import CELLS, DISTINCT, Differences, is_buffered
from windrow.kernels.shared.value_counts import seen_of
from windrow.optimizer.costs import total_cost
from windrow.optimizer.optimizer import RULES_ALONE
from windrow.physical.units import GeneralUnit
from windrow.sinks import MemorySink
from windrow.spark.failures import job_failed
from windrow.state.manifest import Facts, Manifest
from windrow.state.shard import Shard
from windrow.windows.domain import INFINITY, Domain, Instant

if TYPE_CHECKING:
    from decimal import Decimal

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from windrow.algebra.catalog import Stream
    from windrow.algebra.explain import Explanation
    from windrow.engine.load_shedding import Shedding
    from windrow.engine.refresh_scheduler import Refreshes
    from windrow.engine.sharing.shared_state import Common
    from windrow.engine.statistics import MeasuredWork
    from windrow.kernels.panes.program import Level
    from windrow.language.catalog import StandingQuery
    from windrow.physical import PhysicalPlan
    from windrow.spark.frames import DataFrame, SparkSession
    from windrow.state.store import Store


#: between the name of a query and that of its operator, in the names that chunks have for parts
_OF = "\0"


def observed(store: Store, last: Manifest, query: records.QueryRecord, common: Common) -> tuple[str, ...]:
    """The size of each operator's state, the largest first, what was seen of values, and how much was
    answered. A query that shares has the state of its shared state."""
    unit, shared_state = query.bundle.unit, common.shared_state_of(query.shares) if query.shares else None
    if shared_state is not None:
        names, found = {"0": "γ, panes, shared"}, _sizes(last, {shared_state: ""})
    elif isinstance(unit, GeneralUnit):
        names = {path: each.name or type(each).__name__ for path, each in unit.program.operators()}
        found = _sizes(last, query.bundle.places)
    else:
        names = {str(n): f"γ, panes of level {n + 1}" for n in range(unit.stages)}
        names = {"0": "γ, panes"} if unit.stages == 1 else names
        found = _sizes(last, query.bundle.places)
    largest = sorted(found.items(), key=lambda part: (-part[1].bytes, part[0]))
    lines = [f"{names.get(part, part)}: {_size(facts)}" for part, facts in largest if facts.rows]
    if len(lines) > 1:
        lines.append(f"together: {_size(reduce(Facts.merged, found.values()))}")
    lines += _values(store, last, query, common)
    return (*(lines or ["no state"]), f"answered: {_counted(query.rows)} rows, up to commit {last.number}")


def _values(store: Store, last: Manifest, query: records.QueryRecord, common: Common) -> Iterator[str]:
    """Of each argument whose values are counted, for the query or for several: how many differ, and what
    follows from it."""
    unit, shards = query.bundle.unit, [Shard(store, refs) for n, refs in last.chunks.items() if n >= 0]
    if isinstance(unit, GeneralUnit):
        return
    levels = {f"{query.id}{_OF}{stage}": level for stage, level in enumerate(unit.program.levels)}
    counting = {name: level for name, level in levels.items() if isinstance(level.kernel, Differences)}
    if query.shares:
        counting = {f"{common.shared_state_of(query.shares)}{_OF}0": unit.program.bottom}
    for operator, level in counting.items():
        metas = [shard.state(operator).meta for shard in shards if operator in shard.operators]
        if query.shares:
            counted = common.counted_values(query.id).items()
            seen = [[seen_of(meta, *of, table) for table, of in counted] for meta in metas]
            metas = [dict(ChainMap(*each)) for each in seen]
        yield from _values_of(level, metas)


def _values_of(level: Level, metas: Sequence[Mapping[str, int]]) -> Iterator[str]:
    measures = level.answers.measures
    for table in measures.layouts:
        seen = [meta for meta in metas if f"{CELLS}{table}" in meta]
        if not seen:
            continue
        spelling = Spelling.of(level.query.emit)
        arguments = ", ".join(spelling.sql(argument) for argument in measures.cells_in(table)[1])
        distinct, cells = (sum(meta[f"{what}{table}"] for meta in seen) for what in (DISTINCT, CELLS))
        buffers = sum(is_buffered(meta, table) for meta in seen)
        kept = "their sum is kept beside them" if not buffers else "hardly any recur, so they are a buffer"
        some = f" in {buffers} of {len(seen)} shards" if 0 < buffers < len(seen) else ""
        yield f"values of {arguments}: {_counted(distinct)} in {_counted(cells)} cells of panes; {kept}{some}"


def _sizes(last: Manifest, places: Mapping[str, str]) -> dict[str, Facts]:
    """The facts of each operator of a query, over all chunks and shards; what it has in common with others is
    kept under names of its own."""
    found: dict[str, Facts] = {}
    for chunks in last.chunks.values():
        for chunk in chunks:
            for operator, facts in chunk.operators.items():
                name, of, path = operator.partition(_OF)
                if of and name in places:
                    part = f"{places[name]}{path}"
                    found[part] = found[part].merged(facts) if part in found else facts
    return found


def _size(facts: Facts) -> str:
    return f"{_counted(facts.rows)} {'row' if facts.rows == 1 else 'rows'}, {_bytes(facts.bytes)}"


def _counted(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _bytes(number: float) -> str:
    """A size for people.

    >>> _bytes(512), _bytes(20_480), _bytes(3_500_000)
    ('512 bytes', '20.0 KB', '3.3 MB')
    """
    if number < 1024:
        return f"{number} bytes"
    return f"{number / 1024:.1f} KB" if number < 1024**2 else f"{number / 1024**2:.1f} MB"


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

    def _repr_html_(self) -> str:
        listed = {name: str(view) for name, view in self.items()}
        return display.facts_html(_PLURALS.get(self._kind, f"{self._kind}s"), listed)


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
    #: texts of the source that were no rows, and were left out
    malformed: int = 0


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


class RunningQueries(records.Registered, Protocol):
    """An engine, as far as a view of a query looks into it."""

    common: Common
    shedding: Shedding
    refreshes: Refreshes
    costs: MeasuredWork
    seconds: dict[str, float]
    ended: WindrowError | None

    def note_sharing(self) -> None: ...
    def would_run(self, query: StandingQuery) -> PhysicalPlan: ...
    def leader_of(self, record: records.QueryRecord) -> records.QueryRecord | None: ...


class QuerySession(Protocol):
    """What a query asks of the session it was registered in."""

    spark: SparkSession

    @property
    def is_running(self) -> bool: ...
    def drop(self, name: str) -> None: ...


class Query:
    """A standing query that is registered."""

    def __init__(self, engine: RunningQueries, name: str, session: QuerySession) -> None:
        self._engine, self.name, self._session = engine, name, session
        self._stopped: records.QueryRecord | None = None

    def __repr__(self) -> str:
        status = self.progress.status if self._stopped is None else "stopped"
        return f"<query {self.name}: {status}, {self._record.rows} rows>"

    def _repr_html_(self) -> str:
        record = self._record
        facts: dict[str, object] = {"query": record.text, "answers": record.rows}
        if self._stopped is None:
            progress = self.progress
            facts |= {"status": progress.status, "watermark": self.watermark, "shares": progress.shares}
        last = display.table_html(self.results()) if isinstance(record.sink, MemorySink) else ""
        return display.facts_html(f"query {self.name}", facts, last)

    @property
    def _record(self) -> records.QueryRecord:
        found = self._stopped if self._stopped is not None else self._engine.queries.get(self.name)
        return _still(found, "query", self.name)

    def stop(self) -> None:
        """Let go of the query: it takes no more rows, and its state is removed. Its answers stay."""
        record = self._record
        if self._stopped is None:
            self._session.drop(self.name)
            self._stopped = record

    @property
    def is_active(self) -> bool:
        """Whether it is registered and neither it nor the run it is part of has failed."""
        return self._stopped is None and self.progress.status not in ("failed", "stopped")

    @property
    def exception(self) -> WindrowError | None:
        """Why it runs no more; None if it does, or was stopped."""
        error = None if self._stopped is not None else self.progress.error
        if error is None:
            return None
        return WindrowError(error["message"], code=error["code"], hint=error["hint"])

    @property
    def watermark(self) -> dt.datetime | float | Decimal | None:
        """Answers up to this instant are final; None if nothing is known yet, or everything is."""
        return _shown_instant(self.progress.clock, self._record.query.plan.leaves[0].domain)

    @property
    def last_progress(self) -> dict[str, Any]:
        """How far it is, as a dictionary."""
        return {"name": self.name, **asdict(self.progress), "watermark": self.watermark}

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
    def shared_with(self) -> int:
        """With how many queries it has something in common."""
        return self._record.physical.sharing.others

    @property
    def partners(self) -> list[str]:
        """The queries that are answered from the same state, but for itself."""
        shares, common = self._record.shares, self._engine.common
        alike = set(common.members(common.shared_state_of(shares))) if shares else set()
        return [name for name, each in self._engine.queries.items() if each.id in alike and name != self.name]

    @property
    def sink(self) -> str | None:
        """What stands after INTO, if anything does."""
        return self._record.query.sink

    @property
    def progress(self) -> QueryProgress:
        """How far it is."""
        engine = self._engine
        engine.note_sharing()
        record = self._record
        status, error, ended = engine.shedding.status(record), record.error, engine.ended
        if ended is not None and record.is_running:  # if the run has ended by itself, so has the query
            status, error = "stopped", {"message": ended.message, "code": ended.code, "hint": ended.hint}
        timing, seconds = engine.refreshes.timing(record), sum(engine.seconds.values())
        return QueryProgress(
            status,
            record.clock(engine.streams, engine.tables),
            record.rows,
            record.complete_from,
            error,
            shares=record.physical.sharing.brief,
            period=None if timing is None else timing.asked,
            had=None if timing is None else timing.had,
            late=0.0 if timing is None else timing.late,
            cost=engine.seconds.get(record.id, 0.0) / seconds if seconds else 0.0,
            missing=sum(gap.windows for gap in engine.shedding.gaps.get(record.id, ())),
        )

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

    @declarations.checked
    def results(self, *, gaps: bool = False, fill: str | None = None) -> pa.Table:
        """What the query has emitted since this process runs.

        With `gaps` there is also a row for each window that is known to be missing: its `op` is 'gap', that
        of answers '+'. To `fill` by 'linear' or 'last' guesses the rows of missing windows from the answers
        around; the column `filled` tells them apart.
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
        if not gaps and fill is None:
            return answers
        missing = self._engine.shedding.gaps.get(record.id, ())
        return with_gaps(plan, answers, missing, marked=gaps, fill=fill)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas DataFrame."""
        return self.results().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The same as a Polars DataFrame."""
        import polars as pl

        frame = pl.from_arrow(self.results())
        assert isinstance(frame, pl.DataFrame)
        return frame

    @declarations.checked
    def plot(
        self, y: str | Sequence[str] | None = None, by: str | Sequence[str] | None = None, ax: Any = None
    ) -> Any:
        """A chart of its answers over `at`, one line for each group, with matplotlib; gives its axes.

        `y` are the numbers to draw, all of them by default; `by` are the columns that tell lines apart.
        """
        return display.plot(self.results(), self.name, _several(y), _several(by), ax)

    @declarations.checked
    def watch(self, seconds: float | None = None, rows: int = 10) -> None:
        """Its newest answers in a notebook, live, until the run ends, the time is over, or one interrupts."""

        def html() -> str:
            return display.table_html(self.results(), f"{self.name}, watermark {self.watermark}", rows)

        display.watch(html, lambda: not self._session.is_running, seconds)

    def to_spark(self) -> DataFrame:
        """The same as a Spark DataFrame."""
        results = self.results()
        with job_failed(f"handing over the answers of query `{self.name}`"):
            return self._session.spark.createDataFrame(results)

    @property
    def plan(self) -> str:
        """How it runs, in a few words: from what, and what made its plan another one than the rules alone."""
        physical = self._record.physical
        chosen = "" if physical.chosen is None else physical.chosen.name
        by = f" by {chosen}" if chosen not in ("", RULES_ALONE) else ""
        return ("panes" if physical.is_paned else "rows") + by

    @declarations.checked
    def explain(self, analyze: bool = False) -> Explanation:
        """How it runs; with `analyze` also what its state is after the last commit."""
        engine, seen = self._engine, tuple[str, ...]()
        engine.note_sharing()
        record, query = self._record, self._record.query
        if analyze:
            saved = explain.what_it_saves(engine.shedding.agreed(record), engine.costs.seconds(record.id))
            sizes = observed(engine.store, engine.last, record, engine.common)
            seen = (*sizes, *engine.costs.lines(record.id), *saved)
        found = explain.described(
            record.running, name=query.name, sink=query.sink, observed=seen, max_gap=query.max_gap
        )
        runs = with_sharing(found.runs, record, engine.leader_of(record), engine.refreshes.period(record.id))
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


def _several(names: str | Sequence[str] | None) -> list[str] | None:
    return [names] if isinstance(names, str) else None if names is None else list(names)


def _shown_instant(instant: Instant, domain: Domain) -> dt.datetime | float | Decimal | None:
    """An instant as people read it: a time where there is one."""
    if abs(instant) == INFINITY:
        return None
    if domain is not Domain.TIME:
        found: float | Decimal = domain.at(int(instant))
        return found
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=int(instant))


class TableView:
    """A table that is registered."""

    def __init__(self, engine: tables.TableKeeper, name: str) -> None:
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<table {self.name}: {len(self)} rows>"

    def _repr_html_(self) -> str:
        facts = {"kind": self.kind, "rows": len(self)}
        return display.facts_html(f"table {self.name}", facts, display.table_html(self.rows()))

    def __len__(self) -> int:
        return self._record.rows

    @property
    def _record(self) -> tables.TableRecord:
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
        return None if last == tables.BEGINNING else last

    def rows(self) -> pa.Table:
        """What it holds, all changes included that are known by now."""
        with self._engine.lock:
            schema, contents = self._record.table.schema, self._record.contents()
            rows = list(contents.rows.elements())
        return published(frame_of(schema, rows).to_arrow(), rows_schema(schema))


class StreamView:
    """A stream that is registered."""

    def __init__(self, engine: records.Registered, name: str) -> None:
        self._engine, self.name = engine, name

    def __repr__(self) -> str:
        return f"<stream {self.name}: {self.progress.accepted} rows>"

    def _repr_html_(self) -> str:
        progress = self.progress
        facts = {
            "columns": ", ".join(f"{name} {kind}" for name, kind in self.columns.items()),
            "WATTR": self.wattr,
            "watermark": self.watermark,
            "rows": progress.accepted,
            "late": progress.late,
            "shed": progress.shed or None,
        }
        return display.facts_html(f"stream {self.name}", facts)

    @property
    def _record(self) -> records.StreamRecord:
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
    def watermark(self) -> dt.datetime | float | Decimal | None:
        """Up to this instant it is complete; None if nothing is known yet, or it has ended."""
        stream = self._record.stream
        return _shown_instant(self.progress.progress, stream.domain)

    @property
    def warnings(self) -> tuple[Warned, ...]:
        """What its rows have shown of its declaration."""
        record = self._record
        known = record.known
        return stream_warnings(record.stream, known.accepted, record.late, known.progress)

    @property
    def kept_for(self) -> int | None:
        """For how many ticks below its watermark it has all rows; None: all there were, or none."""
        kept, reached = self._record.kept_from, self.progress.progress
        return None if kept is None or math.isinf(kept) or math.isinf(reached) else int(reached - kept)

    @property
    def progress(self) -> StreamProgress:
        """How far it is."""
        record = self._record
        p = record.known.progress_on(record.stream, record.stream.wattr)
        known = record.known
        counts = record.shed, record.malformed
        return StreamProgress(p, known.accepted, record.late, record.greatest, known.sealed, *counts)
