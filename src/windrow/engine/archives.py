"""The archives of an engine: which there are, and how rows get into them.

Rows for an archive wait in the outbox, committed like answers for a sink. An archive takes all that wait at
once: when one of its periods has ended, when many commits wait, when a run ends. It commits, with the rows,
the number of the engine's commit they came with, so rows that come again after a crash are known to be there.
A row of an answer expires when it leaves the answer, any row when it was kept for long enough.

Which archives there are, and how they are laid out, is in the engine's manifests and nowhere else: a folder
that none names is what an interrupted statement has left. They also tell how far each archive had come: rows
that it had need not wait in the outbox any more, so an archive that is behind that has lost them. ALTER
ARCHIVE commits a layout, and the files follow after that or when rows come next. It changes no answer, so a
script may go on declaring what it declared at first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from secrets import token_hex
from typing import Any, Protocol

import polars as pl
import pyarrow as pa

from windrow.algebra import Emit, Scan, Stream, Window
from windrow.archive.archive import Archive
from windrow.archive.declaration import Declaration
from windrow.archive.layout import GridLayout, Laid, SaidOfLayout
from windrow.archive.snapshot import Reading
from windrow.engine.output import dispatch, outbox
from windrow.engine.records import QueryRecord, Registered, StreamRecord
from windrow.errors import QueryError, StateError
from windrow.execution.ingest import AT, UNTIL, archived_section, stream_source
from windrow.kernels.columnar.columns import INSTANT, published, rows_schema, to_frame
from windrow.language.binder.declarations import check_lifetimes
from windrow.language.catalog import StandingArchive
from windrow.physical.units import GeneralUnit
from windrow.state import chunk, crash, history, names
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest, OutboxEntry, SourceState
from windrow.state.store import RESTORE, Store
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Domain

_EXPIRES = "valid_to"


@dataclass(frozen=True)
class ArchiveShape:
    """The rows of an archive: their columns, and where they are filed."""

    section: str
    #: the section they are read from: that of the answers, where these are not filed twice
    read_from: str
    schema: pa.Schema
    declaration: Declaration
    #: whether rows say at which instant they came, as answers do
    has_at: bool = False
    #: whether they come and go, as the rows of an answer do
    is_relation: bool = False

    @classmethod
    def of_stream(cls, archive: StandingArchive, stream: Stream) -> ArchiveShape:
        """The accepted rows of a stream."""
        section = archived_section(stream_source(stream.name))
        return cls(section, section, *_schema(archive, rows_schema(stream.schema), stream.domain))

    def laid_out(self, layout: GridLayout) -> ArchiveShape:
        """The same rows, laid out in this way."""
        old = self.declaration
        new = Declaration.of(old.key, old.keep, expires=old.expires, **asdict(layout))
        return replace(self, declaration=new)

    @classmethod
    def of_query(cls, archive: StandingArchive, query: str, emit: Emit) -> ArchiveShape:
        """The answers of the query with this id."""
        section, columns = archived_section(query), outbox.published_schema(emit)
        if emit.emits_deletions:
            columns = columns.remove(columns.get_field_index("op"))
        read_from = section if emit.emits_deletions else query
        schema, told = _schema(archive, columns, emit.leaves[0].domain)
        return cls(section, read_from, schema, told, has_at=True, is_relation=emit.emits_deletions)

    def rows(self, store: Store, waiting: Mapping[int, list[OutboxEntry]]) -> pa.Table:
        """What was filed in some outbox files."""
        parts = [self.schema.empty_table()]
        for ref in (entry.ref for entries in waiting.values() for entry in entries):
            place = outbox.stored_as(ref, self.read_from)
            if place is not None:
                frame = to_frame(place.read(chunk.open_chunk(store, ref)))
                parts.append(published(self._ending(frame).to_arrow(), self.schema))
        return pa.concat_tables(parts)

    def _ending(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The columns of the schema, in kernels' types."""
        kept = pl.col(AT) + self.declaration.keep
        ends = pl.min_horizontal(kept, UNTIL) if UNTIL in rows.columns else kept
        own = [name for name in rows.columns if name not in (AT, UNTIL)]
        return rows.select(*([AT] if self.has_at else []), *own, ends.alias(f"#{self.declaration.expires}"))


