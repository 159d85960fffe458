"""The next commit, being made: an epoch in steps. Nothing here is visible before the manifest is.

take      what the ingest job reports: counts, greatest values, files, faults
promise, tick, seal    what else moves a stream
due       which queries the new clocks make due
close     what the close job reports: state files, answers, faults
manifest  all of it, as the successor of the last commit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from windrow.engine.records import QueryRecord, StreamRecord
from windrow.errors import StateError
from windrow.kernels.intake import Intake, Known
from windrow.spark.tasks.close import CloseTask, Work
from windrow.spark.tasks.reports import late_section
from windrow.state.entries import OutboxEntry
from windrow.state.names import DRIVER

if TYPE_CHECKING:
    from windrow.spark.tasks.place import Place
    from windrow.spark.tasks.reports import Closed, Fault, Ingested
    from windrow.state.entries import QueryState, StreamState
    from windrow.state.manifest import Manifest
    from windrow.state.refs import ChunkRef

#: a query that is not due takes in what is new when this many files wait for it
MOST_WAITING = 32


@dataclass
class Draft:
    """What the next manifest will say, given the last one and what has happened since."""

    last: Manifest
    streams: dict[str, StreamRecord]
    queries: dict[str, QueryRecord]
    #: queries that were dropped: whatever else the last commit knows stays, declared or not
    dropped: frozenset[str] = frozenset()
    dropped_streams: frozenset[str] = frozenset()
    #: which sections of which outbox files have been delivered since the last commit
    delivered: Mapping[str, set[str]] = field(default_factory=dict)
    decisions: dict[str, Any] = field(default_factory=dict)
    _deltas: list[ChunkRef] = field(default_factory=list)
    _files: dict[int, tuple[ChunkRef, ...]] = field(default_factory=dict)
    _outbox: list[ChunkRef] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = dict(self.streams)
        self._deltas = list(self.last.chunks.get(DRIVER, ()))
        self._files = {number: refs for number, refs in self.last.chunks.items() if number != DRIVER}

    # ------------------------------------------------------------ streams

    def take(self, name: str, reports: Iterable[Ingested], now: int) -> None:
        """What the ingest job says of a stream's new rows."""
        found = list(reports)
        for report in found:
            if report.refusal is not None:
                raise report.refusal
        record = self.streams[name]
        pieces = [report.observed for report in found if report.observed is not None]
        known = Intake(record.stream).learn(record.known, pieces, now) if pieces else record.known
        moments = [t for piece in pieces for t in piece.batch.wattr if t is not None]
        greatest = max([*moments, *([record.greatest] if record.greatest is not None else [])], default=None)
        late = record.late + sum(piece.late for piece in pieces)
        self.streams[name] = replace(record, known=known, greatest=greatest, late=late)
        self._deltas += [report.chunk for report in found if report.chunk is not None]
        self._outbox += [report.outbox for report in found if report.outbox is not None]
        for report in found:
            self._fault(report.faults)
            for query, latest in report.latest.items():
                self._reaches(query, latest)

    def promise(self, name: str, progress: int, where: Mapping[str, Any] | None, now: int) -> None:
        """Somebody outside says that no more rows come below `progress`."""
        record = self.streams[name]
        known = Intake(record.stream).promise(record.known, progress, where, now)
        self.streams[name] = replace(record, known=known)

    def tick(self, now: int) -> None:
        """Wall-clock time passes: idle sources may be left out."""
        for name, record in self.streams.items():
            if not record.known.sealed:
                self.streams[name] = replace(record, known=Intake(record.stream).tick(record.known, now))

    def seal(self, name: str) -> None:
        """No more rows of a stream, for ever."""
        record = self.streams[name]
        for query in self.queries.values():
            if name in query.streams:
                reached = query.bundle.unit.reached(self._known(self.streams, query))
                if reached is not None:
                    self._reaches(query.id, reached)
        self.streams[name] = replace(record, known=replace(record.known, sealed=True))

    @property
    def moved(self) -> bool:
        """Whether anything is known that was not known at the last commit."""
        return self.streams != self.before

    # ------------------------------------------------------------ queries

    def due(self) -> list[Work]:
        """The queries that have something to answer, or too much to take in."""
        found = [self._work(record) for record in self.queries.values() if record.is_running]
        return [work for work in found if _is_due(work) or len(work.deltas) > MOST_WAITING]

    def _work(self, record: QueryRecord) -> Work:
        before, now = self._known(self.before, record), self._known(self.streams, record)
        clock = record.bundle.unit.clock(before, now, record.latest)
        waiting = [ref for ref in self._deltas if _reads(record, ref) and _commit(ref) > record.absorbed]
        return Work(record.bundle, clock, tuple(waiting), record.latest, record.complete_from)

    @staticmethod
    def _known(streams: Mapping[str, StreamRecord], query: QueryRecord) -> dict[str, Known]:
        return {name: streams[name].known for name in query.streams}

    def tasks(self, work: list[Work], place: Place) -> list[CloseTask]:
        """The stages of the close job."""
        depth = max(each.query.unit.stages for each in work)
        alive = frozenset(record.id for record in self.queries.values() if record.is_running)
        alive |= {state.options["id"] for state in self._undeclared.values()}
        return [CloseTask(stage, place, tuple(work), self._files, alive) for stage in range(depth)]

    def close(self, work: list[Work], reports: Iterable[Closed]) -> None:
        """What the close job says."""
        for each in work:
            record = self._by_id(each.query.name)
            self.queries[record.query.name] = replace(record, absorbed=self.last.number + 1)
        for report in reports:
            self._files[report.shard] = report.files
            self._outbox += [report.outbox] if report.outbox is not None else []
            self._fault(report.faults)
            for query, rows in report.rows.items():
                record = self._by_id(query)
                self.queries[record.query.name] = replace(record, rows=record.rows + rows)

    def _fault(self, faults: Mapping[str, Fault]) -> None:
        for query, fault in faults.items():
            if isinstance(fault.error, StateError):  # a full disk or a damaged file is not the query's fault
                raise fault.error
            record = self._by_id(query)
            if record.is_running:
                error = {"code": fault.error.code, "message": fault.error.message, "hint": fault.error.hint}
                self.queries[record.query.name] = record.failed({**error, "trace": fault.trace})

    def _reaches(self, query: str, latest: int) -> None:
        record = self._by_id(query)
        known = latest if record.latest is None else max(latest, record.latest)
        self.queries[record.query.name] = replace(record, latest=known)

    def _by_id(self, query: str) -> QueryRecord:
        return next(record for record in self.queries.values() if record.id == query)

    # ------------------------------------------------------------ the manifest

    def manifest(self, shards: int) -> Manifest:
        """The successor of the last commit."""
        is_kept = any(record.is_running for record in self.queries.values()) or self._undeclared
        chunks = {number: refs for number, refs in self._files.items() if refs and is_kept}
        deltas = tuple(ref for ref in self._deltas if self._is_needed(ref))
        return self.last.successor(
            shards=shards,
            streams={**self._known_streams, **{name: r.to_state() for name, r in self.streams.items()}},
            queries={**self._undeclared, **{r.query.name: r.to_state() for r in self.queries.values()}},
            chunks={**chunks, **({DRIVER: deltas} if deltas else {})},
            outbox=tuple(self._entries()),
            decisions=self.decisions,
        )

    @property
    def _known_streams(self) -> dict[str, StreamState]:
        return {name: s for name, s in self.last.streams.items() if name not in self.dropped_streams}

    @property
    def _undeclared(self) -> dict[str, QueryState]:
        """Queries that the last commit knows and nobody has declared yet: they keep all they have."""
        gone = {*self.dropped, *self.queries}
        return {name: state for name, state in self.last.queries.items() if name not in gone}

    def _is_needed(self, delta: ChunkRef) -> bool:
        """Whether a running query has still to take it in; an undeclared one may read any stream."""
        return any(
            _reads(record, delta) and _commit(delta) > record.absorbed
            for record in self.queries.values()
            if record.is_running
        ) or any(
            _commit(delta) > state.options["absorbed"]
            for state in self._undeclared.values()
            if state.status == "running"
        )

    def _entries(self) -> Iterable[OutboxEntry]:
        wanted = {record.id for record in self.queries.values() if record.is_running}
        wanted |= {late_section(name) for name in self.streams}
        gone = {state.options["id"] for name, state in self.last.queries.items() if name in self.dropped}
        gone |= {late_section(name) for name in self.dropped_streams}
        for entry in self.last.outbox:
            left = entry.delivered(self.delivered.get(entry.ref.name, set()) | gone)
            if left is not None:
                yield left
        for ref in self._outbox:
            pending = tuple(section for section in ref.operators if section in wanted)
            if pending:
                yield OutboxEntry(self.last.number + 1, ref, pending)


def _is_due(work: Work) -> bool:
    return work.query.unit.is_due(work.clock)


def _reads(record: QueryRecord, delta: ChunkRef) -> bool:
    return delta.metadata["stream"] in record.streams


def _commit(delta: ChunkRef) -> int:
    return int(delta.metadata["commit"])
