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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from windrow.algebra.catalog import Stream
from windrow.engine import load_shedding, refresh_scheduler, retention, statistics, tables as table_records
from windrow.engine.archives import Archiving
from windrow.engine.output.outbox import asking, with_followers, with_readers
from windrow.engine.records import QueryRecord, Registered, StreamRecord
from windrow.engine.sharing import arrangement, common_subplans
from windrow.engine.sharing.shared_state import Common, labels_of
from windrow.errors import StateError
from windrow.execution import delta_file, ingest, malformed_rows, relational
from windrow.execution.close import CloseTask
from windrow.execution.reports import Closed, Fault, Ingested, late_section
from windrow.execution.shared import SharedWork
from windrow.kernels.clock import PaneClock
from windrow.kernels.intake import Intake, Known
from windrow.kernels.relational.tables import Values, changes_at, check_order, promised
from windrow.kernels.shared.shared_state import SharedEpoch, SharedState, WindowRequest
from windrow.language.catalog import StandingQuery
from windrow.physical import PhysicalPlan
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.state.manifest import ChunkRef, Manifest, OutboxEntry, QueryState
from windrow.state.names import ANSWERS, DRIVER, KEPT, KEYS
from windrow.windows.domain import INFINITY, Instant, check_instant

#: a query that is not due takes in what is new when this many files wait for it
MOST_WAITING = 32
#: a shared state with more cells (intervals × groups) in a shard than these, for each of its queries, is
#: given up
MOST_CELLS = 1 << 18


class Between(Registered, Protocol):
    """An engine between two epochs, to whoever changes its queries then, by a commit in between."""

    common: Common
    observed: statistics.ObservedStatistics
    shares: bool
    archives: Archiving

    def would_run(self, query: StandingQuery) -> PhysicalPlan: ...
    def draft(self) -> Draft: ...
    def rework(self, draft: Draft, work: list[relational.QueryWork]) -> list[Closed]: ...
    def commit_draft(self, draft: Draft) -> None: ...


