"""`wr.connect`: the Python API. Statements, streams of any kind of table, standing queries, and runs.

>>> import pyarrow as pa
>>> import windrow as wr
>>> rows = pa.table({"item": [1, 1, 2], "price": [5.0, 7.0, 1.0], "second": [0, 30, 70]})
>>> with wr.connect() as w:  # doctest: +SKIP
...     w.stream("bids", rows, wattr="second")
...     top = w.query("top", "SELECT item, MAX(price) AS best FROM bids [RANGE 60 SLIDE 60] GROUP BY item")
...     w.run(once=True)
...     top.results().to_pylist()
[{'at': 60, 'item': 1, 'best': 7.0}, {'at': 120, 'item': 2, 'best': 1.0}]
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pyarrow as pa

from windrow.algebra import Emit, Stream, Table
from windrow.algebra.explain import Explanation
from windrow.algebra.explain.warnings import Warned, query_warnings
from windrow.algebra.values import instant
from windrow.engine import declarations, engine, show, statistics, tables
from windrow.engine.adhoc.on_spark import OnSpark
from windrow.engine.adhoc.select import Asked, Asker, Limits, SelectWatch
from windrow.engine.declarations import checked, period, register
from windrow.engine.explain import explain_plan
from windrow.engine.loop import PASSING, Loop, standing_here
from windrow.engine.rescale import check_shards, rescale
from windrow.engine.show import ArchiveView
from windrow.engine.views import Named, Query, StreamView, TableView
from windrow.errors import QueryError, SourceError, StateError, WindrowError, nearest
from windrow.frame import Frame, from_
from windrow.language.binder import bound_statements
from windrow.language.binder.once import Once
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_once, compile_query, compile_script
from windrow.sinks import Callback, Sink
from windrow.spark import failures, frames, jobs, session
from windrow.spark.sources import (
    Source,
    generator_source,
    infer_schema,
    open_data,
    open_url,
    push_source,
    streaming_frame,
    table_source,
)
from windrow.spark.sources.source import Absent, Begun
from windrow.spark.sources.tables import rows_to_change
from windrow.state import names, object_store
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore, Store, remove_folder
from windrow.windows.domain import Domain

#: a bundled stream is not made faster than that
_MOST_TIMES = 1000


@checked
def connect(
    spark: frames.SparkSession | None = None,
    state: str | Path | None = "./state",
    *,
    takeover: bool = False,
    shards: int | None = None,
) -> Windrow:
    """An engine over a state directory: it goes on where that is. Without one (None) nothing outlives it.

    `state` is a path, or the URL of a prefix in an object store: "s3://bucket/prefix", "gs://…" or "az://…".
    `spark` is your session, or a local one is made. `takeover` is your word that an engine of another machine
    that seems to own the state is gone. `shards` is how many shards the state has from now on: it is routed
    anew if it has others. Without it they stay, and a new state has as many as Spark has cores.
    """
    return Windrow(spark, state, takeover=takeover, shards=shards)


#: seconds after which whoever waits for a commit looks whether there is still a run
_LOOK = 0.2


class Windrow:
    """Streams and standing queries of one state directory."""

    def __init__(
        self,
        spark: frames.SparkSession | None = None,
        state: str | Path | None = "./state",
        *,
        takeover: bool = False,
        start: Callable[[], frames.SparkSession] = session.start_session,
        shards: int | None = None,
    ) -> None:
        if shards is not None:
            check_shards(shards)
        self._temporary = TemporaryDirectory(prefix="windrow-") if state is None else None
        store = object_store.open_store(Path(self._temporary.name) if self._temporary else state or "")
        if isinstance(store, LocalStore):
            store = LocalStore(store.root.absolute())
        log = CommitLog.open(store, takeover=takeover)
        try:
            if shards is not None:
                rescale(log, shards)
            self.spark = session.prepared(spark if spark is not None else start())
            self._engine = engine.Engine(
                jobs.SparkJobs(self.spark), log, shards or session.parallelism(self.spark)
            )
        except BaseException:
            log.close()
            raise
        self._folder = store.local
        self._catalog = Catalog(inference=self._engine.columns_of)
        self._sources: dict[str, Source] = {}
        self._table_sources: dict[str, table_source.TableSource] = {}
        self._refreshing = tables.Refreshing(self._engine, self._table_sources)
        self._loop: Loop | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._closed = False
        self._asker = Asker(log, archives=self._engine.archives, standing=self._engine.asked_by)
        self._asker.elsewhere = OnSpark(self.spark, log, self._folder, self._asker.turns)
        #: makes the sink of a query without one; None: its answers are kept for `results()`
        self.default_sink: Callable[[str], Sink] | None = None
        #: puts something beside the sink that a query names, to see its answers too
        self.beside_sink: Callable[[str, Sink], Sink] | None = None

    # ------------------------------------------------------------ registering

    @checked
    def sql(self, text: str) -> list[Any]:
        """Run statements. Gives what SHOW, EXPLAIN and SELECT show, in order.

        A SELECT is answered when all other statements are done; if it fails, they stay done.
        """
        return [self._answer(each) if isinstance(each, Once) else each for each in self.declare(text)]

    @checked
    def declare(self, text: str) -> list[Any]:
        """Run statements but for SELECTs: these are given back as they are, for `select`."""
        with self._all_or_nothing():
            statements = compile_script(text, self._catalog)
            shown = [self._do(statement) for statement in statements]
        self._engine.commit()
        for statement in statements:  # how far Spark has read a dropped stream is of no use to a later one
            if isinstance(statement, bound_statements.Dropped) and statement.kind == "STREAM":
                with suppress(OSError):  # the next run looks at it again
                    remove_folder(self._folder / names.CHECKPOINTS, names.file_name(statement.name))
        return [each for each in shown if each is not None]

    @property
    def catalog(self) -> Catalog:
        """What is declared, as statements see it: a copy."""
        return self._catalog.copy()

    @checked
    def check(self, text: str) -> list[tuple[bound_statements.BoundStatement, Explanation | None]]:
        """What statements mean among all that is declared, and how those that ask would run; none is done."""
        return [(each, self._planned(each)) for each in compile_script(text, self._catalog.copy())]

    @checked
    def select(
        self,
        query: str | Once | Frame,
        isolation: str | None = None,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        priority: int | None = None,
    ) -> pa.Table:
        """Ask once, about now: a SELECT over windows of streams that are kept, tables and answers.

        It may be called from any thread, also while a run is under way, which does not wait for it. The
        metadata of the answer's schema says which commit (`windrow.commit`) and instant (`windrow.at`) it is
        about. `isolation` is "latest" or "window"; `timeout` is in seconds.
        """
        once = self._once(query, priority)
        return self._answer(once, isolation, SelectWatch(Limits(timeout, max_rows, max_bytes)))

    @checked
    def ask(
        self,
        query: str | Once | Frame,
        isolation: str | None = None,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        priority: int | None = None,
    ) -> Asked:
        """The same as `select`, in the background: the answer is `result()` of what this gives."""
        once, watch = self._once(query, priority), SelectWatch(Limits(timeout, max_rows, max_bytes))
        return Asked(lambda: self._answer(once, isolation, watch), watch)

    def _once(self, query: str | Once | Frame, priority: int | None) -> Once:
        once = query if isinstance(query, Once) else compile_once(str(query), self._catalog.copy())
        return once if priority is None else replace(once, priority=priority)

    def _answer(self, once: Once, isolation: str | None = None, watch: SelectWatch | None = None) -> pa.Table:
        with failures.job_failed("answering the SELECT"):
            return self._asker.ask(once, self._catalog.queries, isolation, watch)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If a statement fails, nothing of its script is done."""
        catalog, sources = self._catalog.copy(), dict(self._sources)
        table_sources = dict(self._table_sources)
        try:
            with self._engine.all_or_nothing():
                yield
        except BaseException:
            self._catalog.adopt(catalog)
            self._sources = sources
            self._table_sources.clear()
            self._table_sources.update(table_sources)
            raise

    @checked
    def stream(
        self,
        name: str,
        data: Any,
        wattr: str | None = None,
        *,
        resolution: str | float | Decimal | None = None,
        slack: str | float | None = None,
        ordered: bool = False,
        ordered_per: str | None = None,
        idle: str | None = None,
        punctuated_by: str | None = None,
        per: str | None = None,
        when: str | None = None,
        late: str | None = None,
        sheddable: bool = False,
        keep: str | float | None = None,
    ) -> StreamView:
        """A stream of rows: a Spark DataFrame, streaming or not, or a pandas, Polars or Arrow table.

        The other arguments are the options of CREATE STREAM: resolution=0.25, slack="5 seconds",
        ordered=True, ordered_per="bidder", idle="30 seconds", punctuated_by="expr", per="column",
        when="condition", late="drop", "keep" or a sink, keep="1 hour" or "1000 rows" for `select`. If the
        stream is declared already, this is where its rows come from.
        """
        text = declarations.options(
            wattr=wattr,
            resolution=resolution,
            slack=slack,
            ordered=ordered,
            ordered_per=ordered_per,
            idle=idle,
            punctuated_by=punctuated_by,
            per=per,
            when=when,
            late=late,
            sheddable=sheddable,
            keep=keep,
        )
        with self._all_or_nothing():
            if name not in self._catalog.streams:
                stream = declarations.declared_stream(name, infer_schema(data), text)
                self._catalog.add(stream)
                register(self._engine, bound_statements.DeclareStream(stream))
            elif text:
                raise QueryError(
                    f"stream `{name}` is declared already", code="duplicate-name", hint="give its rows only"
                )
            with failures.job_failed(f"taking the rows of stream `{name}`"):
                source = open_data(self.spark, self._catalog.streams[name], data)
            if isinstance(source, streaming_frame.StreamingFrame) and not isinstance(self.store, LocalStore):
                raise SourceError(
                    f"stream `{name}` is a streaming frame: Spark keeps notes of it in a directory, and the"
                    f" state is in {self.store}",
                    code="checkpoint-directory",
                    hint="declare the stream FROM 'kafka:…' or 'files:…', or keep the state in a directory",
                )
            self._engine.read_from(name, source)
            self._sources[name] = source
        self._engine.commit()
        return self.streams[name]

    @checked
    def table(
        self,
        name: str,
        data: Any,
        kind: str | None = None,
        key: Sequence[str] = (),
        *,
        every: str = "1 second",
    ) -> TableView:
        """A table with this content: a Spark frame, a pandas, Polars or Arrow table, or a list of rows.

        `kind` is "nrr" (the default) or "relation", `key` the columns that tell rows apart. Given other data
        after a restart, the table becomes that; given the same, it stays as it was updated since. If `data`
        is a function it gives the whole content, and is called in runs whenever the period `every` has passed
        since the last call. If the table is declared already, this is where its content comes from.
        """
        with self._all_or_nothing():
            table = self._declared_table(name, data, kind, key)
            if callable(data):
                self._table_sources[name] = table_source.CalledContent(table, data, period(every))
            else:
                self._table_sources[name] = table_source.GivenContent(table, data)
            if not self.undeclared:  # until all queries are there, nobody can tell when it changes for them
                self._refreshing.look_at(name)
        self._engine.commit()
        return self.tables[name]

    def _declared_table(self, name: str, data: Any, kind: str | None, key: Sequence[str]) -> Table:
        known = self._catalog.tables.get(name)
        if known is None:
            schema = infer_schema(data() if callable(data) else data)
            table = declarations.declared_table(name, schema, kind or "nrr", key)
            self._catalog.add(table)
            self._engine.add_table(table)
            return table
        if kind is not None or key:
            raise QueryError(
                f"table `{name}` is declared already", code="duplicate-name", hint="give its content only"
            )
        if known.source is not None:
            raise QueryError(
                f"table `{name}` is read from {known.source}",
                code="table-has-source",
                hint="declare it without FROM, or change the files",
            )
        return known

    @checked
    def update(self, table: str, insert: Any = None, delete: Any = None, at: Any = None) -> None:
        """Change a table, also while a run is under way. On return the change is durable.

        `insert` and `delete` are rows: tuples, dictionaries or a table of any kind; rows leave before rows
        come. `at` is the instant of the change, not before what is answered already; without it, all rows
        later than those seen so far see the change.
        """
        record = self._engine.tables[self.tables[table].name]
        source = self._table_sources.get(table)
        if record.table.source is not None or (source is not None and source.is_master):
            raise QueryError(
                f"table `{table}` is what its source says: it cannot be changed from here",
                code="table-has-source",
                hint="change the files, or declare the table without FROM",
            )
        self._check_declared()
        if self._loop is None:
            self._refreshing.look_at(table)
        new, gone = rows_to_change(record.table, insert), rows_to_change(record.table, delete)
        moment = None if at is None else instant(at, self._domain_of(table))
        self._engine.change([tables.TableUpdate(table, new, gone, moment)])

    def _domain_of(self, name: str) -> Domain | None:
        """The domain of a stream's instants, or of a table's, which is that of the queries that read it."""
        if name in self._engine.streams:
            return self._engine.streams[name].stream.domain
        readers = (each for each in self._engine.queries.values() if name in each.tables)
        return next((each.query.plan.leaves[0].domain for each in readers), None)

    @checked
    def push(self, stream: str, rows: Any, key: str | None = None, timeout: float | None = None) -> int:
        """Give rows to a stream that is declared FROM 'push:'. On return a commit holds them: its number.

        `rows` are tuples, dictionaries or a table of any kind. The same `key` twice is one push, also after a
        restart; what was pushed in an earlier life is told as commit 0. Without a run, this is an epoch of
        its own. Where too many rows wait already, or `timeout` seconds are over, it is refused, and may be
        tried again with the same key.
        """
        source = self._pushed(self.streams[stream].name)
        push = source.give(rows, key)
        if self._loop is None:
            self._check_declared()
            self._take_pushed(stream, source)
        began = time.monotonic()
        while not push.committed.done() and not self._closed:
            rest = math.inf if timeout is None else began + timeout - time.monotonic()
            with suppress(TimeoutError, CancelledError):
                push.committed.result(min(max(0.0, rest), _LOOK))
            if rest <= 0:
                break
            if self._loop is None and not push.committed.done() and not self._closed:
                self._take_pushed(stream, source)  # a run has ended without them
        source.withdraw(push)
        try:
            return push.committed.result(0)
        except (TimeoutError, CancelledError):
            raise StateError(
                f"rows of stream `{stream}` are in no commit after {time.monotonic() - began:.3g} seconds",
                code="busy",
                hint="push them again, with a key, so that they count once whatever became of these",
            ) from None

    def _pushed(self, stream: str) -> push_source.PushSource:
        declared = self._catalog.streams[stream]
        if stream not in self._sources and declared.source is not None:
            opened = self._sources[stream] = open_url(self.spark, declared)
            read = self._engine.streams[stream].read.offsets
            opened.begin(Begun(stream, read, self._engine.keys_of(stream)))
        source = self._sources.get(stream)
        if not isinstance(source, push_source.PushSource):
            raise QueryError(
                f"stream `{stream}` takes no pushes: its rows come from {declared.source or 'elsewhere'}",
                code="not-pushable",
                hint="declare it FROM 'push:'",
            )
        return source

    def _take_pushed(self, stream: str, source: push_source.PushSource) -> None:
        """Without a run: an epoch with what was pushed."""
        with self._engine.lock:
            loop = Loop(self._engine, {stream: source}, self._folder / names.CHECKPOINTS, once=True)
            with failures.job_failed("taking what was pushed"):
                loop.run()

    @checked
    def from_(self, source: str, alias: str | None = None) -> Frame:
        """All rows of a stream or a table, to build a query on in code, step by step."""
        return from_(source, alias, self)

    @checked
    def query(
        self,
        name: str,
        text: str | Frame,
        sink: str | Callable[[pa.Table, int], None] | None = None,
        priority: int = 0,
        max_gap: int | None = None,
    ) -> Query:
        """A standing query. Its answers go to a sink, to a function of yours, or are kept for `results()`."""
        plan = compile_query(str(text), self._catalog)
        url = sink if isinstance(sink, str) else None
        query = StandingQuery(name, plan, url, priority, max_gap)
        self._catalog.add(query)
        given = Callback(name, sink) if callable(sink) else self._sink_of(query)
        try:
            register(self._engine, bound_statements.RegisterQuery(query), given)
        except BaseException:
            self._catalog.drop("QUERY", name)
            raise
        self._engine.commit()
        return self.queries[name]

    @checked
    def archive(
        self,
        name: str,
        on: str,
        key: str,
        keep: str | int,
        *,
        partitions: tuple[int, int] | None = None,
        rebuild: bool | None = None,
        allocation: str | None = None,
        expect: str | None = None,
    ) -> ArchiveView:
        """Keep the rows of a stream or a query on disk from now on: CREATE ARCHIVE with its words.

        `key` is the column rows are found by, `keep` how long they are kept: "7 days", or a number where the
        source counts in numbers. What is not said of the layout is chosen for what you `expect`:
        "40 probes, 1 scan per update".
        """
        laid_out = {"rebuild": rebuild, "allocation": allocation, "expect": expect}
        self.sql(declarations.archive_text(name, on, key, keep, partitions, **laid_out))  # type: ignore[arg-type]
        return self.archives[name]

    @checked
    def drop(self, name: str) -> None:
        """Stop a query or an archive that is registered, or one that only the state directory still knows."""
        if name in self._catalog.archives:
            self._catalog.drop("ARCHIVE", name)
            self._engine.drop("ARCHIVE", name)
        elif name in self._engine.archives.undeclared:
            self._engine.drop("ARCHIVE", name)
        elif name in self._catalog.queries:
            self._catalog.drop("QUERY", name)
            self._engine.drop("QUERY", name)
        elif name in self._engine.last.queries:
            self._engine.drop("QUERY", name)
        else:
            self._catalog.drop("QUERY", name)
        self._engine.commit()

    @property
    def queries(self) -> Named[Query]:
        """What is registered, by name."""
        return Named("query", {name: Query(self._engine, name, self) for name in self._engine.queries})

    @property
    def streams(self) -> Named[StreamView]:
        """The declared streams, by name."""
        return Named("stream", {name: StreamView(self._engine, name) for name in self._engine.streams})

    @property
    def tables(self) -> Named[TableView]:
        """The declared tables, by name."""
        return Named("table", {name: TableView(self._engine, name) for name in self._engine.tables})

    @property
    def archives(self) -> Named[ArchiveView]:
        """The declared archives, by name."""
        return Named(
            "archive", {name: ArchiveView(self._engine.archives, name) for name in self._engine.archives.kept}
        )

    @property
    def commit(self) -> int:
        """The number of the last commit."""
        return self._engine.last.number

    @property
    def epochs(self) -> list[statistics.EpochTimes]:
        """What the last epochs took, oldest first."""
        return list(self._engine.epochs)

    @property
    def footprint(self) -> statistics.Footprint:
        """How much the last commit holds."""
        return statistics.footprint_of(self._engine.last)

    @property
    def store(self) -> Store:
        """Where the state is. As text: a directory, or the URL of a prefix."""
        return self._engine.store

    @property
    def folder(self) -> Path:
        """Where the state is; of state in an object store, what this machine keeps beside it."""
        return self._folder

    @property
    def flushes(self) -> list[Callable[[], None]]:
        """Called when sinks have taken what there was for them, before that is let go of."""
        return self._engine.delivering.flushes

    @property
    def exception(self) -> WindrowError | None:
        """Why the last run has ended by itself; None if it goes on, was stopped or came to its end."""
        return self._engine.ended

    @property
    def problems(self) -> list[WindrowError]:
        """What has gone wrong: why the last run has ended, queries that were stopped, sinks that fail."""
        ended = [self.exception] if self.exception is not None else []
        stopped = [
            engine.error_of(query) for query in self._engine.queries.values() if query.error is not None
        ]
        failing = [event.error for event in self._engine.events if event.kind != "query-failed"]
        absent = [] if self._loop is None else list(self._loop.board.absent.values())
        return [*ended, *stopped, *failing, *absent]

    @property
    def warnings(self) -> list[Warned]:
        """What is legal and rarely meant, in the queries as they are written and in the rows that came."""
        asked = [each for name, q in self._catalog.queries.items() for each in query_warnings(q.plan, name)]
        return asked + [each for stream in self.streams.values() for each in stream.warnings]

    def _do(self, statement: bound_statements.BoundStatement) -> Any:
        sink: Sink | None = None
        match statement:
            case bound_statements.DeclareTable(table) if table.source is not None:
                self._table_sources[table.name] = table_source.open_table(self.spark, table)
            case bound_statements.RegisterQuery(query):
                sink = self._sink_of(query)
            case bound_statements.Dropped(kind, name):
                sources: dict[str, dict[str, Any]] = {"STREAM": self._sources, "TABLE": self._table_sources}
                sources.get(kind, {}).pop(name, None)
            case bound_statements.ShowAll(kind):
                return self._shown(kind)
            case bound_statements.DescribeEntry(entry):
                return show.describe(entry)
            case bound_statements.Nothing():
                return None
            case bound_statements.ExplainQuery(plan, once):
                return self._explained(plan, once)
            case bound_statements.ExplainLayout(name):
                return show.explain_archive(self.archives[name])
            case bound_statements.AnalyzeQuery(query):
                return self.queries[query.name].explain(analyze=True)
            case bound_statements.RunOnce(_, once, refusal):
                if refusal is not None:
                    raise refusal
                return once
        register(self._engine, statement, sink)
        return None

    def _sink_of(self, query: StandingQuery) -> Sink | None:
        """Where the answers of a query go, if not just where the query says."""
        make, beside = self.default_sink, self.beside_sink
        if query.sink is None:
            return make(query.name) if make is not None else None
        return beside(query.name, self._engine.opened(query.sink, query.name)) if beside is not None else None

    def _planned(self, statement: bound_statements.BoundStatement) -> Explanation | None:
        match statement:
            case bound_statements.RegisterQuery(query):
                self._engine.check_query(query)
                return explain_plan(query.plan, name=query.name, sink=query.sink, max_gap=query.max_gap)
            case bound_statements.RunOnce(plan, once) | bound_statements.ExplainQuery(plan, once):
                return self._explained(plan, once)
        return None

    def _explained(self, plan: Emit, once: Once | None) -> Explanation:
        """The plan as a standing query, and where its rows would come from if it were asked once."""
        explanation = explain_plan(plan, statistics=self._engine.statistics(plan))
        if once is None:
            return explanation
        try:
            ways = self._asker.ways(once, self._catalog.queries)
        except QueryError as error:
            ways = [f"not to be had: {error.message}"]
        return replace(explanation, runs=(*explanation.runs, *(f"once    {way}" for way in ways)))

    def _shown(self, kind: str) -> pa.Table:
        shown = {
            "GAPS": lambda: show.show_gaps(self.queries),
            "ARCHIVE": lambda: show.show_archives(self.archives),
            "QUERY": lambda: show.show_queries(self.queries),
            "STREAM": lambda: show.show_streams(self.streams, self._catalog),
            "TABLE": lambda: show.show_tables(self.tables, self._catalog),
        }
        return shown[kind]()

    # ------------------------------------------------------------ running

    @checked
    def run(
        self,
        trigger: str = "0 seconds",
        *,
        once: bool = False,
        flush: bool = False,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        """Run until stopped. With `once`, only over what is there; `flush` then ends all streams.

        A query that fails is stopped and the others go on; when they are done, the first failure is raised.
        """
        loop = self._begin(trigger, once=once, flush=flush, watch=watch)
        with standing_here(loop.stop):
            self._run_loop(loop)
        self._raise_failure()

    @checked
    def start(self, trigger: str = "0 seconds") -> None:
        """Run in the background until `stop`."""
        loop = self._begin(trigger)
        self._thread = threading.Thread(target=self._run_loop, args=(loop,), name="windrow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the run after the epoch that is under way. What was committed is delivered.

        Of a run in the background, it raises what has gone wrong.
        """
        if (loop := self._loop) is not None:
            loop.stop()
        if self._thread is not threading.current_thread():
            self.wait()

    @checked
    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run in the background ends, or for so many seconds; raises what has gone wrong.

        True if it has ended, or there is none; False if the time is up. What went wrong is raised once: here,
        by `stop()`, by `close()` or at the end of `with`.
        """
        thread = self._thread
        if thread is None:
            return True
        if thread is threading.current_thread():
            raise StateError(
                "the run cannot wait for its own end",
                code="running",
                hint="call stop() here, and wait() in the thread that called start()",
            )
        thread.join(timeout)
        if thread.is_alive():
            return False
        self._thread = None
        self._raise_failure()
        return True

    @checked
    def shed(self, p: float | None) -> None:
        """Leave out this share of the windows of all queries with MAX GAP; None: as the load demands."""
        if p is not None and not 0 <= p <= 1:
            raise QueryError(f"{p} is no share of windows", code="bad-value", hint="0 to 1, or None")
        self._engine.shed(p)

    @checked
    def quicken(self, stream: str, times: float) -> float:
        """A bundled stream comes at its declared rate so many times, from now on: rows in a second.

        It shows what happens under a load that cannot be borne. Only streams FROM 'generator:…?rate=…' can.
        """
        if not 0 < times <= _MOST_TIMES:
            hint = f"more than 0, up to {_MOST_TIMES:,}"
            raise QueryError(f"{times} times is no rate", code="bad-value", hint=hint)
        source = self._sources.get(self.streams[stream].name)
        if not isinstance(source, generator_source.GeneratorSource) or source.rate is None:
            raise QueryError(
                f"stream `{stream}` has no rate that could be changed",
                code="no-rate",
                hint="it must be running, and declared FROM 'generator:…' with a rate",
            )
        source.quicken(times)
        return source.rate

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._loop is not None

    @checked
    def punctuate(self, stream: str, progress: Any, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream (with this value in this column) below `progress`: a heartbeat.

        A table can be named too. From then on it holds back the clock of the queries that read it, up to
        what it is punctuated with, so that changes below that are never too late.
        """
        if stream not in self._engine.streams and stream not in self._engine.tables:
            hint = nearest(stream, [*self._engine.streams, *self._engine.tables])
            raise QueryError(f"no stream `{stream}`", code="unknown-source", hint=hint)
        promise = engine.WatermarkAdvance(stream, instant(progress, self._domain_of(stream)), where)
        if where is not None:
            self._engine.check_promise(promise)
        if self._loop is not None:
            self._loop.promises.append(promise)
            self._loop.board.wake()
        else:
            self._check_declared()
            self._engine.epoch(promises=[promise])

    def _begin(
        self,
        trigger: str,
        *,
        once: bool = False,
        flush: bool = False,
        watch: Callable[[], None] = lambda: None,
    ) -> Loop:
        if self._loop is not None:
            raise StateError("this engine is running already", code="running", hint="stop() it first")
        self._check_declared()
        self._refreshing.begin()
        self._failure = self._engine.ended = None
        seconds = _seconds(trigger)
        # how long an epoch should take: until the next one, or a second if they follow at once
        self._engine.limit = None if once else max(seconds, 1.0)
        found = {name: self._source_of(name, stream) for name, stream in self._catalog.streams.items()}
        self._loop = Loop(
            self._engine,
            {**self._sources, **found},
            self._folder / names.CHECKPOINTS,
            trigger=trigger,
            period=seconds,
            once=once,
            flush=flush,
            watch=watch,
            tables=self._refreshing,
        )
        return self._loop

    def _run_loop(self, loop: Loop) -> None:
        try:
            with failures.job_failed("running the queries"):
                loop.run()
            self._engine.deliver()
            self._engine.commit()
        except BaseException as error:  # noqa: BLE001  it is raised again by the thread that asked for the run
            self._failure, self._engine.ended = error, engine.why_ended(error)
        finally:
            self._loop = None

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            # what was tried again before is no failure of the next run
            self._engine.tell("retried", "epoch", None)
            raise failure
        events, self._engine.events = self._engine.events, []
        if events:
            raise events[0].error
        failed = [query for query in self._engine.queries.values() if query.error is not None]
        if failed:
            raise engine.error_of(failed[0])

    def _check_declared(self) -> None:
        """State of what nobody declares any more is neither used nor silently thrown away."""
        missing = self.undeclared
        if missing:
            raise StateError(
                f"{self.store} holds the state of query `{missing[0]}`, which is not declared",
                code="query-missing",
                hint=f"declare it as before, drop it (w.drop('{missing[0]}'), or --drop {missing[0]}), or use"
                " another state directory",
            )
        for name in sorted(self._engine.archives.undeclared):
            raise StateError(
                f"{self.store} holds archive `{name}`, which is not declared",
                code="archive-missing",
                hint=f"declare it as before, or drop it: w.drop('{name}'), or --drop {name}",
            )

    @property
    def undeclared(self) -> list[str]:
        """Queries that only the state directory still knows: each is to be declared or dropped."""
        return sorted(set(self._engine.last.queries) - set(self._engine.queries))

    def _source_of(self, name: str, stream: Stream) -> Source:
        """Where the rows of a stream come from; if that does not answer, what opens it once it does."""
        if name in self._sources:
            return self._sources[name]
        if stream.source is None:
            raise QueryError(
                f"stream `{name}` has no source",
                code="no-source",
                hint=f"declare it with FROM '…', or give its rows: w.stream('{name}', data)",
            )
        try:
            return self._open(stream)
        except SourceError as error:
            if error.code not in PASSING:
                raise
            return Absent(partial(self._open, stream), error)

    def _open(self, stream: Stream) -> Source:
        with failures.job_failed(f"opening stream `{stream.name}`"):
            self._sources[stream.name] = open_url(self.spark, stream)
        return self._sources[stream.name]

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Stop, and let go of the state directory. What went wrong in the background is raised then."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._thread is not None:
                self.stop()
        finally:
            self._engine.close()
            if self._temporary is not None:
                self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, *__: object) -> None:
        try:
            self.close()
        except Exception as another:
            if error is None:
                raise
            error.add_note(f"and then, at the end of `with`: {another}")  # the first error is the one to see


def _seconds(trigger: str) -> float:
    """From the beginning of one epoch to that of the next, at least."""
    if trigger.split()[:1] == ["0"]:
        return 0.0
    return period(trigger)
