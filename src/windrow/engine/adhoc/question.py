"""A SELECT at a commit: which instant is now, which parts of what is kept it needs, and the answer from them.

A commit may be followed by others while parts are read; the same question is then looked at anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.catalog import Stream, Table, TableKind
from windrow.algebra.plan import Window
from windrow.engine.adhoc import access_paths, synopsis_fit
from windrow.engine.adhoc.from_archives import from_archive, predicate_on
from windrow.engine.adhoc.from_synopses import FromSynopses, in_row_order, relation, shelves_of
from windrow.engine.adhoc.needs import Needs, members, needs_of
from windrow.engine.adhoc.snapshot import END, snapshot_of
from windrow.engine.history import read_changes
from windrow.engine.output.outbox import published, rows_schema
from windrow.engine.records import StreamRecord
from windrow.errors import QueryError
from windrow.execution.kept_rows import empty_rows
from windrow.kernels.relational.signed_rows import N, consolidated
from windrow.kernels.relational.tables import AT
from windrow.language.binder.once import LATEST, WINDOW, Once, answers_of
from windrow.state.manifest import Manifest
from windrow.state.names import DRIVER
from windrow.windows.domain import INFINITY, Instant, read_instant

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engine.adhoc.from_synopses import Standing, SynopsisShelf
    from windrow.engine.archives.manager import Archiving
    from windrow.language.catalog import StandingQuery
    from windrow.state.log import CommitLog


#: in the order in which they are preferred where they cost the same
WAYS = (access_paths.kept_sub_windows, from_archive)


@dataclass(frozen=True)
class Answer:
    """The rows, and what they are about; `at` is None as long as nothing is known."""

    commit: int
    at: int | None
    rows: pl.DataFrame


class Question:
    """A SELECT, and what is known of it at each commit that was looked at."""

    def __init__(
        self,
        once: Once,
        queries: Mapping[str, StandingQuery],
        log: CommitLog,
        archives: Archiving | None = None,
        standing: Standing | None = None,
        level: str = LATEST,
    ) -> None:
        self.once, self.queries, self.log, self.archives = once, queries, log, archives
        self.standing, self.level = standing, level
        self.snapshot = snapshot_of(once.plan)
        self.texts = access_paths.texts_of(once.plan)
        self._newest: Situation | None = None

    @cached_property
    def asked(self) -> synopsis_fit.SynopsisRequest | None:
        """What it asks of synopses; None if they are not for its like."""
        return synopsis_fit.asked_of(self.once.plan)

    @cached_property
    def columns(self) -> Mapping[str, access_paths.Columns]:
        """Of streams that are not read as a whole, the columns that are."""
        return access_paths.columns_read(self.snapshot)

    def at(self, manifest: Manifest) -> Situation:
        """The question at a commit."""
        if self._newest is None or self._newest.manifest.number != manifest.number:
            self._newest = Situation(self, manifest)
        return self._newest

    def published(self, answer: Answer) -> pa.Table:
        """In order, with the columns and types users see."""
        plan, order = self.snapshot.asked, self.snapshot.order
        rows = in_row_order(answer.rows, order).select(plan.schema.names)
        return published(rows.to_arrow(), rows_schema(plan.schema))


@dataclass(frozen=True)
class Situation:
    """A question at one commit."""

    question: Question
    manifest: Manifest

    @cached_property
    def streams(self) -> dict[str, StreamRecord]:
        """The streams it asks about, as the commit has them."""
        once = self.question.once
        stand_ins = {*once.answers, *once.tables}
        asked = self.question.snapshot.streams
        return {name: self.record(stream) for name, stream in asked.items() if name not in stand_ins}

    def record(self, stream: Stream) -> StreamRecord:
        """A stream as the commit has it."""
        state = self.manifest.streams.get(stream.name)
        place = str(self.question.log.store)
        return StreamRecord.new(stream) if state is None else StreamRecord.from_state(stream, state, place)

    @cached_property
    def same_as(self) -> str | None:
        """A standing query whose last answer is what is asked for."""
        name = access_paths.same_query(self.manifest, self.question.queries, self.question.texts)
        if name is None or any(record.known.per is not None for record in self.streams.values()):
            return None
        return name if self.question.queries[name].max_gap is None and not self._has_ended else None

    @property
    def _has_ended(self) -> bool:
        return all(record.known.sealed for record in self.streams.values())

    @cached_property
    def present(self) -> access_paths.Present | None:
        """Which instant is now."""
        if not self.streams:
            return access_paths.Present(END, END - 1, END - 1)
        tables = self.question.snapshot.tables
        held = [_held(self.manifest, name) for name in tables]
        return access_paths.present_of(self.question.snapshot.asked, self.streams, held)

    @cached_property
    def ways(self) -> dict[str, access_paths.AccessPath]:
        """For each leaf of the plan, or each stream, where its rows come from."""
        if self.same_as is not None:
            return {
                self.same_as: access_paths.way_to_answer(self.manifest, self.question.log.store, self.same_as)
            }
        if self.synopses is not None:
            return {"": self.synopses.way}
        found, missing = self._rows_at
        if missing is not None:
            near = self._fit if isinstance(self._fit, synopsis_fit.NearMiss) else None
            raise access_paths.not_kept(*missing, near)
        return found

    @cached_property
    def synopses(self) -> FromSynopses | None:
        """Synopses that have the answer. Where neither they nor rows have it as of now, those of a state
        before will do, if that is what was asked for."""
        found = self._fit
        if (
            isinstance(found, synopsis_fit.NearMiss)
            and self.question.level == WINDOW
            and self._rows_at[1] is not None
        ):
            found = self._earlier
        if self.question.asked is None or not isinstance(found, synopsis_fit.Fit):
            return None
        return FromSynopses(self.question.asked, found, self.manifest, self.question.log.store)

    @cached_property
    def _fit(self) -> synopsis_fit.Found:
        if self.present is None or len(self._needs) != 1 or not self.question.snapshot.is_at_once:
            return None
        stream, span = self._span
        shelves = self._shelves(stream)
        asked = self.question.asked if shelves else None
        return None if asked is None else synopsis_fit.fit(asked, shelves, self.streams[stream], span)

    @property
    def _earlier(self) -> synopsis_fit.Fit | None:
        asked, (stream, span) = self.question.asked, self._span
        assert asked is not None
        return synopsis_fit.earlier(asked, self._shelves(stream), self.streams[stream], span)

    def _shelves(self, stream: str) -> list[SynopsisShelf]:
        standing = self.question.standing
        return [] if standing is None else shelves_of(self.manifest, stream, standing)

    @property
    def _span(self) -> tuple[str, synopsis_fit.AttributeRange]:
        ((stream, needs, _),) = self._needs.values()
        begin = -END if needs.begin == -INFINITY else int(needs.begin)
        return stream, synopsis_fit.AttributeRange(begin, int(needs.end) + 1)

    @cached_property
    def _rows_at(
        self,
    ) -> tuple[dict[str, access_paths.AccessPath], tuple[access_paths.WantedRows, Window] | None]:
        """Where rows come from, and of what there are none."""
        question = self.question
        found = {
            name: access_paths.way_to_answer(self.manifest, question.log.store, query)
            for name, query in question.once.answers.items()
        }
        for name, (stream, needs, window) in self._needs.items():
            wanted = access_paths.WantedRows(self.streams[stream], needs, self.manifest, question.log.store)
            if question.snapshot.is_at_once:
                known = predicate_on(window, question.snapshot.asked)
                wanted = replace(wanted, window=window, predicate=known, archives=question.archives)
                wanted = replace(wanted, columns=question.columns.get(stream))
            way = access_paths.cheapest(wanted, WAYS)
            if way is None:
                return found, (wanted, window)
            found[name] = way
        return found, None

    @cached_property
    def _needs(self) -> dict[str, tuple[str, Needs, Window]]:
        """What is needed of which stream, by the name the plan has for its rows."""
        present = self.present or access_paths.Present(0, 0, 0)
        at, snapshot = present.at, self.question.snapshot
        windows = [node for node in snapshot.asked.walk() if isinstance(node, Window)]
        found: dict[str, tuple[str, Needs, Window]] = {}
        if snapshot.is_at_once:
            pairs = zip(snapshot.leaves, windows, strict=True)
            for leaf, window in pairs:
                if leaf.stream.name in self.streams:
                    found[leaf.name] = leaf.stream.name, needs_of(leaf.spec, at), window
            return found
        begin = at - _reach(windows)
        for window in windows:
            for stream in window.streams:
                if stream.name in self.streams:
                    found[stream.name] = stream.name, Needs(begin, present.clock - 1), window
        return found

    @property
    def parts(self) -> list[access_paths.SubWindow]:
        """All that has to be read, each once."""
        return list({part.name: part for way in self.ways.values() for part in way.parts}.values())

    @property
    def described(self) -> list[str]:
        """Where rows come from, for people."""
        lines = dict.fromkeys(_described(way) for way in self.ways.values())
        return [*lines, *(f"table `{name}`, as it is" for name in self.question.once.tables.values())]

    def answer(self, frames: Mapping[str, pl.DataFrame]) -> Answer:
        """The relation, given the rows of all parts."""
        number, snapshot = self.manifest.number, self.question.snapshot
        present, names = self.present, list(snapshot.plan.schema.names)
        if self.same_as is not None:
            return self._from_answer(self.same_as, frames)
        if present is None:
            return Answer(number, None, relation(snapshot.plan, {}, {}, -END, -END))
        if self.synopses is not None:
            return self._from_synopses(self.synopses, present, frames)
        rows = self._rows(frames, present)
        clock, at = (END, END) if snapshot.is_at_once else (present.clock, present.at)
        if present.clock > END:
            raise QueryError(f"instants beyond {END} cannot be asked about", code="unsupported")
        found = relation(snapshot.plan, rows, self._changes(present.clock), clock, at)
        shown = present.shown if self.streams else self._shown(rows)
        return Answer(number, shown, found.select(names))

    def _from_answer(self, query: str, frames: Mapping[str, pl.DataFrame]) -> Answer:
        """What a standing query has said already."""
        found = [frames[part.name] for part in self.ways[query].parts]
        standing = self.question.queries[query]
        rows = access_paths.last_answer(standing, self.streams, found, answers_of(standing))
        names = dict(zip(rows.columns[1:], standing.plan.schema.names, strict=False))
        shown = None if self.present is None else self.present.shown
        return Answer(self.manifest.number, shown, rows.drop("at", "#arrival_ts").rename(names))

    def _from_synopses(
        self, found: FromSynopses, present: access_paths.Present, frames: Mapping[str, pl.DataFrame]
    ) -> Answer:
        """What the states of a shared state say; of a window before this one, if need be."""
        shown = present.shown if found.fit.span == self._span[1] else found.fit.span.end - 1
        names = list(self.question.snapshot.plan.schema.names)
        return Answer(self.manifest.number, shown, found.rows(frames).select(names))

    def _rows(
        self, frames: Mapping[str, pl.DataFrame], present: access_paths.Present
    ) -> dict[str, pl.DataFrame]:
        snapshot, once = self.question.snapshot, self.question.once
        found: dict[str, pl.DataFrame] = {}
        named = (
            {leaf.name: leaf.stream for leaf in snapshot.leaves} if snapshot.is_at_once else snapshot.streams
        )
        leaves = {leaf.name: leaf for leaf in snapshot.leaves}
        for name, stream in named.items():
            if stream.name in once.answers:
                found[name] = self._last_answer(once.answers[stream.name], stream, frames)
            elif stream.name in once.tables:
                found[name] = self._table_rows(once.tables[stream.name], stream)
            else:
                parts = [frames[part.name] for part in self.ways[name].parts]
                rows = pl.concat(parts) if parts else empty_rows(stream)
                leaf = leaves.get(name)
                if leaf is not None:
                    rows = members(leaf.spec, stream, rows, present.at, leaf.alias)
                found[name] = rows
        return found

    def _last_answer(self, query: str, stream: Stream, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        standing = self.question.queries[query]
        below = {s.name: self.record(s) for leaf in standing.plan.leaves for s in leaf.streams}
        found = [frames[part.name] for part in self.ways[stream.name].parts]
        return access_paths.last_answer(standing, below, found, stream)

    def _shown(self, rows: Mapping[str, pl.DataFrame]) -> int | None:
        """Of answers alone: what they are about."""
        instants = [frame["at"].max() for frame in rows.values() if "at" in frame.columns]
        return max((at for at in instants if isinstance(at, int)), default=None)

    def _changes(self, clock: int) -> dict[str, pl.DataFrame]:
        tables = self.question.snapshot.tables
        return {name: self._changes_of(t).filter(pl.col(AT) < clock) for name, t in tables.items()}

    def _changes_of(self, table: Table) -> pl.DataFrame:
        state = self.manifest.tables.get(table.name)
        files = {ref.name: ref for ref in self.manifest.chunks.get(DRIVER, ())}
        parts = [] if state is None else [files[name] for name in state.options["history"]]
        return read_changes(self.question.log.store, table, parts)

    def _table_rows(self, name: str, stream: Stream) -> pl.DataFrame:
        """What a table holds."""
        changes = self._changes_of(Table(name, stream.schema, TableKind.NRR))
        rows = consolidated(changes.drop(AT)).filter(pl.col(N) > 0)
        places = pl.int_range(rows.height, eager=True).repeat_by(rows[N]).explode().drop_nulls()
        return (
            rows.drop(N)
            .select(pl.all().gather(places))
            .with_columns(pl.lit(0, pl.Int64).alias("#arrival_ts"))
        )


def _reach(windows: list[Window]) -> Instant:
    """How far back rows can matter to an answer, through windows over windows."""
    return sum(window.spec.reach_back for window in windows)


def _described(way: access_paths.AccessPath) -> str:
    if way.tells_size:
        return way.what
    count = len(way.parts)
    return f"{way.what}: {count} {'file' if count == 1 else 'files'}, {way.bytes} bytes"


def _held(manifest: Manifest, table: str) -> Instant:
    state = manifest.tables.get(table)
    return INFINITY if state is None else read_instant(state.progress["promised"])
