"""The engine: what is registered, and one epoch after the other.

An epoch is one readable function: ingest, learn, close what is due, commit, deliver. Everything between two
commits is a `Draft`; if anything fails, the draft is gone and the last commit is what is true.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count
from secrets import token_hex
from threading import RLock
from typing import Any, Protocol

import pyarrow as pa

from windrow.algebra import Emit, Stream, Table
from windrow.archive.layout import SaidOfLayout
from windrow.engine import archives, load_shedding, query_start, records, refresh_scheduler, statistics
from windrow.engine.epoch import Draft
from windrow.engine.output.dispatch import Delivering, Receiver
from windrow.engine.sharing import arrangement, shared_state
from windrow.engine.tables import TableRecord, TableUpdate, parts_of, read_contents, read_keys
from windrow.errors import DataError, QueryError, WindrowError
from windrow.execution import bundle, delta_file, ingest, malformed_rows, relational, shared
from windrow.execution.close import CloseTask
from windrow.execution.reports import Closed, Ingested, late_section
from windrow.kernels.columnar.columns import rows_schema
from windrow.kernels.relational.tables import TableContents
from windrow.language.catalog import StandingArchive, StandingQuery
from windrow.optimizer.flows import Statistics
from windrow.physical import PhysicalPlan, plan_query
from windrow.sharing.questions import QueryNeeds
from windrow.sinks import MemorySink, Sink, open_sink
from windrow.spark.sources import Source, infer_columns
from windrow.spark.sources.urls import malformed_sink
from windrow.state import crash, history, manifest, names
from windrow.state.log import CommitLog
from windrow.state.store import Store

#: what an epoch replaces before it is committed
_OF_AN_EPOCH = (
    *("streams", "tables", "queries", "shedding", "observed"),
    *("_panes", "_together", "_began", "_effort", "_arranging"),
)
#: and what registering changes
_REGISTERED = ("streams", "tables", "queries", "_known", "_closing")
#: so many states of several groupings at once are few, however few rows there were
FEW_STATES = 20_000
#: commits between two sweeps, and commits that are kept
SWEEP_EVERY, KEEP = 8, 8
#: and by how many commits a sweep is put off while the engine is busy
PATIENCE = 24


@dataclass(frozen=True)
class Arrival:
    """New rows of a stream; `read` is how far its source is after them, `waiting` how many more rows it has,
    as far as it tells, `around` the seconds that they cost before they come here."""

    stream: str
    frame: Any
    read: manifest.SourceState | None = None
    waiting: int = 0
    around: float = 0.0
    #: what the source remembers of them one by one
    keys: pa.Table | None = None
    #: whether the source still has what was read; asked before the commit
    is_unchanged: Callable[[], bool] = lambda: True


class SourceChanged(Exception):  # noqa: N818  it is for the loop, which makes the epoch once more
    """What was read is not what the source has any more."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream} was changed while it was read")
        self.stream = stream


@dataclass(frozen=True)
class WatermarkAdvance:
    """No more rows of a stream (with this value in this column) below `progress`."""

    stream: str
    progress: int
    where: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Event:
    """Something users may want to hear of."""

    kind: str
    name: str
    error: WindrowError


class Jobs(Protocol):
    """What runs the two jobs of an epoch."""

    def ingest(
        self, batches: Sequence[bundle.Arrived], place: delta_file.WriteTarget, now: int
    ) -> list[Ingested]:
        """New rows to delta files."""

    def close(self, tasks: Sequence[CloseTask]) -> list[Closed]:
        """State to the new clock."""

    def stay_ready(self) -> None:
        """Nothing is to be done for now."""