@dataclass
class Draft:
    """What the next manifest will say, given the last one and what has happened since."""

    last: Manifest
    #: the same without what was dropped: all else it has stays, declared or not
    known: Manifest
    place: delta_file.WriteTarget
    streams: dict[str, StreamRecord]
    tables: dict[str, table_records.TableRecord]
    queries: dict[str, QueryRecord]
    #: which sections of which outbox files have been delivered since the last commit
    delivered: Mapping[str, set[str]]
    decisions: dict[str, Any]
    #: the sections of outbox files that archives wait for
    archived: frozenset[str]
    #: the synopses that queries share
    common: Common

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
        #: seconds that tasks have spent on each query; and on each level of its windows, with the rows given
        self.spent: Counter[str] = Counter()
        self.levels: dict[tuple[str, int], tuple[float, int]] = {}
        self._outbox: list[ChunkRef] = []
        chunks = self.last.chunks
        self._deltas = list(chunks.get(DRIVER, ()))
        self._files = {number: refs for number, refs in chunks.items() if number >= 0}
        streams, kept, keys = self.known.streams, chunks.get(KEPT, ()), chunks.get(KEYS, ())
        self._kept = [ref for ref in kept if ref.metadata["stream"] in streams]
        self._keys = [ref for ref in keys if ref.metadata["stream"] in streams]

    @property
    def running(self) -> list[QueryRecord]:
        return [record for record in self.queries.values() if record.is_running]

    # ------------------------------------------------------------ streams

    def take(self, name: str, found: Sequence[Ingested], now: int) -> None:
        """What the ingest job says of a stream's new rows."""
        for report in found:
            if report.refusal is not None:
                raise report.refusal
        record = self.streams[name]
        pieces = [report.observed for report in found if report.observed is not None]
        known = record.known
        if pieces:
            known = Intake(record.stream).learn(known, pieces, now, now - record.unwatched)
        moments = [t for piece in pieces for t in piece.batch.wattr if t is not None]
        self.streams[name] = replace(
            record,
            known=known,
            greatest=max(moments + [t for t in [record.greatest] if t is not None], default=None),
            late=record.late + sum(piece.late for piece in pieces),
            shed=record.shed + sum(report.shed for report in found),
            malformed=record.malformed + sum(report.malformed for report in found),
        )
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
        levels: dict[str, tuple[float, ...]] = {}
        for (query, _), (seconds, _) in sorted(self.levels.items()):
            levels[query] = (*levels.get(query, ()), seconds)
        return load_shedding.Effort(rows, shed, on_rows, on_answers, by_query=self.spent, by_level=levels)

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

    def remember(self, name: str, keys: pa.Table) -> None:
        """What a source has read that no position tells."""
        if keys.num_rows:
            self._keys = table_records.add_keys(self.place, name, keys, self._keys)

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
            if {*query.streams, *query.tables}.isdisjoint(names):
                continue
            unit = query.bundle.unit
            if isinstance(unit, UnionUnit):  # a branch whose input has ended before stays where it was then
                clocks = unit.branch_clocks(*self._inputs(query))
                known = query.reached or (None,) * len(clocks)
                reached = tuple(old if new is None else new for old, new in zip(known, clocks, strict=True))
                self.amend(query.id, reached=reached)
            elif (latest := unit.reached(*self._inputs(query))) is not None:
                self._reaches(query.id, latest)
        for name in names:
            if name in self.tables:
                self.tables[name] = replace(self.tables[name], progress=INFINITY)
            else:
                record = self.streams[name]
                self.streams[name] = replace(record, known=replace(record.known, sealed=True))

    def tidy(self) -> None:
        """Forget kept rows that are too old, and put small files of them together."""
        for name, record in self.streams.items():
            self.streams[name], self._kept = retention.tidied(record, self._kept, self.place)

    @property
    def moved(self) -> bool:
        """Whether anything is known that was not known at the last commit, but for the time that passed."""
        now, before = (
            {name: replace(record, unwatched=0) for name, record in streams.items()}
            for streams in (self.streams, self.before)
        )
        return now != before or self.tables != self.tables_before

    # ------------------------------------------------------------ tables

    def change(self, update: table_records.TableUpdate) -> None:
        """A table changes: what is wrong with it is told before anything is written."""
        name, record = update.table, self.tables[update.table]
        assert name not in self.changed, "one change of a table in a commit"
        contents = record.contents()
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
        record = self._written(record, changes_at(record.table.schema, at, gone, new))
        self.changed[name] = gone, new
        self.tables[name] = replace(record, last=at, rows=record.rows + len(new) - len(gone))

    def _written(self, record: table_records.TableRecord, changes: pl.DataFrame) -> table_records.TableRecord:
        """The changes on the disk; a long history is added up first."""
        parts = self._parts(record)
        if table_records.is_long(parts):
            floor = min((r.known.progress.progress for r in self.streams.values()), default=-INFINITY)
            parts = [table_records.add_up(self.place, record.table, record.contents(), parts, floor)]
            self._deltas += parts
        new = table_records.write_changes(self.place, record.table, changes)
        self._deltas.append(new)
        return replace(record, history=tuple(ref.name for ref in (*parts, new)))

    def _parts(self, record: table_records.TableRecord) -> list[ChunkRef]:
        return table_records.parts_of(record.history, self._deltas)

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
                work = self.work_of(record)
                moved = self.work_of(replace(record, held=None)).clock
                groups.append(refresh_scheduler.group_by_itself(record, moved, work.clock))
        return refreshes.due(groups, seconds)

    def due(self, chosen: Collection[str] = ()) -> list[relational.QueryWork]:
        """The queries that have something to answer, or too much to take in."""
        found = [self._monitored(record, chosen) for record in self._own]
        return [work for work in found if work is not None]

    def _monitored(self, record: QueryRecord, chosen: Collection[str]) -> relational.QueryWork | None:
        """What a query has to do now. One that does not ask for every window tells of the newest one only,
        and is held back when it is not its turn."""
        work = self.work_of(record)
        forced = work.seed is not None or len(work.deltas) > MOST_WAITING
        if record.query.every is None:
            return work if work.query.unit.is_due(work.clock) or forced else None
        if record.id in chosen or forced:
            greatest = {name: self.streams[name].greatest for name in record.streams}
            end = refresh_scheduler.newest(record, work.clock.now, greatest) if record.id in chosen else None
            return replace(work, drops=refresh_scheduler.Without(end), reports=(refresh_scheduler.only(end),))
        if work.query.unit.is_due(work.clock):
            self.amend(record.id, held=work.clock.before)
        return None

    @property
    def _own(self) -> list[QueryRecord]:
        return [record for record in self.running if not record.shares]

    def _running(self, shared_state: str) -> list[QueryRecord]:
        members = map(self.by_id, self.common.members(shared_state))
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
            found_out = arrangement.led(asking, self.common, clock.before)
            self._readers |= found_out.readers
            due = tuple(asker for asker in found_out.askers if asker.is_due(clock))
            waiting = tuple(ref for ref in self._deltas if self._is_waited_for(name, ref))
            if due or len(waiting) > MOST_WAITING:
                found.append(SharedWork(SharedEpoch(shared_state, clock, due, self.common.forms), waiting))
        return found

    def shared_states_of(self, stream: str) -> tuple[SharedState, ...]:
        """What is kept of a stream for running queries that share it."""
        found = [self.common.shared_state(name) for name in self.common.shared_states if self._is_used(name)]
        return tuple(shared_state for shared_state in found if shared_state.stream.name == stream)

    def _is_used(self, shared_state: str) -> bool:
        return any(self.by_id(query).is_running for query in self.common.members(shared_state))

    def without_followers(self, work: SharedWork, failed: Collection[str]) -> SharedWork:
        """The same, where those who follow some queries ask by themselves."""
        askers: list[WindowRequest] = []
        for asker in work.turn.askers:
            askers.append(replace(asker, followers=()) if asker.query in failed else asker)
            for follower in asker.followers if asker.query in failed else ():
                begin = self.by_id(follower.query).complete_from
                askers.append(replace(self.common.asker(follower.query), complete_from=begin))
        return replace(work, turn=replace(work.turn, askers=tuple(askers)))

    def _is_waited_for(self, shared_state: str, delta: ChunkRef) -> bool:
        stream = self.common.shared_state(shared_state).stream.name
        return _commit(delta) > self.shared_states[shared_state] and delta.metadata.get("stream") == stream

    def work_of(self, record: QueryRecord) -> relational.QueryWork:
        before, held = record.inputs(self.before, self.tables_before)
        now, now_held = self._inputs(record)
        clock = record.bundle.unit.clock(before, now, record.reached or record.latest, held, now_held)
        if record.held is not None:
            clock = replace(clock, before=record.held)  # type: ignore[arg-type]
        waiting = [ref for ref in self._deltas if self._awaits(record, ref)]
        tables = [self.tables[name] for name in record.tables]
        whole = [ref for table in tables for ref in self._parts(table)] if record.is_fresh else []
        later = [each for each in tables if each.changed > table_records.BEGINNING]
        changed = {each.table.name: int(each.changed) for each in later}
        known = record.latest, record.complete_from, changed
        return relational.QueryWork(record.bundle, clock, (*whole, *waiting), *known, seed=record.seed)

    def _inputs(self, query: QueryRecord) -> tuple[dict[str, Known], dict[str, Instant]]:
        return query.inputs(self.streams, self.tables)

    @staticmethod
    def _awaits(record: QueryRecord, delta: ChunkRef) -> bool:
        """Whether a query has still to take a file in. One that has never run begins with whole tables."""
        if _commit(delta) <= record.absorbed or record.shares:
            return False
        table = delta.metadata.get("table")
        if table is not None:
            return table in record.tables and not record.is_fresh
        return delta.metadata.get("stream") in record.streams

    def tasks(self, work: Sequence[relational.QueryWork], shared: Sequence[SharedWork]) -> list[CloseTask]:
        """The stages of the close job."""
        depth = max([each.query.unit.stages for each in work], default=1)
        alive = {name for record in self.running for name in record.bundle.places}
        alive |= {*self.undeclared_ids, *self.common.shared_states}
        alive |= {self.common.kept[name].shared_state for name in self.shares_elsewhere}
        for options in (state.options for state in self._undeclared.values()):
            if "member" in options:
                alive |= {*common_subplans.Membership.from_json(options["member"]).names}
            if "seed" in options:
                alive.add(options["seed"]["shared_state"])
        given = self._files, frozenset(alive), tuple(shared)
        return [CloseTask(stage, self.place, tuple(work), *given) for stage in range(depth)]

    def close(
        self, work: list[relational.QueryWork], shared: list[SharedWork], reports: Iterable[Closed]
    ) -> None:
        """What the close job says."""
        moved = [each.query.name for each in work]
        for common in shared:
            self.shared_states[common.name] = self.last.number + 1
            moved += self.common.members(common.name)
        for query in moved:
            self.amend(query, absorbed=self.last.number + 1, is_fresh=False, seed=None, held=None)
        cells: Counter[str] = Counter()
        followers = {a.query: a.followers for common in shared for a in common.turn.askers if a.followers}
        for report in reports:
            self._files[report.shard] = report.files
            cells |= Counter(report.cells)
            self.spent.update(report.seconds)
            for query, seconds in report.seconds.items():
                before, given = self.levels.get((query, report.stage), (0.0, 0))
                given += report.passed.get(query, report.rows.get(query, 0))
                self.levels[query, report.stage] = before + seconds, given
            if report.outbox is not None:
                self._outbox.append(with_followers(report.outbox, followers, report.rows))
            self._fault(report.faults)
            for query, rows in report.rows.items():
                for each in (query, *self._readers.get(query, ())):
                    self.amend(each, rows=self.by_id(each).rows + rows)
        most = {name: MOST_CELLS * len(self.common.members(name)) for name in cells}
        self.too_large = [name for name, count in cells.items() if count > most[name]]
        for name in self.too_large:
            for query, seed in self.common.seeds(name).items():
                self.amend(query, shares=(), seed=seed)

    def measured(
        self, work: list[relational.QueryWork], shared: list[SharedWork]
    ) -> list[tuple[str, int, int, float]]:
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
                record = self.by_id(query)
                if record.is_running:
                    error = {"code": fault.error.code, "message": fault.error.message}
                    more = {"hint": fault.error.hint, "trace": fault.trace}
                    self.queries[record.query.name] = record.failed({**error, **more})

    def _reaches(self, query: str, latest: int) -> None:
        before = self.by_id(query).latest
        self.amend(query, latest=latest if before is None else max(latest, before))

    def amend(self, query: str, **known: Any) -> None:
        """A query, by its id, is not what it was."""
        self.queries[self._names[query]] = replace(self.by_id(query), **known)

    def by_id(self, query: str) -> QueryRecord:
        return self.queries[self._names[query]]

    # ------------------------------------------------------------ the manifest

    def manifest(self) -> Manifest:
        """The successor of the last commit."""
        is_kept = self.running or self._undeclared
        chunks = {number: refs for number, refs in self._files.items() if refs and is_kept}
        tables = {**self.known.tables, **{name: r.to_state() for name, r in self.tables.items()}}
        held = {file for table in tables.values() for file in table.options["history"]}
        deltas = tuple(ref for ref in self._deltas if ref.name in held or self._is_needed(ref))
        answering = {record.id for record in self.running if record.query.plan.is_by_extent}
        before, answering = self.last.chunks.get(ANSWERS, ()), answering | self.undeclared_ids
        answers = retention.last_answers(before, self._outgoing, answering)
        own = {DRIVER: deltas, KEPT: tuple(self._kept), ANSWERS: answers, KEYS: tuple(self._keys)}
        common = self.common.decisions(self.shared_states, self.shares_elsewhere, self.too_large)
        return self.last.successor(
            shards=self.place.shards,
            streams={**self.known.streams, **{name: r.to_state() for name, r in self.streams.items()}},
            tables=tables,
            queries={**self._undeclared, **{r.query.name: r.to_state() for r in self.queries.values()}},
            chunks={**chunks, **{key: refs for key, refs in own.items() if refs}},
            outbox=tuple(self._entries()),
            decisions={**self.decisions, **common},
        )

    @property
    def _undeclared(self) -> dict[str, QueryState]:
        """Queries that the last commit knows and nobody has declared yet: they keep all they have."""
        return {name: state for name, state in self.known.queries.items() if name not in self.queries}

    @property
    def undeclared_ids(self) -> set[str]:
        """Their ids: what was decided for them stands."""
        return {state.options["id"] for state in self._undeclared.values()}

    @property
    def ids(self) -> set[str]:
        """The ids of all queries there are, declared or not."""
        return self.undeclared_ids | self._names.keys()

    @property
    def shares_elsewhere(self) -> set[str]:
        """The synopses of queries that nobody has declared yet."""
        shares = [each for state in self._undeclared.values() for each in state.options.get("shares", ())]
        return set(labels_of(shares))

    def _is_needed(self, delta: ChunkRef) -> bool:
        """Whether a running query has still to take it in; an undeclared one may read any stream."""
        if any(self._is_waited_for(name, delta) for name in self.common.shared_states):
            return True
        if any(self._awaits(record, delta) for record in self.queries.values() if record.is_running):
            return True
        away = [state for state in self._undeclared.values() if state.status == "running"]
        return any(_commit(delta) > state.options["absorbed"] for state in away)

    def _entries(self) -> Iterable[OutboxEntry]:
        wanted = {record.id for record in self.running}
        sections = late_section, malformed_rows.malformed_section
        wanted |= {of(name) for name in self.streams for of in sections} | self.archived
        queries, streams = self.last.queries, self.last.streams
        gone = {queries[name].options["id"] for name in queries.keys() - self.known.queries.keys()}
        gone |= {of(name) for name in streams.keys() - self.known.streams.keys() for of in sections}
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


def _commit(delta: ChunkRef) -> int:
    return int(delta.metadata["commit"])
