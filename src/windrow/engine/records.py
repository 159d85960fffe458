"""What a manifest remembers of streams and queries, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from windrow.algebra import Field, Late, Schema, Stream, Table
from windrow.algebra.canonical import canonical_text, thing_of
from windrow.engine.sharing.common_subplans import Membership, as_member
from windrow.errors import QueryError, StateError
from windrow.execution.bundle import Bundle
from windrow.execution.shared import Seed
from windrow.kernels.intake import Intake, Known
from windrow.language import catalog, printer
from windrow.language.binder.constants import written_type
from windrow.physical import PhysicalPlan, identity, planner
from windrow.sinks import Sink
from windrow.spark.sources import Source, is_bounded
from windrow.state.manifest import Manifest, QueryState, SourceState, StreamState
from windrow.state.store import Store
from windrow.windows.domain import INFINITY, Instant, read_instant, write_instant
from windrow.windows.progress import Progress

if TYPE_CHECKING:
    from windrow.engine.tables import TableRecord


@dataclass(frozen=True)
class StreamRecord:
    """A stream as it runs: how far it is, and where its rows come from."""

    stream: Stream
    known: Known
    late: int = 0
    #: of the accepted rows, those that no query needed under overload
    shed: int = 0
    #: texts of the source that were no rows, and were left out
    malformed: int = 0
    #: the greatest value of WATTR that was ever seen
    greatest: int | None = None
    read: SourceState = field(default_factory=SourceState)
    source: Source | None = None
    #: all rows from here on are kept; None: none are
    kept_from: Instant | None = None
    #: microseconds in which nobody could tell whether rows were there: no source was idle then
    unwatched: int = 0

    @classmethod
    def new(cls, stream: Stream) -> StreamRecord:
        """A stream nobody has seen a row of."""
        return cls(stream, Intake(stream).start(), kept_from=None if stream.keep is None else -INFINITY)

    @property
    def is_live(self) -> bool:
        """Whether its rows never come to an end; as long as nobody knows where they come from, they may."""
        if self.source is not None:
            return not self.source.is_bounded
        return self.stream.source is not None and not is_bounded(self.stream.source)

    def to_state(self) -> StreamState:
        known = self.known
        return StreamState(
            progress=known.progress.to_json(),
            accepted=known.accepted,
            late=self.late,
            shed=self.shed,
            rows_seen=known.accepted + self.late,
            sealed=known.sealed,
            source=self.read,
            options={
                "declaration": declaration(self.stream),
                "per": known.per,
                "last_arrival": write_instant(known.last_arrival),
                "greatest": self.greatest,
                **({} if self.kept_from is None else {"kept_from": write_instant(self.kept_from)}),
                **({"unwatched": self.unwatched} if self.unwatched else {}),
                **({"also": {a: p.to_json() for a, p in known.also.items()}} if known.also else {}),
                **({"malformed": self.malformed} if self.malformed else {}),
            },
        )

    @classmethod
    def from_state(cls, stream: Stream, state: StreamState | None, place: str) -> StreamRecord:
        """As a manifest remembers it, if it does; the declaration must be the same."""
        if state is None:
            return cls.new(stream)
        stored = state.options["declaration"]
        if stored != declaration(stream):
            now = declaration(stream)
            what = _PARTS[next(key for key in {**now, **stored} if now.get(key) != stored.get(key))]
            raise StateError(
                f"stream `{stream.name}` was declared otherwise when {place} was written: its {what} changed",
                code="stream-changed",
                hint="declare it as before, or use a new state directory and read the sources again",
            )
        known = Known(
            Progress.from_json(state.progress),
            state.options["per"],
            state.accepted,
            read_instant(state.options["last_arrival"]),
            state.sealed,
            {name: Progress.from_json(each) for name, each in state.options.get("also", {}).items()},
        )
        greatest: int | None = state.options["greatest"]
        kept_from: Instant | None = None
        if stream.keep is not None and "kept_from" in state.options:
            kept_from = read_instant(state.options["kept_from"])
        elif stream.keep is not None:  # only from now on: after all rows that were seen
            kept_from = -INFINITY if greatest is None else greatest + 1
        return cls(
            stream,
            known,
            state.late,
            state.shed,
            state.options.get("malformed", 0),
            greatest,
            state.source,
            kept_from=kept_from,
            unwatched=state.options.get("unwatched", 0),
        )


#: what the parts of a declaration are called
_PARTS = {
    "columns": "columns",
    "wattr": "WATTR",
    "progress": "policy (SLACK, ORDERED, PUNCTUATED)",
    "late": "word for late rows (LATE)",
    "also": "other windowing attributes (ALSO)",
    "resolution": "RESOLUTION",
    "forms": "forms of columns (FORMAT)",
}


def declaration(stream: Stream) -> dict[str, Any]:
    """What of a stream's declaration state depends on. Where rows come from is the source's business."""
    return {
        "columns": [[field.name, str(field.type)] for field in stream.schema],
        "wattr": stream.wattr,
        "progress": canonical_text(stream.progress),
        "late": stream.late.value,
        **({"also": [[a, canonical_text(policy)] for a, policy in stream.also]} if stream.also else {}),
        **({"resolution": str(q)} if (q := stream.domain.resolution) is not None else {}),
        **({"forms": [list(form) for form in stream.forms]} if stream.forms else {}),
    }


def stream_of(name: str, state: StreamState) -> Stream:
    """A stream as far as state depends on it, by what `declaration` wrote."""
    stored = state.options["declaration"]
    return Stream(
        name,
        schema_of(stored["columns"]),
        stored["wattr"],
        thing_of(stored["progress"]),
        Late(stored["late"]),
        forms=tuple((column, form) for column, form in stored.get("forms", ())),
        also=tuple((attribute, thing_of(policy)) for attribute, policy in stored.get("also", ())),
    )


def schema_of(columns: Iterable[Sequence[str]]) -> Schema:
    """Columns as declarations are written."""
    return Schema(tuple(Field(name, written_type(kind)) for name, kind in columns))


@dataclass(frozen=True)
class QueryRecord:
    """A standing query as it runs. `id` is its name and the commit it was registered with: a query that is
    dropped and created again is another one."""

    query: catalog.StandingQuery
    #: how it runs
    physical: PhysicalPlan
    bundle: Bundle
    text: str
    #: deltas up to this commit are taken in
    absorbed: int
    latest: int | None = None
    #: of a union of streams, how far the clock of each branch had come before its input ended
    reached: tuple[int | None, ...] = ()
    rows: int = 0
    complete_from: int | None = None
    status: str = "running"
    error: dict[str, Any] | None = None
    sink: Sink | None = None
    #: it has not run yet: it begins with all that its tables hold
    is_fresh: bool = True
    #: the synopses that its needs are taken from; none if it has a state of its own
    shares: tuple[str, ...] = ()
    #: what it takes along from a shared state that has become too large, until it has a state of its own
    seed: Seed | None = None
    #: where its clock stands, if it is held back until its next refresh
    held: Instant | None = None
    #: its place among queries that see the same rows; None if it is by itself
    member: Membership | None = None
    #: its plan as a manifest records it
    recorded: identity.RecordedPlan | None = None

    @property
    def id(self) -> str:
        return self.bundle.name

    @property
    def streams(self) -> Mapping[str, Stream]:
        return self.bundle.unit.streams

    @property
    def tables(self) -> Mapping[str, Table]:
        return self.bundle.unit.tables

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    @property
    def is_exact(self) -> bool:
        """Whether it answers every window that ends."""
        return self.query.every is None and self.query.max_gap is None

    def inputs(
        self, streams: Mapping[str, StreamRecord], tables: Mapping[str, TableRecord]
    ) -> tuple[dict[str, Known], dict[str, Instant]]:
        """What is known of its streams, and how far its tables are."""
        known = {name: streams[name].known for name in self.streams}
        return known, {name: tables[name].progress for name in self.tables}

    def clock(self, streams: Mapping[str, StreamRecord], tables: Mapping[str, TableRecord]) -> Instant:
        """How far its answers are."""
        return self.bundle.unit.progress(*self.inputs(streams, tables))

    def failed(self, error: dict[str, Any]) -> QueryRecord:
        """The same, stopped for good."""
        return replace(self, status="failed", error=error, shares=(), seed=None)

    @property
    def plan(self) -> identity.RecordedPlan:
        """Its plan as a manifest records it."""
        return self.recorded or identity.RecordedPlan.of(self.physical, self.bundle.unit)

    @property
    def running(self) -> PhysicalPlan:
        """How it runs, as it is among other queries."""
        return self.physical.running(self.bundle.unit)

    def carrying(self) -> QueryRecord:
        """The same, with results that come with their ends, which no part that others have tells."""
        bundle = replace(self.bundle, carries_ends=True)
        if self.member is None:
            return replace(self, bundle=bundle)._written()
        return replace(self, bundle=bundle).joining(self.member.by_itself)

    def joining(self, member: Membership | None) -> QueryRecord:
        """The same in a query group, or by itself."""
        bundle = as_member(self.bundle, self.physical.emit, member)
        return replace(self, bundle=bundle, member=member)._written()

    def among(self, sharing: planner.Sharing) -> QueryRecord:
        """The same, with what it has in common with others."""
        recorded = replace(self.plan, sharing=sharing)
        return replace(self, physical=self.physical.among(sharing), recorded=recorded)

    def _written(self) -> QueryRecord:
        return replace(self, recorded=identity.RecordedPlan.of(self.physical, self.bundle.unit))

    def resumed(self, stored: QueryState) -> QueryRecord:
        """The same, where a manifest has it."""
        known = self.carrying() if stored.options.get("carries_ends") else self
        if "member" in stored.options:
            known = known.joining(Membership.from_json(stored.options["member"]))
        return replace(
            known,
            absorbed=stored.options["absorbed"],
            latest=stored.options["latest"],
            reached=tuple(stored.options.get("reached", ())),
            rows=stored.options["rows"],
            complete_from=None if stored.complete_from == -INFINITY else int(stored.complete_from),
            status=stored.status,
            error=dict(stored.error) if stored.error else None,
            is_fresh=stored.options.get("fresh", False),
            shares=tuple(stored.options.get("shares", ())),
            seed=Seed.from_json(stored.options["seed"]) if "seed" in stored.options else None,
            held=read_instant(stored.options["held"]) if "held" in stored.options else None,
        )

    def to_state(self) -> QueryState:
        return QueryState(
            self.text,
            self.bundle.fingerprint,
            options={
                "id": self.id,
                "sink": self.query.sink,
                "absorbed": self.absorbed,
                "latest": self.latest,
                **({"reached": list(self.reached)} if self.reached else {}),
                "rows": self.rows,
                "fresh": self.is_fresh,
                "plan": self.plan.json,
                **({"carries_ends": True} if self.bundle.carries_ends else {}),
                **({"shares": list(self.shares)} if self.shares else {}),
                **({"seed": self.seed.to_json()} if self.seed is not None else {}),
                **({"held": write_instant(self.held)} if self.held is not None else {}),
                **({"member": self.member.to_json()} if self.member is not None else {}),
            },
            complete_from=-INFINITY if self.complete_from is None else self.complete_from,
            status=self.status,
            error=self.error,
        )


class Registered(Protocol):
    """An engine, as far as what is registered with it and its last commit go. Records follow each other."""

    streams: dict[str, StreamRecord]
    tables: dict[str, TableRecord]
    queries: dict[str, QueryRecord]

    @property
    def last(self) -> Manifest: ...
    @property
    def store(self) -> Store: ...


def query_text(query: catalog.StandingQuery) -> str:
    """The query as a manifest keeps it, for people and for the fingerprint. Not every plan has SQL."""
    try:
        return printer.print_query(query.plan)
    except QueryError:
        return canonical_text(query.plan)
