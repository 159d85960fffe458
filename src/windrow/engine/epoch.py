"""The next commit, being made: an epoch in steps. Nothing here is visible before the manifest is.

take      what the ingest job reports: counts, greatest values, files, faults
change    what a table's users, or its files, say
promise, tick, seal    what else moves a stream
due       which queries the new clocks make due
close     what the close job reports: state files, answers, faults
manifest  all of it, as the successor of the last commit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from windrow.algebra.catalog import Stream
from windrow.engine import load_shedding, refresh_scheduler, retention, statistics
from windrow.engine import tables as table_records
from windrow.engine.archives import Archiving
from windrow.engine.output.outbox import asking, with_followers, with_readers
from windrow.engine.records import QueryRecord, StreamRecord
from windrow.engine.sharing.arrangement import led
from windrow.engine.sharing.common_subplans import Membership
from windrow.engine.sharing.shared_state import Common, labels_of
from windrow.errors import StateError
from windrow.execution import delta_file, ingest, malformed_rows
from windrow.execution.close import CloseTask, QueryWork
from windrow.execution.reports import Closed, Fault, Ingested, late_section
from windrow.execution.shared import SharedWork
from windrow.kernels.clock import PaneClock
from windrow.kernels.intake import Intake, Known
from windrow.kernels.relational.tables import Values, changes_at, check_order, promised
from windrow.kernels.shared.shared_state import SharedEpoch, SharedState, WindowRequest
from windrow.language.catalog import StandingQuery
from windrow.physical import PhysicalPlan
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.shedding import load
from windrow.state.manifest import ChunkRef, Manifest, OutboxEntry, QueryState, StreamState
from windrow.state.names import ANSWERS, DRIVER, KEPT, KEYS
from windrow.state.store import Store
from windrow.windows.domain import INFINITY, Instant, check_instant

#: a query that is not due takes in what is new when this many files wait for it
MOST_WAITING = 32
#: a shared state with more cells (intervals × groups) in a shard than these, for each of its queries, is
#: given up
MOST_CELLS = 1 << 18


class Between(Protocol):
    """An engine between two epochs, to whoever changes its queries then, by a commit in between."""

    streams: dict[str, StreamRecord]
    queries: dict[str, QueryRecord]
    common: Common
    observed: statistics.ObservedStatistics
    shares: bool
    archives: Archiving

    @property
    def last(self) -> Manifest:
        """The last commit."""

    @property
    def store(self) -> Store:
        """Where the state is."""

    @property
    def shares_elsewhere(self) -> set[str]:
        """The synopses of queries that nobody has declared yet."""

    def would_run(self, query: StandingQuery) -> PhysicalPlan:
        """How a query would run if it were planned now."""

    def draft(self) -> Draft:
        """The next commit, as far as it is known."""

    def rework(self, draft: Draft, work: list[QueryWork]) -> list[Closed]:
        """Run the close job for some queries."""

    def commit_draft(self, draft: Draft) -> None:
        """Make a draft the last commit."""


@dataclass
class Draft:
    """What the next manifest will say, given the last one and what has happened since."""

    last: Manifest
    streams: dict[str, StreamRecord]
    queries: dict[str, QueryRecord]
    #: queries that were dropped: whatever else the last commit knows stays, declared or not
    dropped: frozenset[str] = frozenset()
    dropped_streams: frozenset[str] = frozenset()
    tables: dict[str, table_records.TableRecord] = field(default_factory=dict)
    dropped_tables: frozenset[str] = frozenset()
    #: which sections of which outbox files have been delivered since the last commit
    delivered: Mapping[str, set[str]] = field(default_factory=dict)
    decisions: dict[str, Any] = field(default_factory=dict)
    #: the sections of outbox files that archives wait for
    archived: frozenset[str] = frozenset()
    #: the synopses that queries share
    common: Common = field(default_factory=Common)
    _deltas: list[ChunkRef] = field(default_factory=list)
    _files: dict[int, tuple[ChunkRef, ...]] = field(default_factory=dict)
    _outbox: list[ChunkRef] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before, self.tables_before = dict(self.streams), dict(self.tables)
        #: up to which commit each shared state has taken delta files in
        self.shared_states = dict(self.common.absorbed)
        self._names = {record.id: name for name, record in self.queries.items()}
        #: of each query that asks for others too, those who read its answers
        self._readers: dict[str, list[str]] = {}
        #: shared states whose queries had better have states of their own
        self.too_large: list[str] = []
        #: rows that leave and come, for each table that changes
        self.changed: dict[str, tuple[list[Values], list[Values]]] = {}
        #: seconds that tasks have spent on each query, and rows that it has answered
        self.spent: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        #: the same of each level of a query's windows
        self.levels: dict[tuple[str, int], tuple[float, int]] = {}
        self._deltas = list(self.last.chunks.get(DRIVER, ()))
        self._files = {number: refs for number, refs in self.last.chunks.items() if number >= 0}
        kept = self.last.chunks.get(KEPT, ())
        self._kept = [ref for ref in kept if ref.metadata["stream"] not in self.dropped_streams]
        keys = self.last.chunks.get(KEYS, ())
        self._keys = [ref for ref in keys if ref.metadata["stream"] not in self.dropped_streams]

    # ------------------------------------------------------------ streams

    def take(self, name: str, reports: Iterable[Ingested], now: int) -> None:
        """What the ingest job says of a stream's new rows."""
        found = list(reports)
        for report in found:
            if report.refusal is not None:
                raise report.refusal
        record = self.streams[name]
        pieces = [report.observed for report in found if report.observed is not None]
        known = record.known
        if pieces:
            known = Intake(record.stream).learn(known, pieces, now, now - record.unwatched)
        moments = [t for piece in pieces for t in piece.batch.wattr if t is not None]
        greatest = max([*moments, *([record.greatest] if record.greatest is not None else [])], default=None)
        late = record.late + sum(piece.late for piece in pieces)
        shed = record.shed + sum(report.shed for report in found)
        malformed = record.malformed + sum(report.malformed for report in found)
        record = replace(record, late=late, shed=shed, malformed=malformed)
        self.streams[name] = replace(record, known=known, greatest=greatest)
        self._deltas += [report.chunk for report in found if report.chunk is not None]
        self._outbox += [report.outbox for report in found if report.outbox is not None]
        self._kept += [report.kept for report in found if report.kept is not None]
        for report in found:
            self._fault(report.faults)
            self.spent.update(report.seconds)
            for query, latest in report.latest.items():
                self._reaches(query, latest)

    def effort(self, on_rows: float, on_answers: float) -> load_shedding.Effort:
        """What the epoch took, up to now, and how many rows came in it."""
        came = [(record, self.before.get(name)) for name, record in self.streams.items()]
        rows = sum(r.known.accepted - (b.known.accepted if b else 0) for r, b in came)
        shed = sum(r.shed - (b.shed if b else 0) for r, b in came)
        work = {
            name: load.OperatorWork(spent, rows - shed, self.given[name])
            for name, spent in self.spent.items()
        }
        levels: dict[str, tuple[float, ...]] = {}
        for (query, _), (seconds, _) in sorted(self.levels.items()):
            levels[query] = (*levels.get(query, ()), seconds)
        return load_shedding.Effort(rows, shed, on_rows, on_answers, by_query=work, by_level=levels)

    def promise(self, name: str, progress: int, where: Mapping[str, Any] | None, now: int) -> None:
        """Somebody outside says that no more rows, or no more changes of a table, come below `progress`."""
        if name in self.tables:
            table = self.tables[name]
            held = promised(name, table.progress, progress, self.answered(name))
            self.tables[name] = replace(table, progress=held)
            return
        record = self.streams[name]
        known = Intake(record.stream).promise(record.known, progress, where, now - record.unwatched)
        self.streams[name] = replace(record, known=known)

    def remember(self, name: str, keys: pa.Table, place: delta_file.WriteTarget) -> None:
        """What a source has read that no position tells."""
        if keys.num_rows:
            self._keys = table_records.add_keys(place, name, keys, self._keys)

    def overlook(self, unwatched: Mapping[str, int]) -> None:
        """For so many microseconds nobody could tell whether rows of these streams were there."""
        for name, micros in unwatched.items():
            record = self.streams[name]
            self.streams[name] = replace(record, unwatched=record.unwatched + micros)

    def tick(self, now: int) -> None:
        """Wall-clock time passes: idle sources may be left out."""
        for name, record in self.streams.items():
            if not record.known.sealed:
                known = Intake(record.stream).tick(record.known, now - record.unwatched)
                self.streams[name] = replace(record, known=known)

    def seal(self, names: Collection[str]) -> None:
        """No more rows of some streams, for ever; tables do not hold the clock back any longer."""
        for query in self.queries.values():
            if not {*query.streams, *query.tables}.isdisjoint(names):
                unit = query.bundle.unit
                if isinstance(unit, UnionUnit):
                    self._branches_reach(query, unit.branch_clocks(*self._inputs(query)))
                elif (reached := unit.reached(*self._inputs(query))) is not None:
                    self._reaches(query.id, reached)
        for name in names:
            if name in self.tables:
                self.tables[name] = replace(self.tables[name], progress=INFINITY)
            else:
                record = self.streams[name]
                self.streams[name] = replace(record, known=replace(record.known, sealed=True))

    def tidy(self, place: delta_file.WriteTarget) -> None:
        """Forget kept rows that are too old, and put small files of them together."""
        for name, record in self.streams.items():
            self.streams[name], self._kept = retention.tidied(record, self._kept, place)

    @property
    def moved(self) -> bool:
        """Whether anything is known that was not known at the last commit, but for the time that passed."""
        now, before = (
            {name: replace(record, unwatched=0) for name, record in streams.items()}
            for streams in (self.streams, self.before)
        )
        return now != before or self.tables != self.tables_before

    # ------------------------------------------------------------ tables

    def change(self, update: table_records.TableUpdate, place: delta_file.WriteTarget) -> None:
        """A table changes: what is wrong with it is told before anything is written."""
        name, record = update.table, self.tables[update.table]
        assert name not in self.changed, "one change of a table in a commit"
        contents = record.shelf.contents
        if update.content is None:
            gone, new = list(update.delete), list(update.insert)
        else:
            gone, new = contents.difference(update.content)
        if update.read is not None:
            self.tables[name] = record = replace(record, read=update.read)
        if update.at is None and not gone and not new:
            return
        if update.at is None:
            at = table_records.instant_of(record, self._clocks_of(name))
        else:
            at = update.at
            check_instant(at, f"a change of table `{name}`")
            table_records.check_clock(name, at, self.answered(name))
        check_order(name, at, record.changed, record.progress)
        contents.check(gone, new)
        if not gone and not new:
            return
        record = self._written(record, changes_at(record.table.schema, at, gone, new), place)
        self.changed[name] = gone, new
        self.tables[name] = replace(record, last=at, rows=record.rows + len(new) - len(gone))

    def _written(
        self, record: table_records.TableRecord, changes: pl.DataFrame, place: delta_file.WriteTarget
    ) -> table_records.TableRecord:
        """The changes on the disk; a long history is added up first."""
        parts = self._parts(record)
        if table_records.is_long(parts):
            floor = min((r.known.progress.progress for r in self.streams.values()), default=-INFINITY)
            parts = [table_records.add_up(place, record.table, record.shelf.contents, parts, floor)]
            self._deltas += parts
        new = table_records.write_changes(place, record.table, changes)
        self._deltas.append(new)
        return replace(record, history=tuple(ref.name for ref in (*parts, new)))

    def _parts(self, record: table_records.TableRecord) -> list[ChunkRef]:
        known = {ref.name: ref for ref in self._deltas}
        return [known[name] for name in record.history]

    def answered(self, table: str) -> Instant:
        """How far answers are given that depend on a table: it cannot change before.

        Queries that have come to their end do not count, as long as there are others.
        """
        clocks = [clock for clock, _ in self._clocks_of(table)]
        return max([clock for clock in clocks if clock != INFINITY] or clocks, default=-INFINITY)

    def _clocks_of(self, table: str) -> list[tuple[Instant, Instant]]:
        """Of each query that has read a table: how far its answers are, and the rows it has seen."""
        found: list[tuple[Instant, Instant]] = []
        for query in self.queries.values():
            unit = query.bundle.unit
            if table in query.tables and query.is_running and not query.is_fresh:
                assert isinstance(unit, GeneralUnit)
                for reader in unit.readers(table):
                    greatest = [self.streams[name].greatest for name in reader.by_wattr]
                    seen = max((moment for moment in greatest if moment is not None), default=-INFINITY)
                    found.append((reader.furthest(*self._inputs(query)), seen))
        return found

    # ------------------------------------------------------------ queries

    def refreshed(self, refreshes: refresh_scheduler.Refreshes, seconds: float | None = None) -> set[str]:
        """Of the queries that do not ask for every window, those that are answered now, on all of which
        together so many seconds may be spent."""
        groups: list[refresh_scheduler.RefreshGroup] = []
        for name in self.common.shared_states:
            running = self._running(name)
            if any(record.query.every is not None for record in running):
                shared_state = self.common.shared_state(name)
                asking = [(record, self.common.asker(record.id)) for record in running]
                group = refresh_scheduler.group_of(shared_state, asking, self._clock(shared_state.stream))
                groups += [group] if group is not None else []
        for record in self._own:
            if record.query.every is not None:
                work = self._work(record)
                moved = self._work(replace(record, held=None)).clock
                groups.append(refresh_scheduler.group_by_itself(record, moved, work.clock))
        return refreshes.due(groups, seconds)

    def due(self, chosen: Collection[str] = ()) -> list[QueryWork]:
        """The queries that have something to answer, or too much to take in."""
        found = [self._monitored(record, chosen) for record in self._own]
        return [work for work in found if work is not None]

    def _monitored(self, record: QueryRecord, chosen: Collection[str]) -> QueryWork | None:
        """What a query has to do now. One that does not ask for every window tells of the newest one only,
        and is held back when it is not its turn."""
        work = self._work(record)
        forced = work.seed is not None or len(work.deltas) > MOST_WAITING
        if record.query.every is None:
            return work if _is_due(work) or forced else None
        if record.id in chosen or forced:
            greatest = {name: self.streams[name].greatest for name in record.streams}
            end = refresh_scheduler.newest(record, work.clock.now, greatest) if record.id in chosen else None
            return replace(work, drops=refresh_scheduler.Without(end), reports=(refresh_scheduler.only(end),))
        if _is_due(work):
            self.queries[record.query.name] = replace(record, held=work.clock.before)
        return None

    @property
    def _own(self) -> list[QueryRecord]:
        return [record for record in self.queries.values() if record.is_running and not record.shares]

    def _running(self, shared_state: str) -> list[QueryRecord]:
        members = (self._by_id(query) for query in self.common.members(shared_state))
        return [record for record in members if record.is_running]

    def _clock(self, stream: Stream) -> PaneClock:
        known = self.before[stream.name].known, self.streams[stream.name].known
        before, now = (each.progress_on(stream, stream.wattr) for each in known)
        return PaneClock(before, now)

    def shared_due(self, chosen: Collection[str] = ()) -> list[SharedWork]:
        """The shared states that have something to answer, or too much to take in."""
        found: list[SharedWork] = []
        for name in self.common.shared_states:
            running = self._running(name)
            if not running:
                continue
            shared_state = self.common.shared_state(name)
            clock = self._clock(shared_state.stream)
            asking = [r for r in running if r.query.every is None or r.id in chosen]
            askers = self._askers(asking, clock)
            due = tuple(asker for asker in askers if asker.is_due(clock))
            waiting = tuple(ref for ref in self._deltas if self._is_waited_for(name, ref))
            if due or len(waiting) > MOST_WAITING:
                found.append(SharedWork(SharedEpoch(shared_state, clock, due, self.common.forms), waiting))
        return found

    def shared_states_of(self, stream: str) -> tuple[SharedState, ...]:
        """What is kept of a stream for running queries that share it."""
        found = [self.common.shared_state(name) for name in self.common.shared_states if self._is_used(name)]
        return tuple(shared_state for shared_state in found if shared_state.stream.name == stream)

    def _is_used(self, shared_state: str) -> bool:
        return any(self._by_id(query).is_running for query in self.common.members(shared_state))

    def _askers(self, records: Iterable[QueryRecord], clock: PaneClock) -> list[WindowRequest]:
        """What the queries ask; of those that ask the same, one asks for all."""
        found = led(records, self.common.asking, clock.before)
        self._readers |= found.readers
        return found.askers

    def without_followers(self, work: SharedWork, failed: Collection[str]) -> SharedWork:
        """The same, where those who follow some queries ask by themselves."""
        askers: list[WindowRequest] = []
        for asker in work.turn.askers:
            askers.append(replace(asker, followers=()) if asker.query in failed else asker)
            for follower in asker.followers if asker.query in failed else ():
                begin = self._by_id(follower.query).complete_from
                askers.append(replace(self.common.asker(follower.query), complete_from=begin))
        return replace(work, turn=replace(work.turn, askers=tuple(askers)))

    def _is_waited_for(self, shared_state: str, delta: ChunkRef) -> bool:
        stream = self.common.shared_state(shared_state).stream.name
        return _commit(delta) > self.shared_states[shared_state] and delta.metadata.get("stream") == stream

    def _work(self, record: QueryRecord) -> QueryWork:
        before, held = self._inputs(record, self.before, self.tables_before)
        now, now_held = self._inputs(record)
        clock = record.bundle.unit.clock(before, now, record.reached or record.latest, held, now_held)
        if record.held is not None:
            clock = replace(clock, before=record.held)  # type: ignore[arg-type]
        waiting = [ref for ref in self._deltas if self._awaits(record, ref)]
        tables = [self.tables[name] for name in record.tables]
        whole = [ref for table in tables for ref in self._parts(table)] if record.is_fresh else []
        changed = {
            each.table.name: int(each.changed) for each in tables if each.changed > table_records.BEGINNING
        }
        known = record.latest, record.complete_from, changed
        return QueryWork(record.bundle, clock, (*whole, *waiting), *known, seed=record.seed)

    def _inputs(
        self,
        query: QueryRecord,
        streams: Mapping[str, StreamRecord] | None = None,
        tables: Mapping[str, table_records.TableRecord] | None = None,
    ) -> tuple[dict[str, Known], dict[str, Instant]]:
        """What is known of a query's streams, and how far its tables are."""
        streams = self.streams if streams is None else streams
        tables = self.tables if tables is None else tables
        known = {name: streams[name].known for name in query.streams}
        return known, {name: tables[name].progress for name in query.tables}

    @staticmethod
    def _awaits(record: QueryRecord, delta: ChunkRef) -> bool:
        """Whether a query has still to take a file in. One that has never run begins with whole tables."""
        if _commit(delta) <= record.absorbed or record.shares:
            return False
        table = delta.metadata.get("table")
        if table is not None:
            return table in record.tables and not record.is_fresh
        return delta.metadata.get("stream") in record.streams

    def tasks(
        self, work: list[QueryWork], shared: list[SharedWork], place: delta_file.WriteTarget
    ) -> list[CloseTask]:
        """The stages of the close job."""
        depth = max([each.query.unit.stages for each in work], default=1)
        running = [record for record in self.queries.values() if record.is_running]
        alive = frozenset(name for record in running for name in record.bundle.places)
        alive |= {state.options["id"] for state in self._undeclared.values()}
        away = [state.options["member"] for state in self._undeclared.values() if "member" in state.options]
        alive |= {name for each in away for name in Membership.from_json(each).names}
        alive |= {
            *self.common.shared_states,
            *(self.common.kept[name].shared_state for name in self.shares_elsewhere),
        }
        seeds = [state.options["seed"] for state in self._undeclared.values() if "seed" in state.options]
        alive |= {seed["shared_state"] for seed in seeds}
        common = tuple(shared)
        return [CloseTask(stage, place, tuple(work), self._files, alive, common) for stage in range(depth)]

    def close(self, work: list[QueryWork], shared: list[SharedWork], reports: Iterable[Closed]) -> None:
        """What the close job says."""
        moved = [each.query.name for each in work]
        for common in shared:
            self.shared_states[common.name] = self.last.number + 1
            moved += self.common.members(common.name)
        for query in moved:
            record = self._by_id(query)
            moved_on = replace(record, absorbed=self.last.number + 1, is_fresh=False, seed=None, held=None)
            self.queries[record.query.name] = moved_on
        cells: Counter[str] = Counter()
        followers = {a.query: a.followers for common in shared for a in common.turn.askers if a.followers}
        for report in reports:
            self._files[report.shard] = report.files
            cells |= Counter(report.cells)
            self.spent.update(report.seconds)
            self.given.update(report.rows)
            for query, seconds in report.seconds.items():
                before, given = self.levels.get((query, report.stage), (0.0, 0))
                given += report.passed.get(query, report.rows.get(query, 0))
                self.levels[query, report.stage] = before + seconds, given
            if report.outbox is not None:
                self._outbox.append(with_followers(report.outbox, followers, report.rows))
            self._fault(report.faults)
            for query, rows in report.rows.items():
                for each in (query, *self._readers.get(query, ())):
                    record = self._by_id(each)
                    self.queries[record.query.name] = replace(record, rows=record.rows + rows)
        self.too_large = [
            name for name, count in cells.items() if count > MOST_CELLS * len(self.common.members(name))
        ]
        for name in self.too_large:
            for query, seed in self.common.seeds(name).items():
                record = self._by_id(query)
                self.queries[record.query.name] = replace(record, shares=(), seed=seed)

    def measured(self, work: list[QueryWork], shared: list[SharedWork]) -> list[tuple[str, int, int, float]]:
        """For each query group that were answered together: the longest window in ticks, how many they
        were, and the seconds that tasks spent on them."""
        spent: Counter[str] = Counter()
        for (query, _), (seconds, _) in self.levels.items():
            spent[query] += seconds  # type: ignore[assignment]
        found = [(each.query.name, 0, 1, float(spent[each.query.name])) for each in work]
        for common in shared:
            askers = common.turn.askers
            longest = max((asker.range for asker in askers), default=0)
            seconds = float(sum(spent[asker.query] for asker in askers))
            found.append((common.name, longest, len(askers), seconds))
        return found

    def _fault(self, faults: Mapping[str, Fault]) -> None:
        for name, fault in faults.items():
            if isinstance(fault.error, StateError):  # a full disk or a damaged file is not the query's fault
                raise fault.error
            for query in self.common.members(name) or (name, *self._readers.get(name, ())):
                record = self._by_id(query)
                if record.is_running:
                    error = {"code": fault.error.code, "message": fault.error.message}
                    more = {"hint": fault.error.hint, "trace": fault.trace}
                    self.queries[record.query.name] = record.failed({**error, **more})

    def _reaches(self, query: str, latest: int) -> None:
        record = self._by_id(query)
        known = latest if record.latest is None else max(latest, record.latest)
        self.queries[record.query.name] = replace(record, latest=known)

    def _branches_reach(self, record: QueryRecord, clocks: tuple[int | None, ...]) -> None:
        """A branch whose input has ended before stays where its clock was then."""
        known = record.reached or (None,) * len(clocks)
        reached = tuple(old if new is None else new for old, new in zip(known, clocks, strict=True))
        self.queries[record.query.name] = replace(record, reached=reached)

    def _by_id(self, query: str) -> QueryRecord:
        return self.queries[self._names[query]]

    # ------------------------------------------------------------ the manifest

    def manifest(self, shards: int) -> Manifest:
        """The successor of the last commit."""
        is_kept = any(record.is_running for record in self.queries.values()) or self._undeclared
        chunks = {number: refs for number, refs in self._files.items() if refs and is_kept}
        tables = {**self._known_tables, **{name: r.to_state() for name, r in self.tables.items()}}
        held = {file for table in tables.values() for file in table.options["history"]}
        deltas = tuple(ref for ref in self._deltas if ref.name in held or self._is_needed(ref))
        answers = retention.last_answers(self.last.chunks.get(ANSWERS, ()), self._outgoing, self._answering)
        own = {DRIVER: deltas, KEPT: tuple(self._kept), ANSWERS: answers, KEYS: tuple(self._keys)}
        return self.last.successor(
            shards=shards,
            streams={**self._known_streams, **{name: r.to_state() for name, r in self.streams.items()}},
            tables=tables,
            queries={**self._undeclared, **{r.query.name: r.to_state() for r in self.queries.values()}},
            chunks={**chunks, **{key: refs for key, refs in own.items() if refs}},
            outbox=tuple(self._entries()),
            decisions={
                **self.decisions,
                **self.common.decisions(self.shared_states, self.shares_elsewhere, self.too_large),
            },
        )

    @property
    def _answering(self) -> set[str]:
        """The queries whose last answer can be asked for."""
        known = {state.options["id"] for state in self._undeclared.values()}
        return known | {r.id for r in self.queries.values() if r.is_running and r.query.plan.is_by_extent}

    @property
    def known(self) -> set[str]:
        """The ids of all queries there are, declared or not."""
        return {state.options["id"] for state in self._undeclared.values()} | set(self._names)

    @property
    def _known_streams(self) -> dict[str, StreamState]:
        return {name: s for name, s in self.last.streams.items() if name not in self.dropped_streams}

    @property
    def _known_tables(self) -> dict[str, StreamState]:
        return {name: t for name, t in self.last.tables.items() if name not in self.dropped_tables}

    @property
    def _undeclared(self) -> dict[str, QueryState]:
        """Queries that the last commit knows and nobody has declared yet: they keep all they have."""
        gone = {*self.dropped, *self.queries}
        return {name: state for name, state in self.last.queries.items() if name not in gone}

    @property
    def shares_elsewhere(self) -> set[str]:
        """The synopses of queries that nobody has declared yet."""
        shares = [each for state in self._undeclared.values() for each in state.options.get("shares", ())]
        return set(labels_of(shares))

    def _is_needed(self, delta: ChunkRef) -> bool:
        """Whether a running query has still to take it in; an undeclared one may read any stream."""
        if any(self._is_waited_for(name, delta) for name in self.common.shared_states):
            return True
        return any(
            self._awaits(record, delta) for record in self.queries.values() if record.is_running
        ) or any(
            _commit(delta) > state.options["absorbed"]
            for state in self._undeclared.values()
            if state.status == "running"
        )

    def _entries(self) -> Iterable[OutboxEntry]:
        wanted = {record.id for record in self.queries.values() if record.is_running}
        sections = late_section, malformed_rows.malformed_section
        wanted |= {of(name) for name in self.streams for of in sections} | self.archived
        gone = {state.options["id"] for name, state in self.last.queries.items() if name in self.dropped}
        gone |= {of(name) for name in self.dropped_streams for of in sections}
        gone |= {s for e in self.last.outbox for s in e.pending if ingest.is_archived(s)} - self.archived
        for entry in self.last.outbox:
            left = entry.delivered(self.delivered.get(entry.ref.name, set()) | gone)
            if left is not None:
                yield left
        for ref in self._outgoing:
            found = [each for section in ref.operators for each in asking(ref, section)]
            known = dict.fromkeys([*found, *map(ingest.archived_section, found)])
            pending = tuple(section for section in known if section in wanted)
            if pending:
                yield OutboxEntry(self.last.number + 1, ref, pending)

    @property
    def _outgoing(self) -> list[ChunkRef]:
        """The outbox files of this epoch; each knows who else reads its sections."""
        return [replace(ref, metadata=with_readers(ref, self._readers)) for ref in self._outbox]


def _is_due(work: QueryWork) -> bool:
    return work.query.unit.is_due(work.clock)


def _commit(delta: ChunkRef) -> int:
    return int(delta.metadata["commit"])