@dataclass
class Engine:
    """Standing queries over streams, in one state directory. One epoch at a time."""

    jobs: Jobs
    log: CommitLog
    shards: int
    now: Callable[[], int] = lambda: time.time_ns() // 1000
    #: promises about single groups may come from outside, about any stream
    by_group: bool | None = None
    streams: dict[str, records.StreamRecord] = field(default_factory=dict)
    tables: dict[str, TableRecord] = field(default_factory=dict)
    queries: dict[str, records.QueryRecord] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    #: how many seconds an epoch should take, longer ones are overload; None: there is no hurry
    limit: float | None = None
    #: whether new queries share what they keep
    shares: bool = True
    #: what plans new queries
    planner: query_start.PlanFunction = plan_query
    #: why the last run has ended by itself; None if it has not
    ended: WindrowError | None = None

    def __post_init__(self) -> None:
        self.lock = RLock()
        if self.last.is_unread:  # a first run that ends at a mistake in its script does not bind the second
            self.log.last = manifest.Manifest(self.last.number, self.last.owner, self.last.shards)
        self.shards = self.last.shards or self.shards
        self.delivering = Delivering(partial(self.tell, "sink-failed"))
        #: the last commit, without what was dropped since
        self._known = self.last
        self._closing: list[tuple[str, Sink]] = []
        self._state_id = str(self.last.decisions.get("state_id") or token_hex(8))
        self.shedding = load_shedding.Shedding.of(self.last.decisions, self._state_id)
        self.common = shared_state.Common.of(self.last.decisions)
        self.refreshes = refresh_scheduler.Refreshes.of(self.last.decisions)
        self.observed = statistics.ObservedStatistics.of(self.last.decisions)
        #: how long each query took since this process runs
        self.seconds: dict[str, float] = {}
        self.costs = statistics.MeasuredWork()
        self._effort: load_shedding.Effort | None = None
        #: when the last epoch with rows began
        self._began: float | None = None
        #: seconds that the last commit took
        self._committing = 0.0
        #: how many pane states each stream's last batch gave
        self._panes: dict[str, int] = {}
        #: whether the groupings of each stream had few groups in common
        self._together: dict[str, bool] = {}
        self._registered = False
        self._arranging = arrangement.Arranging(self)
        self._replanning = query_start.Replanning(self)
        #: what the next commit names is written here
        self._files = self.store.grouped()
        self._sweep_due = self.log.last.number + SWEEP_EVERY
        self.archives = archives.Archiving(self)
        #: what the last epochs took
        self.epochs: deque[statistics.EpochTimes] = deque(maxlen=statistics.MOST_EPOCHS)
        self._numbers = count(1)

    @property
    def store(self) -> Store:
        return self.log.store

    @property
    def last(self) -> manifest.Manifest:
        return self.log.last

    # ------------------------------------------------------------ registering

    def columns_of(self, kind: str, name: str, source: str) -> list[tuple[str, str]]:
        """The columns of a declaration that names none: as they were at first, else told from the data."""
        known = self._known.streams if kind == "STREAM" else self._known.tables
        if name not in known:
            return infer_columns(kind, name, source)
        return [(column, written) for column, written in known[name].options["declaration"]["columns"]]

    @contextmanager
    def _registering(self) -> Iterator[None]:
        with self.lock:
            yield
            self._registered = True

    def _forget(self, kind: str, name: str) -> None:
        """What the last commit has of this is not for the next one."""
        left = {each: state for each, state in getattr(self._known, kind).items() if each != name}
        known: dict[str, Any] = {kind: left}
        self._known = replace(self._known, **known)

    def add_stream(self, stream: Stream, late_sink: Sink | None = None) -> records.StreamRecord:
        """A declared stream, going on where the state directory has it."""
        with self._registering():
            stored = self._known.streams.get(stream.name)
            record = records.StreamRecord.from_state(stream, stored, str(self.store))
            query_start.check_stream(record)
            self.streams[stream.name] = record
            self._open_row_sinks(stream, late_sink)
            return record

    def _open_row_sinks(self, stream: Stream, late_sink: Sink | None) -> None:
        """Where late and malformed rows of a stream go."""
        name, sinks = stream.name, self.delivering.row_sinks
        if stream.late_sink is not None:
            late = late_sink or self.opened(stream.late_sink, f"late_{name}")
            sinks[late_section(name)] = Receiver(name, late, rows_schema(stream.schema))
        malformed, called = malformed_sink(stream.source), f"malformed_{name}"
        if malformed is not None:
            letters = Receiver(called, self.opened(malformed, called), malformed_rows.LETTERS)
            sinks[malformed_rows.malformed_section(name)] = letters

    def add_table(self, table: Table) -> TableRecord:
        """A declared table, with what the state directory has of it."""
        with self._registering():
            contents, stored = cache(lambda: self._contents(table)), self._known.tables.get(table.name)
            self.tables[table.name] = TableRecord.from_state(table, contents, stored, str(self.store))
            return self.tables[table.name]

    def _contents(self, table: Table) -> TableContents:
        """The rows of a table as of the last commit."""
        files = self.last.chunks.get(names.DRIVER, ())
        return read_contents(self.store, table, parts_of(self.tables[table.name].history, files))

    def change(self, updates: Sequence[TableUpdate]) -> None:
        """Change tables. On return a commit holds it; queries see it when their clocks move on."""
        with self.lock, self._nothing_if_it_fails():
            draft = self.draft()
            for update in updates:
                draft.change(update)
            if draft.moved or self._registered:
                self.commit_draft(draft)

    def add_query(self, query: StandingQuery, sink: Sink | None = None) -> records.QueryRecord:
        """A standing query, going on where the state directory has it."""
        with self._registering():
            stored = self._known.queries.get(query.name)
            query_start.check_clock(query.name, query.plan, self.streams)
            basis = query_start.Basis(
                {name: each.stream for name, each in self.streams.items()},
                {name: each.table for name, each in self.tables.items()},
                self.statistics(query.plan),
                self.planner,
                self.by_group,
            )
            record = query_start.begun(query, self.last.number, stored, basis)
            if stored is not None:
                self._replanning.resumed(query.name)
                if record.shares and record.is_running:
                    self.common.adopt(record)
            elif (joined := self._arranging.joined(record)) is not None:
                record = joined
            else:
                seen = [g for name in record.streams if (g := self.streams[name].greatest) is not None]
                record = replace(record, complete_from=max(seen) + 1 if seen else None)
            refresh_scheduler.check_every(record)
            opened = sink or self.opened(query.sink or "memory:", query.name)
            self._join_domains(record)
            for stream in record.streams:
                self._together.pop(stream, None)
            self.queries[query.name] = replace(record, sink=opened)
            return self.queries[query.name]

    def statistics(self, plan: Emit) -> Statistics:
        """What is known of streams and tables, and of the conditions of a query."""
        return self.observed.statistics({name: each.rows for name, each in self.tables.items()}, plan)

    def check_query(self, query: StandingQuery) -> None:
        """Build a query as `add_query` would, over streams that may be declared with it; nothing is kept."""
        basis = query_start.Basis(planner=self.planner, by_group=self.by_group)
        refresh_scheduler.check_every(query_start.begun(query, self.last.number, basis=basis))

    def would_run(self, query: StandingQuery) -> PhysicalPlan:
        """How a query would run if it were planned now."""
        return self.planner(query.plan, self.statistics(query.plan), by_group=self.by_group)

    def refresh_query(self, name: str) -> bool:
        """Plan a query anew, by what is known now; whether its plan is another one from now on. Refused if
        its state cannot become that of the better plan."""
        with self.lock:
            return query_start.replan(self, name)

    def note_sharing(self) -> None:
        """Bring up to date what the plans of queries say of sharing. While an epoch runs, that of the last
        one is true: nobody waits for it."""
        if self.lock.acquire(blocking=False):
            try:
                self._arranging.note(self.queries)
            finally:
                self.lock.release()

    def leader_of(self, record: records.QueryRecord) -> records.QueryRecord | None:
        """The query whose answers a query reads; None if it is computed by itself."""
        with self.lock:
            if not record.shares or not record.is_exact:
                return None
            members = set(self.common.members(self.common.shared_state_of(record.shares)))
            running = [each for each in self.queries.values() if each.id in members and each.is_running]
            (stream,) = (self.streams[name] for name in record.streams)
            answered = stream.known.progress_on(stream.stream, stream.stream.wattr)
            leader = arrangement.led(running, self.common, answered).leader_of(record.id)
            return next((each for each in running if each.id == leader), None)

    def asked_by(self, query: str) -> QueryNeeds | None:
        """What a query asks of its stream, by its id; None if it keeps a state of its own."""
        return self.common.planner.question(query)

    def _join_domains(self, query: records.QueryRecord) -> None:
        """The instants of a table's changes are those of the streams it is read with."""
        for name in query.tables:
            table, domain = self.tables[name], query.query.plan.leaves[0].domain.name
            if table.domain not in (None, domain):
                raise QueryError(
                    f"query `{query.query.name}` reads table `{name}` by another kind of instants than"
                    " queries before it: a change of the table would have to happen at a time for one and"
                    " at a number for the other",
                    code="mixed-domains",
                    hint="declare the table a second time, under another name",
                )
            self.tables[name] = replace(table, domain=domain)

    def drop(self, kind: str, name: str) -> None:
        """Forget a QUERY, an ARCHIVE, a STREAM or a TABLE; what it holds is let go of with `commit`. Queries
        and archives may be such as only the state directory knows."""
        with self._registering():
            match kind:
                case "QUERY":
                    if name in self.queries:
                        self._stop(name)
                    self._forget("queries", name)
                case "ARCHIVE":
                    self.archives.drop(name)
                case "STREAM":
                    del self.streams[name]
                    for section in (late_section(name), malformed_rows.malformed_section(name)):
                        self.delivering.row_sinks.pop(section, None)
                    self._forget("streams", name)
                case "TABLE":
                    del self.tables[name]
                    self._forget("tables", name)

    def _stop(self, name: str) -> None:
        """End a query; what it has answered is delivered first."""
        self.deliver()
        record = self.queries.pop(name)
        self.common.drop(record.id)
        self.delivering.forget(record.id)
        self.seconds.pop(record.id, None)
        self.costs.drop(record.id)
        self._closing += [(name, record.sink)] if record.sink is not None else []

    def add_archive(self, archive: StandingArchive) -> None:
        """A declared archive of a stream or a query."""
        with self._registering():
            self.archives.add(archive)

    def alter_archive(self, name: str, said: SaidOfLayout) -> None:
        """Lay an archive out otherwise: decided with `commit`, and then written anew."""
        with self._registering():
            self.archives.alter(name, said)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """If the block fails, nothing that it registers or drops is so."""
        with self.lock:
            before = {name: copy(getattr(self, name)) for name in _REGISTERED}
            before["common"], row_sinks = self.common.copy(), dict(self.delivering.row_sinks)
            try:
                with self.archives.all_or_nothing():
                    yield
            except BaseException:
                vars(self).update(before)
                self.delivering.row_sinks = row_sinks
                raise

    def keys_of(self, stream: str) -> pa.Table | None:
        """What the source of a stream remembers one by one."""
        with self.lock:
            return read_keys(self.store, stream, self.last.chunks.get(names.KEYS, ()))

    def read_from(self, name: str, source: Source) -> None:
        """The rows of a stream come from here. Refused if then something could never be answered."""
        with self.lock:
            record = replace(self.streams[name], source=source)
            query_start.check_stream(record)
            for query in self.queries.values():
                query_start.check_clock(query.query.name, query.query.plan, {**self.streams, name: record})
            self.streams[name] = record

    def shed(self, p: float | None) -> None:
        """Drop this share of the windows of all who agreed, whatever the load; None: as the load demands."""
        with self.lock, self._nothing_if_it_fails():
            self.shedding = replace(self.shedding, forced=p)
            self.commit_draft(self.draft())

    def check_promise(self, promise: WatermarkAdvance) -> None:
        """Promises about single groups need queries that were made for them."""
        column = next(iter(promise.where or {}), "…")
        if promise.stream not in self.streams:
            return
        stream = self.streams[promise.stream].stream
        for query in self.queries.values():
            if query.is_running and query.bundle.unit.misses(stream, column):
                raise DataError(
                    f"stream `{promise.stream}` is not punctuated PER `{column}`",
                    code="bad-punctuation",
                    hint=f"declare it ORDERED PER {column}, or PUNCTUATED BY … PER {column}",
                )

    def opened(self, url: str, query: str) -> Sink:
        return open_sink(url, query, hook=crash.crash_point, state=self._state_id)

    # ------------------------------------------------------------ epochs

    def epoch(
        self,
        arrivals: Sequence[Arrival] = (),
        promises: Sequence[WatermarkAdvance] = (),
        seals: Sequence[str] = (),
        unwatched: Mapping[str, int] | None = None,
    ) -> manifest.Manifest:
        """Take what is new, answer what is due, commit, deliver. If it fails, nothing has happened.

        `unwatched` is how many microseconds nobody could tell whether rows of a stream were there: its
        sources were not idle then.
        """
        with self.lock:
            self._replanning.look()
            self._arranging.admit()
        with self.lock, self._nothing_if_it_fails():
            now, began = self.now(), time.perf_counter()
            self.delivering.collect()
            self._arranging.arrange()
            draft = self.draft()
            draft.overlook(unwatched or {})
            draft.decisions["now"] = now
            self._ingest(draft, arrivals, now)
            read = time.perf_counter()
            for promise in promises:
                draft.promise(promise.stream, promise.progress, promise.where, now)
            draft.tick(now)
            draft.seal(seals)
            self._close(draft, began)
            for arrival in arrivals:
                if not arrival.is_unchanged():
                    raise SourceChanged(arrival.stream)
            draft.tidy()
            on_rows = time.perf_counter() - began
            effort = draft.effort(on_rows, self.delivering.seconds)
            effort = self._effort = replace(effort, **self._outside(arrivals, began))
            if draft.moved or arrivals or self._registered or self.delivering.done:
                self._arranging.note(draft.queries)
                self.commit_draft(draft)
            self._effort = None
        with self.lock:
            committed = time.perf_counter()
            self._committing = committed - began - on_rows
            self.deliver(only_due=True)
            self.delivering.seconds = time.perf_counter() - committed
            times = read - began, on_rows - (read - began), self._committing, self.delivering.seconds
            known = next(self._numbers), self.last.number, now, effort.rows, effort.shed, effort.backlog
            self.epochs.append(statistics.EpochTimes(*known, *times))
            return self.last

    @contextmanager
    def _nothing_if_it_fails(self) -> Iterator[None]:
        """An epoch that is not committed leaves everything as it was, and no files."""
        number = self.last.number
        before = {name: copy(getattr(self, name)) for name in _OF_AN_EPOCH}
        before["common"], before["refreshes"] = self.common, self.refreshes.copy()
        try:
            yield
        except BaseException:
            if self.last.number == number:
                vars(self).update(before)
                with suppress(WindrowError):
                    history.discard(self.log)
            raise

    def _outside(self, arrivals: Sequence[Arrival], began: float) -> dict[str, Any]:
        """What else there is to know of an epoch's effort."""
        around = max((arrival.around for arrival in arrivals), default=0.0) + self._committing
        backlog = sum(arrival.waiting for arrival in arrivals)
        return {"backlog": backlog, "around": around, "since": self._since(began) if arrivals else 0.0}

    def _since(self, began: float) -> float:
        """How long before this the last epoch with rows began."""
        before, self._began = self._began, began
        return began - before if before is not None else 0.0

    def commit(self) -> None:
        """Make registrations, and what was delivered, durable."""
        with self.lock:
            self.delivering.collect()
            if self._registered or self.delivering.done:
                self.commit_draft(self.draft())
                self.archives.rearrange()

    def draft(self) -> Draft:
        """The next commit, as far as it is known."""
        # tells this state from others, for sinks that know commits by number: it may move, and another
        # may come to be at its place
        decisions = {"state_id": self._state_id, **self.archives.decisions}
        if "now" in self.last.decisions:
            decisions["now"] = self.last.decisions["now"]
        owner, number = self.log.owner.epoch, self.last.number + 1
        place = delta_file.WriteTarget(self._files, number, owner, self.shards)
        return Draft(
            last=self.last,
            known=self._known,
            place=place,
            streams=dict(self.streams),
            tables=dict(self.tables),
            queries=dict(self.queries),
            delivered=dict(self.delivering.done),
            decisions=decisions,
            archived=self.archives.sections,
            common=self.common,
        )

    def _ingest(self, draft: Draft, arrivals: Sequence[Arrival], now: int) -> None:
        if not arrivals:
            return
        for arrival in arrivals:
            if draft.streams[arrival.stream].known.sealed:
                raise sealed(arrival.stream)
        batches = [self._arrived(draft, arrival) for arrival in arrivals]
        reports = self.jobs.ingest(batches, draft.place, now)
        self._panes = {name: sum(r.panes for r in reports if r.stream == name) for name in draft.streams}
        for arrival in arrivals:
            mine = [report for report in reports if report.stream == arrival.stream]
            tried = [report for report in mine if report.together]
            if tried:
                self._together = {**self._together, arrival.stream: _are_few(tried)}
            draft.take(arrival.stream, mine, now)
            if arrival.read is not None:
                record = draft.streams[arrival.stream]
                draft.streams[arrival.stream] = replace(record, read=arrival.read)
            if arrival.keys is not None:
                draft.remember(arrival.stream, arrival.keys)

    def _arrived(self, draft: Draft, arrival: Arrival) -> bundle.Arrived:
        record, source = draft.streams[arrival.stream], draft.streams[arrival.stream].source
        readers = [query for query in draft.running if arrival.stream in query.streams]
        malformed = malformed_rows.malformed_section(arrival.stream)
        return bundle.Arrived(
            record.stream,
            arrival.frame,
            record.known,
            tuple(query.bundle for query in readers if not query.shares),
            order_key=source.order_key if source is not None else (),
            others={name: each.known for name, each in draft.streams.items()},
            panes=self._panes.get(arrival.stream),
            held={name: each.progress for name, each in draft.tables.items()},
            shed=self.shedding.rows(record, draft),
            own=self.shedding.own_rows(record, draft),
            archived=ingest.archived_section(ingest.stream_source(arrival.stream)) in draft.archived,
            shared_states=draft.shared_states_of(arrival.stream),
            together=self._together.get(arrival.stream, True),
            hands_on=source is not None and source.hands_on_malformed,
            malformed_sink=malformed if malformed in self.delivering.row_sinks else None,
        )

    def _close(self, draft: Draft, began: float) -> None:
        wants, drops = self.archives.wants_lifetimes, self.shedding.drops
        ready = time.perf_counter()
        left = None if self.limit is None else self.limit - (ready - began)
        chosen = draft.refreshed(self.refreshes, left)
        work = []
        for each in draft.due(chosen):
            name = each.query.name
            left_out = refresh_scheduler.both(each.drops, drops(name))
            unread = self.shedding.unread(draft.by_id(name), draft, each.clock)
            work.append(replace(each, drops=left_out, lifetimes=wants(name), unread=unread))
        shared = [self._without_dropped(each) for each in draft.shared_due(chosen)]
        if work or shared:
            reports = self.rework(draft, work, shared)
            while failed := arrangement.failed_leaders(shared, reports):
                shared = [draft.without_followers(each, failed) for each in shared]
                reports = self.rework(draft, work, shared)
            draft.close(work, shared, reports)
        measured = draft.measured(work, shared)
        scale = (time.perf_counter() - ready) / (sum(seconds for *_, seconds in measured) or 1.0)
        for group, longest, answers, seconds in measured:
            self.refreshes.measured(group, longest, answers, seconds * scale)

    def _without_dropped(self, work: shared.SharedWork) -> shared.SharedWork:
        """The same, with windows that are left out not even asked for."""
        drops = self.shedding.drops
        askers = tuple(replace(asker, drops=drops(asker.query)) for asker in work.turn.askers)
        return replace(work, turn=replace(work.turn, askers=askers))

    def rework(
        self, draft: Draft, work: list[relational.QueryWork], shared: Sequence[shared.SharedWork] = ()
    ) -> list[Closed]:
        """Run the close job for some queries, in their turn or outside of it."""
        return self.jobs.close(draft.tasks(work, shared))

    def commit_draft(self, draft: Draft) -> None:
        """Make a draft the last commit."""
        shedding = self.shedding.after(draft, self._effort, self.limit)
        self.observed = self.observed.after(draft.streams)
        draft.decisions |= shedding.decisions | self.refreshes.decisions(draft.ids) | self.observed.decisions
        crash.crash_point("before-commit")
        self._files.settle()
        self.log.commit(draft.manifest())
        crash.crash_point("after-commit")
        self.shedding = shedding
        ran = [name for name, record in self.queries.items() if record.is_running]
        failed = [draft.queries[name] for name in ran if not draft.queries[name].is_running]
        self.streams, self.tables, self.queries = draft.streams, draft.tables, draft.queries
        for name, (gone, new) in draft.changed.items():
            self.tables[name].contents().apply(gone, new)
        self._registered = False
        self.delivering.done, self._known = {}, self.last
        while self._closing:
            self.delivering.let_go(*self._closing.pop())
        self.archives.committed()
        self.common.absorbed = draft.shared_states
        for name, seconds in draft.spent.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        if self._effort is not None:
            self.costs.add(draft.levels, self._effort.rows - self._effort.shed)
        for name in draft.too_large:
            self.common.leave(name)
        for query in failed:
            self.common.drop(query.id)
            self.events.append(Event("query-failed", query.query.name, error_of(query)))
        self.maintain(is_idle=False)

    def maintain(self, *, is_idle: bool = True) -> None:
        """Remove what no commit needs any more. While there is more to do it may wait a little."""
        if is_idle:
            self.jobs.stay_ready()
        with self.lock:
            if self.last.number >= self._sweep_due + (0 if is_idle else PATIENCE):
                history.sweep(self.log, KEEP)
                self._sweep_due = self.last.number + SWEEP_EVERY

    # ------------------------------------------------------------ delivery

    def deliver(self, *, only_due: bool = False) -> None:
        """Give every sink what is committed and it does not have. Where one fails, its rows go on waiting.

        Archives get theirs too; `only_due`: those that should not wait any longer.
        """
        with self.lock:
            self.delivering.deliver(self.store, self.last.outbox, list(self.queries.values()))
            self.archives.deliver(only_due=only_due)

    def tell(self, kind: str, name: str, error: WindrowError | None) -> None:
        """Something goes wrong that may pass, or has passed (None); the newest stands for all before it."""
        if self.events:
            self.events = [each for each in self.events if (each.kind, each.name) != (kind, name)]
        if error is not None:
            self.events.append(Event(kind, name, error))

    def close(self) -> None:
        """Deliver what waits, commit that it is delivered, and let go of the state directory."""
        with self.lock:
            try:
                self.deliver()
                self.commit()
            finally:
                for name, record in self.queries.items():
                    if record.sink is not None and not isinstance(record.sink, MemorySink):
                        self.delivering.let_go(name, record.sink)
                for each in self.delivering.row_sinks.values():
                    self.delivering.let_go(each.name, each.sink)
                self.archives.close()
                self.log.close()


def _are_few(reports: Sequence[Ingested]) -> bool:
    """Whether several groupings at once had few states, for so many rows."""
    rows = sum(report.observed.accepted for report in reports if report.observed is not None)
    return sum(report.panes for report in reports) <= max(FEW_STATES, rows // 4)


def sealed(stream: str) -> DataError:
    """More rows of a stream whose end was declared."""
    return DataError(
        f"stream `{stream}` is sealed: its end was declared, and its windows are answered",
        code="sealed",
        hint="use a new state directory to read it again, with what came since",
    )


def error_of(query: records.QueryRecord) -> WindrowError:
    """Why a query was stopped."""
    known = query.error or {}
    text = f"query `{query.query.name}` was stopped: {known.get('message', 'no reason is known')}"
    return DataError(text, code=known.get("code"), hint=known.get("hint"))


def why_ended(error: BaseException) -> WindrowError:
    """What a user is told of an error that ended a run."""
    if isinstance(error, WindrowError):
        return error
    first_line = str(error).strip().partition("\n")[0] or "no message"
    told = WindrowError(
        f"the run has ended: {type(error).__name__}: {first_line}",
        code="run-failed",
        hint="nothing that was committed is lost; start again to go on from there",
    )
    told.__cause__ = error
    return told