def _schema(archive: StandingArchive, columns: pa.Schema, domain: Domain) -> tuple[pa.Schema, Declaration]:
    """The columns and what the archive is told; the expiry gets a name that no column has."""
    name = _EXPIRES
    while name in columns.names:
        name += "_"
    schema = columns.append(pa.field(name, INSTANT if domain is Domain.TIME else pa.int64()))
    return schema, Declaration.of(archive.key, archive.keep, expires=name)


#: an archive takes rows when so many commits wait, even in the middle of a period
MOST_WAITING = 16
_FOREVER = 2**63 - 1
_ATTEMPTS = 5


@dataclass(frozen=True)
class Kept:
    """An archive as it runs."""

    spec: StandingArchive
    #: the stream, or the id of the query
    source: str
    folder: str
    shape: ArchiveShape
    archive: Archive
    #: rows that begin earlier may be missing: they came before the archive was there; None: none did
    complete_from: int | None
    laid: Laid

    @property
    def reached(self) -> int:
        """The engine's commit up to which it has the rows."""
        return int(self.archive.read.offsets.get("commit", 0))

    def to_json(self) -> dict[str, Any]:
        told = _told(self.spec, self.source) | self.laid.to_json()
        mine = {"folder": self.folder, "complete_from": self.complete_from, "commit": self.archive.commit}
        return {**told, "declared": self.spec.said.to_json(), **mine}

    @property
    def is_equal(self) -> bool:
        """Whether all rows live equally long."""
        return not self.shape.is_relation

    @property
    def is_to_be_rearranged(self) -> bool:
        """Whether its files are not yet laid out as was decided."""
        return self.archive.declaration != self.shape.declaration


@dataclass(frozen=True)
class Seen:
    """What readers go by: a commit, and the instant each archive is about after it."""

    manifest: Manifest
    clocks: Mapping[str, int] = field(default_factory=dict)


class ArchiveSources(Registered, Protocol):
    """What archives are of: what is registered, and what the last commit has of it."""

    log: CommitLog
    delivering: dispatch.Delivering


class Archiving:
    """The archives of one engine."""

    def __init__(self, engine: ArchiveSources) -> None:
        self._engine = engine
        self.kept: dict[str, Kept] = {}
        self._dropped: set[str] = set()
        #: dropped, and still open
        self._leaving: list[Kept] = []
        self.seen = Seen(engine.last)
        self._clear()

    @property
    def stored(self) -> Mapping[str, Any]:
        """What the last commit knows of archives."""
        found: Mapping[str, Any] = self._engine.last.decisions.get("archives", {})
        return found

    @property
    def undeclared(self) -> dict[str, Any]:
        """Archives of the last commit that nobody has declared yet: they stay."""
        gone = {*self.kept, *self._dropped}
        return {name: stored for name, stored in self.stored.items() if name not in gone}

    @property
    def decisions(self) -> dict[str, Any]:
        known = {**self.undeclared, **{name: kept.to_json() for name, kept in self.kept.items()}}
        return {"archives": known} if known else {}

    @property
    def sections(self) -> frozenset[str]:
        """What archives wait for in outbox files."""
        sources = [kept.source for kept in self.kept.values()]
        sources += [each["source"] for each in self.undeclared.values()]
        return frozenset(map(archived_section, sources))

    def wants_lifetimes(self, query: str) -> bool:
        """Whether an archive wants the rows of the answer of the query with this id."""
        return any(kept.source == query and kept.shape.is_relation for kept in self.kept.values())

    # ------------------------------------------------------------ registering

    def add(self, spec: StandingArchive) -> None:
        """A declared archive, going on where its folder has it."""
        source, shape = self._shape(spec)
        stored = None if spec.name in self._dropped else self.stored.get(spec.name)
        if stored is None:
            kept = self._new(spec, source, shape)
        else:
            self._check_same(spec, source, stored)
            laid = Laid.from_json(stored)
            archive = self._opened(spec.name, stored)
            known = stored["folder"], shape.laid_out(laid.layout), archive, stored["complete_from"]
            kept = Kept(spec, source, *known, laid)
        self.kept[spec.name] = kept

    def alter(self, name: str, said: SaidOfLayout) -> None:
        """Lay an archive out anew; its files follow when that is committed."""
        kept = self.kept[name]
        laid = Laid.by(said, kept.laid, kept.archive.rows or None, is_equal=kept.is_equal)
        self.kept[name] = replace(kept, laid=laid, shape=kept.shape.laid_out(laid.layout))

    def rearrange(self) -> None:
        """Write archives anew that are to be laid out otherwise. Who reads them goes on meanwhile."""
        for kept in self.kept.values():
            if kept.is_to_be_rearranged:
                kept.archive.rearrange(kept.shape.declaration)
                crash.crash_point("sink-delivered")

    def _shape(self, spec: StandingArchive) -> tuple[str, ArchiveShape]:
        stream = self._engine.streams.get(spec.source)
        if stream is not None:
            return stream_source(spec.source), ArchiveShape.of_stream(spec, stream.stream)
        record = self._engine.queries[spec.source]
        unit = record.bundle.unit
        if isinstance(unit, GeneralUnit):
            check_lifetimes(replace(record.query, plan=unit.program.emit))
            self._carry_ends(record, unit)
        return record.id, ArchiveShape.of_query(spec, record.id, record.query.plan)

    def _carry_ends(self, record: QueryRecord, unit: GeneralUnit) -> None:
        """Have the results of a query come with their ends, if it has none yet."""
        if unit.carries_ends:
            return
        kept = (name for refs in self._engine.last.chunks.values() for ref in refs for name in ref.operators)
        # whoever goes at another's slide has all it sees from a query group, once rows have come
        has_rows = any(self._engine.streams[name].greatest is not None for name in record.streams)
        at_others = record.member is not None and record.member.common_slide is not None
        if (at_others and has_rows) or any(name.partition("\0")[0] == record.id for name in kept):
            name = record.query.name
            raise QueryError(
                f"query `{name}` runs already, and tells of the ends of its results only when they come",
                code="archive-ends",
                hint=f"declare the archive together with the query, before rows come: DROP QUERY {name}, then"
                " both",
            )
        self._engine.queries[record.query.name] = record.carrying()

    def _new(self, spec: StandingArchive, source: str, shape: ArchiveShape) -> Kept:
        folder = f"{names.file_name(spec.name)}-{token_hex(4)}"
        read = SourceState(source, {"commit": self._engine.last.number})
        laid = Laid.by(spec.said, Laid(), self._expected_rows(spec), is_equal=not shape.is_relation)
        shape = shape.laid_out(laid.layout)
        store = self._engine.store.nested(names.ARCHIVES, folder)
        archive = Archive.create(store, shape.schema, shape.declaration, read=read)
        seen = list(self._instants(spec.source))
        return Kept(spec, source, folder, shape, archive, max(seen) + 1 if seen else None, laid)

    def _expected_rows(self, spec: StandingArchive) -> int | None:
        """How many rows of a stream will be valid at a time, if its declaration tells."""
        record = self._engine.streams.get(spec.source)
        if record is None or record.stream.expected is None:
            return None
        unit = 1_000_000 if record.stream.domain is Domain.TIME else 1
        return max(1, round(record.stream.expected.rate * spec.keep / unit))

    def _opened(self, name: str, stored: Mapping[str, Any]) -> Archive:
        """An archive that was there before, with all that it had."""
        store = self._engine.store.nested(names.ARCHIVES, stored["folder"])
        try:
            last = history.History(store).latest() if store.is_there() else None
            had, has = int(stored.get("commit", 0)), last.number if last else 0
            if has < had:
                missing = f"its commit {had} is missing, and the last it has is {has}"
                raise StateError(
                    f"archive `{name}` in {store} has lost rows: {missing if has else 'it has no commits'}",
                    code="archive-lost",
                    hint=_anew(name),
                )
            archive = Archive.open(store, takeover=True)
        except StateError as error:
            if error.hint != RESTORE:
                raise
            raise StateError(error.message, code=error.code, hint=_anew(name)) from error
        reached, found = int(archive.read.offsets.get("commit", 0)), self._engine.log.owner.after
        if reached > found:
            archive.close()
            raise StateError(
                f"{self._engine.store} has lost commits: its last one was {found}, and archive `{name}` has"
                f" rows of commit {reached}",
                code="commit-lost",
                hint=RESTORE,
            )
        return archive

    def _check_same(self, spec: StandingArchive, source: str, stored: Mapping[str, Any]) -> None:
        """What files depend on stays; of the layout, what was declared at first or what it is now."""
        told, said, first = _told(spec, source), spec.said.to_json(), stored.get("declared", {})
        changed = [part for part in told if told[part] != stored[part]]
        relaid = [part for part in said if said[part] not in (None, stored.get(part), first.get(part))]
        for part in (*changed, *relaid):
            was, now = stored.get(part), {**told, **said}[part]
            instead = f"drop it first: w.drop('{spec.name}'), or --drop {spec.name}"
            hint = f"declare it as before, or {instead}"
            if not changed:
                hint = f"declare it as before, then ALTER ARCHIVE {spec.name} …; or {instead}"
            raise StateError(
                f"archive `{spec.name}` was declared otherwise when {self._engine.store} was written:"
                f" its {part} was {_shown(was)} and is now {_shown(now)}",
                code="archive-changed",
                hint=hint,
            )

    def drop(self, name: str) -> None:
        """Forget an archive; its files go with the next commit."""
        kept = self.kept.pop(name, None)
        self._leaving += [kept] if kept is not None else []
        self._dropped.add(name)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """If the block fails, the archives are those there were before."""
        before, dropped, leaving = dict(self.kept), set(self._dropped), list(self._leaving)
        try:
            yield
        except BaseException:
            was_open = {id(kept.archive) for kept in (*before.values(), *leaving)}
            for kept in (*self.kept.values(), *self._leaving):
                if id(kept.archive) not in was_open:
                    kept.archive.close()
            self.kept, self._dropped, self._leaving = before, dropped, leaving
            self._clear()
            raise

    # ------------------------------------------------------------ after a commit

    def committed(self) -> None:
        """The engine has made a commit: readers may go by it, and what was dropped is removed."""
        clocks = {name: self._clock(kept) for name, kept in self.kept.items()}
        known = {name: clock for name, clock in clocks.items() if clock is not None}
        self.seen = Seen(self._engine.last, known)
        while self._leaving:
            self._leaving.pop().archive.close()
        if self._dropped:
            self._dropped = set()
            self._clear()

    def deliver(self, *, only_due: bool) -> None:
        """Give archives the rows that wait for them, and the time; `only_due`: those that should not wait."""
        self.rearrange()
        for kept in self.kept.values():
            self._update(kept, only_due=only_due)
        for section in {kept.shape.section for kept in self.kept.values()}:
            self._settle(section)

    def close(self) -> None:
        """Let go of all of them."""
        for kept in (*self.kept.values(), *self._leaving):
            kept.archive.close()

    def _update(self, kept: Kept, *, only_due: bool) -> None:
        waiting = _after(self._engine.last, kept.shape.section, kept.reached)
        archive, clock = kept.archive, self._clock(kept)
        now = archive.now if clock is None else max(clock, archive.now)
        number = kept.shape.declaration.number
        has_ended = number(now) > number(archive.now)
        if not has_ended and (not waiting or (only_due and len(waiting) < MOST_WAITING)):
            return
        rows = kept.shape.rows(self._engine.store, waiting)
        read = SourceState(kept.source, {"commit": max(waiting, default=kept.reached)})
        archive.update(now, rows, latest=_FOREVER, read=read)
        crash.crash_point("sink-delivered")

    def _settle(self, section: str) -> None:
        """What all archives have need not wait any longer."""
        if section in {archived_section(each["source"]) for each in self.undeclared.values()}:
            return
        reached = min(kept.reached for kept in self.kept.values() if kept.shape.section == section)
        for commit, entries in outbox.pending(self._engine.last.outbox, section).items():
            if commit <= reached:
                self._engine.delivering.mark(entries, section)

    # ------------------------------------------------------------ instants

    def _clock(self, kept: Kept) -> int | None:
        """The last instant about which all is known; after the end that of the last row. None: none yet."""
        source, engine = kept.spec.source, self._engine
        if source in engine.streams:
            stream = engine.streams[source]
            progress = stream.known.progress_on(stream.stream, stream.stream.wattr)
        else:
            progress = engine.queries[source].clock(engine.streams, engine.tables)
        if abs(progress) != INFINITY:
            return int(progress) - 1
        if progress == -INFINITY:
            return None
        # time does not go back at the end: not behind how far the streams were before it
        reached = [s.known.progress.progress for s, on in self._attributes(source) if on == s.stream.wattr]
        promised = [int(each) - 1 for each in reached if abs(each) != INFINITY]
        return max((*self._instants(source), *promised), default=None)

    def _instants(self, source: str) -> Iterator[int]:
        """The greatest instants of rows of the source so far."""
        for stream, attribute in self._attributes(source):
            known = {ARRIVAL_TS: stream.known.last_arrival, ROW_NUM: stream.known.accepted}
            found = stream.greatest if attribute == stream.stream.wattr else known.get(attribute)
            if found is not None and abs(found) != INFINITY:
                yield int(found)

    def _attributes(self, source: str) -> list[tuple[StreamRecord, str]]:
        """The streams below, each with the attributes that windows of the source are on."""
        streams = self._engine.streams
        if source in streams:
            return [(streams[source], streams[source].stream.wattr)]
        nodes = self._engine.queries[source].query.plan.walk()
        windows = [node for node in nodes if isinstance(node, Window)]
        scans = [(w, each) for w in windows for each in w.origins if isinstance(each, Scan)]
        return [(streams[scan.stream.name], window.attribute_of(scan)) for window, scan in scans]

    # ------------------------------------------------------------ reading

    def place(self, kept: Kept) -> str:
        return str(self._engine.store.nested(names.ARCHIVES, kept.folder))

    @contextmanager
    def reading(self, name: str) -> Iterator[Reading]:
        """One state of an archive, with the rows that wait for it, while updates go on."""
        kept = self.kept[name]
        with ExitStack() as held:
            # the commit first: what it has no more waiting, the archive has by then
            seen = self._pinned(held)
            snapshot = held.enter_context(kept.archive.snapshot())
            waiting = _after(seen.manifest, kept.shape.section, int(snapshot.read.offsets.get("commit", 0)))
            at = max(seen.clocks.get(name, snapshot.now), snapshot.now)
            begins = "at" if kept.shape.is_relation else None
            yield Reading(snapshot, kept.shape.rows(self._engine.store, waiting), at, begins)

    def _pinned(self, held: ExitStack) -> Seen:
        """What readers go by now, its files held; one that was swept in between is looked up again."""
        for _ in range(_ATTEMPTS):
            seen = self.seen
            with suppress(StateError):
                held.enter_context(self._engine.log.leases.pin(seen.manifest.number))
                return seen
        held.enter_context(self._engine.log.leases.pin(self.seen.manifest.number))
        return self.seen

    def _clear(self) -> None:
        """Remove folders that the last commit does not name."""
        store, named = self._engine.store, {each["folder"] for each in self.stored.values()}
        for name in store.nests(names.ARCHIVES):
            if name not in named:
                with suppress(StateError):  # what is not ours, stays
                    store.remove_nested(names.ARCHIVES, name)


def _after(manifest: Manifest, section: str, commit: int) -> dict[int, list[OutboxEntry]]:
    """What waits of a section, by commit, of those after one."""
    waiting = outbox.pending(manifest.outbox, section)
    return {number: entries for number, entries in waiting.items() if number > commit}


def _shown(value: Any) -> Any:
    """A part of a declaration, for people."""
    return value.removeprefix(names.RESERVED) if isinstance(value, str) else value


def _told(spec: StandingArchive, source: str) -> dict[str, Any]:
    """What of a declaration the files depend on."""
    return {"source": source, "key": spec.key, "keep": spec.keep}


def _anew(name: str) -> str:
    """The way out if an archive is damaged: it alone can begin anew."""
    return (
        "restore the whole state directory from a copy, or drop the archive, and declare it again to keep"
        f" rows from then on: w.drop('{name}'), or --drop {name}"
    )
