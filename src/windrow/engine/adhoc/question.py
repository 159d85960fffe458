"""A SELECT at a commit: which instant is now, which parts of what is kept it needs, and the answer from them.

A commit may be followed by others while parts are read; the same question is then looked at anew. Rows of a
window may also come from an archive of the stream, by key. That it may be ahead of the commit does no harm:
what came after the commit is about later instants, and whether what has expired since could still be in the
window is looked at when the rows are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

import polars as pl
import pyarrow as pa

from windrow.algebra import Filter, Kind, Late, Plan, Stream, Table, TableKind, Window
from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, conjunction, conjuncts
from windrow.engine.adhoc import access_paths, from_synopses
from windrow.engine.adhoc.from_synopses import FromSynopses, relation
from windrow.engine.adhoc.snapshot import END, Needs, members, needs_of, snapshot_of
from windrow.engine.archives import Archiving
from windrow.engine.records import StreamRecord
from windrow.engine.tables import parts_of, read_changes
from windrow.errors import QueryError, StateError
from windrow.execution.kept_rows import empty_rows
from windrow.kernels.columnar.columns import frame_from_arrow, published, rows_schema
from windrow.kernels.relational.tables import AT
from windrow.language.binder.once import LATEST, WINDOW, Once, answers_of
from windrow.language.catalog import StandingQuery
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest
from windrow.state.names import DRIVER
from windrow.windows.domain import ARRIVAL_TS, INFINITY, read_instant
from windrow.windows.spec import WindowSpec

_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000_000
#: what an archive is about before the first row tells
_NEVER = -(2**63)


@dataclass(frozen=True)
class Bounds:
    """Keys from `low` to `high`, both included; None is no bound."""

    low: Any = None
    high: Any = None

    @property
    def is_open(self) -> bool:
        """Whether they leave nothing out."""
        return self.low is None and self.high is None


@dataclass(frozen=True)
class ArchivePath:
    """An archive to read instead of a window's rows, the keys to look for, and how many rows that reads."""

    archive: str
    key: str
    bounds: Bounds
    rows: int

    @property
    def text(self) -> str:
        """One line for EXPLAIN.

        >>> ArchivePath("past", "item", Bounds(3, 3), 4096).text
        'archive past, item = 3: reads 4,096 rows'
        """
        low, high = self.bounds.low, self.bounds.high
        if self.bounds.is_open:
            keys = "all of it"
        elif low == high:
            keys = f"{self.key} = {low}"
        else:
            least, most = "" if low is None else f"{low} ≤ ", "" if high is None else f" ≤ {high}"
            keys = f"{least}{self.key}{most}"
        return f"archive {self.archive}, {keys}: reads {self.rows:,} rows"


def archive_for(
    archives: Archiving,
    source: str,
    window: WindowSpec,
    predicate: Expression | None = None,
    alias: str | None = None,
) -> ArchivePath | None:
    """The archive of a stream that has all rows of a window, and reads the fewest; None: none has.

    `predicate` is what rows must satisfy; its columns are called `alias.column`. The bounds of a way are no
    more than a sieve: whoever takes it still applies the predicate, and cuts the rows to the window.
    """
    ways = []
    for name, kept in archives.kept.items():
        if kept.spec.source != source or kept.shape.has_at or window.wattr is not None:
            continue
        with archives.reading(name) as reading:
            oldest = None if reading.now == _NEVER else oldest_row(window, reading.now)
            if oldest is None or not is_whole(oldest, reading.now, kept.spec.keep, kept.complete_from):
                continue
            key = kept.spec.key
            bounds = key_bounds(predicate, f"{alias}.{key}") if predicate else Bounds()
            ways.append(ArchivePath(name, key, bounds, reading.rows_to_read(bounds.low, bounds.high)))
    return min(ways, key=lambda way: (way.rows, way.bounds.is_open), default=None)


def oldest_row(window: WindowSpec, at: int) -> int | None:
    """The first instant whose rows can be in a window at an instant; None if it reaches back without end.

    >>> from windrow.windows.ranges import NowWindow, RangeWindow
    >>> oldest_row(RangeWindow(10), 99), oldest_row(RangeWindow(10, 5), 99), oldest_row(NowWindow(), 99)
    (90, 90, 99)
    >>> oldest_row(RangeWindow(10, 30), 99)
    80
    """
    first, _ = window.held(at if window.grid is None else at + 1)
    return None if first == -INFINITY else int(first)


def is_whole(oldest: int, at: int, keep: int, complete_from: int | None) -> bool:
    """Whether an archive about an instant has all rows from `oldest` on.

    >>> [is_whole(oldest, at=99, keep=10, complete_from=92) for oldest in (89, 90, 91, 92)]
    [False, False, False, True]
    >>> is_whole(90, at=99, keep=10, complete_from=None)
    True
    """
    return oldest > at - keep and (complete_from is None or oldest >= complete_from)


def key_bounds(predicate: Expression, column: str) -> Bounds:
    """Between which values a column must be where a predicate holds.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import BIGINT
    >>> k = ColumnRef("k", BIGINT)
    >>> some = [call(">=", (k, Literal(3, BIGINT))), call(">", (Literal(9, BIGINT), k))]
    >>> key_bounds(call("and", some), "k"), key_bounds(call("or", some), "k")
    (Bounds(low=3, high=9), Bounds(low=None, high=None))
    """
    lows: list[Any] = []
    highs: list[Any] = []
    for part in conjuncts(predicate):
        op, values = _compared(part, column)
        if values and None not in values:
            lows += [min(values)] if op in ("in", "=", ">", ">=") else []
            highs += [max(values)] if op in ("in", "=", "<", "<=") else []
    return Bounds(max(lows, default=None), min(highs, default=None))


def _compared(part: Expression, column: str) -> tuple[str, list[Any]]:
    """How a column is compared with which constants; with none, if it is not."""
    match part:
        case Call(function="in", args=(ColumnRef(name=name), *values)) if name == column:
            known = [_value(each) for each in values if isinstance(each, Literal)]
            return "in", known if len(known) == len(values) else []
        case Call(function=op, args=(ColumnRef(name=name), Literal() as value)) if name == column:
            return op, [_value(value)]
        case Call(function=op, args=(Literal() as value, ColumnRef(name=name))) if name == column:
            return _TURNED.get(op, ""), [_value(value)]
    return "", []


def _value(literal: Literal) -> Any:
    """A constant as archives are asked for it; None for NULL, which bounds nothing."""
    if literal.value is None:
        return None
    match literal.type.kind:
        case Kind.DATE:
            return date(1970, 1, 1) + timedelta(days=literal.value // _DAY)
        case Kind.TIMESTAMP:
            return _EPOCH + timedelta(microseconds=literal.value)
    return literal.value


#: bytes of a value, about, as an archive is read
_WIDTH = 8


def from_archive(wanted: access_paths.WantedRows) -> access_paths.AccessPath | None:
    """The rows of the window that have the keys the question asks for, if an archive has all of them."""
    stream, window, archives = wanted.record.stream, wanted.window, wanted.archives
    if archives is None or stream.late is not Late.DROP:
        return None
    if stream.wattr not in stream.schema:
        return None
    search = archive_for(archives, stream.name, window.spec, wanted.predicate, window.origins[0].alias)
    if search is None:
        return None
    kept, bounds, names = archives.kept[search.archive], search.bounds, list(stream.schema.names)

    def fetch() -> pl.DataFrame:
        with archives.reading(search.archive) as reading:
            if not is_whole(int(wanted.needs.begin), reading.now, kept.spec.keep, kept.complete_from):
                raise StateError(
                    f"archive `{search.archive}` has let go of rows of the window since the question was"
                    " asked",
                    code="too-fast",
                    hint="ask again, or CREATE ARCHIVE with a longer KEEP",
                )
            if bounds.is_open:
                table = reading.scan(columns=names)
            else:
                table = reading.find_between(bounds.low, bounds.high, columns=names)
        arrival = pl.lit(0, pl.Int64).alias(f"#{ARRIVAL_TS}")
        return frame_from_arrow(table, stream.schema).with_columns(arrival).select(empty_rows(stream).columns)

    size = search.rows * _WIDTH * len(names)
    name = f"{search.archive} {bounds} {wanted.manifest.number}"
    part = access_paths.SubWindow(name, int(wanted.needs.end), size, fetch)
    return access_paths.AccessPath(search.text, (part,), tells_size=True)


def predicate_on(window: Window, plan: Plan) -> Expression | None:
    """What the rows of a window of a plan must satisfy to matter; None if all of them do."""
    for node in plan.walk():
        parts, below = [], node
        while isinstance(below, Filter):
            parts.append(below.predicate)
            below = below.input
        if parts and below is window:
            return conjunction(tuple(parts))
    return None


#: the ways to get rows; the one that reads least is taken, the first of those that read the same
WAYS = (access_paths.kept_sub_windows, from_archive)


@dataclass(frozen=True)
class Answer:
    """The rows, and what they are about; `at` is None as long as nothing is known."""

    commit: int
    at: int | None
    rows: pl.DataFrame


@dataclass(eq=False)
class Question:
    """A SELECT, and what is known of it at each commit that was looked at."""

    once: Once
    queries: Mapping[str, StandingQuery]
    log: CommitLog
    archives: Archiving | None = None
    standing: from_synopses.Standing | None = None
    level: str = LATEST

    def __post_init__(self) -> None:
        self.snapshot = snapshot_of(self.once.plan)
        self.texts = access_paths.texts_of(self.once.plan)
        self._newest: Situation | None = None

    @cached_property
    def asked(self) -> from_synopses.SynopsisRequest | None:
        """What it asks of synopses; None if they are not for its like."""
        return from_synopses.asked_of(self.once.plan)

    @cached_property
    def columns(self) -> Mapping[str, access_paths.Columns]:
        """Of streams that are not read as a whole, the columns that are."""
        return access_paths.columns_read(self.snapshot)

    def at(self, manifest: Manifest) -> Situation:
        if self._newest is None or self._newest.manifest.number != manifest.number:
            self._newest = Situation(self, manifest)
        return self._newest

    def published(self, answer: Answer) -> pa.Table:
        """In order, with the columns and types users see."""
        plan, order = self.snapshot.asked, self.snapshot.order
        rows = from_synopses.in_row_order(answer.rows, order).select(plan.schema.names)
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
        state = self.manifest.streams.get(stream.name)
        return StreamRecord.from_state(stream, state, str(self.question.log.store))

    @cached_property
    def same_as(self) -> str | None:
        """A standing query whose last answer is what is asked for."""
        name = access_paths.same_query(self.manifest, self.question.queries, self.question.texts)
        if name is None or self.question.queries[name].max_gap is not None:
            return None
        known = [record.known for record in self.streams.values()]
        if any(each.per is not None for each in known) or all(each.sealed for each in known):
            return None
        return name

    @cached_property
    def present(self) -> access_paths.Present | None:
        """Which instant is now."""
        if not self.streams:
            return access_paths.Present(END, END - 1, END - 1)
        known, asked = self.manifest.tables, self.question.snapshot
        held = [read_instant(known[n].progress["promised"]) for n in asked.tables if n in known]
        return access_paths.present_of(asked.asked, self.streams, held)

    @cached_property
    def ways(self) -> dict[str, access_paths.AccessPath]:
        """For each leaf of the plan, or each stream, where its rows come from."""
        if self.same_as is not None:
            return {self.same_as: self._way_to_answer(self.same_as)}
        if self.synopses is not None:
            return {"": self.synopses.way}
        found, missing = self._rows_at
        if missing is not None:
            near = self._fit if isinstance(self._fit, from_synopses.NearMiss) else None
            raise access_paths.not_kept(missing, near)
        return found

    def _way_to_answer(self, query: str) -> access_paths.AccessPath:
        return access_paths.way_to_answer(self.manifest, self.question.log.store, query)

    @cached_property
    def synopses(self) -> FromSynopses | None:
        """Synopses that have the answer. Where neither they nor rows have it as of now, those of a state
        before will do, if that is what was asked for."""
        found = self._fit
        if found is None:
            return None
        question, asked, (stream, span) = self.question, self.question.asked, self._span
        assert asked is not None
        is_missed = isinstance(found, from_synopses.NearMiss)
        if is_missed and question.level == WINDOW and self._rows_at[1] is not None:
            found = from_synopses.earlier(asked, self._shelves, self.streams[stream], span)
        if not isinstance(found, from_synopses.Fit):
            return None
        return FromSynopses(asked, found, self.manifest, question.log.store)

    @cached_property
    def _fit(self) -> from_synopses.Found:
        asked = self.question.asked if self._shelves else None
        if asked is None:
            return None
        stream, span = self._span
        return from_synopses.fit(asked, self._shelves, self.streams[stream], span)

    @cached_property
    def _shelves(self) -> list[from_synopses.SynopsisShelf]:
        question = self.question
        if self.present is None or len(self._needs) != 1 or not question.snapshot.is_at_once:
            return []
        if question.standing is None:
            return []
        return from_synopses.shelves_of(self.manifest, self._span[0], question.standing)

    @property
    def _span(self) -> tuple[str, range]:
        ((stream, needs, _),) = self._needs.values()
        begin = -END if needs.begin == -INFINITY else int(needs.begin)
        return stream, range(begin, int(needs.end) + 1)

    @cached_property
    def _rows_at(self) -> tuple[dict[str, access_paths.AccessPath], access_paths.WantedRows | None]:
        """Where rows come from, and of what there are none."""
        question, asked = self.question, self.question.snapshot.asked
        found = {name: self._way_to_answer(query) for name, query in question.once.answers.items()}
        for name, (stream, needs, window) in self._needs.items():
            more: dict[str, Any] = {}
            if question.snapshot.is_at_once:
                more = {"predicate": predicate_on(window, asked), "columns": question.columns.get(stream)}
                more["archives"] = question.archives
            record, store = self.streams[stream], question.log.store
            wanted = access_paths.WantedRows(record, needs, self.manifest, store, window, **more)
            ways = [way for offer in WAYS if (way := offer(wanted)) is not None]
            if not ways:
                return found, wanted
            found[name] = min(ways, key=lambda way: way.bytes)
        return found, None

    @cached_property
    def _needs(self) -> dict[str, tuple[str, Needs, Window]]:
        """What is needed of which stream, by the name the plan has for its rows."""
        present = self.present or access_paths.Present(0, 0, 0)
        at, snapshot = present.at, self.question.snapshot
        windows = [node for node in snapshot.asked.walk() if isinstance(node, Window)]
        found: dict[str, tuple[str, Needs, Window]] = {}
        if snapshot.is_at_once:
            for leaf, window in zip(snapshot.leaves, windows, strict=True):
                if leaf.stream.name in self.streams:
                    found[leaf.name] = leaf.stream.name, needs_of(leaf.spec, at), window
            return found
        begin = at - sum(window.spec.reach_back for window in windows)  # through windows over windows
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
        lines = dict.fromkeys(way.described for way in self.ways.values())
        return [*lines, *(f"table `{name}`, as it is" for name in self.question.once.tables.values())]

    def answer(self, frames: Mapping[str, pl.DataFrame]) -> Answer:
        """The relation, given the rows of all parts."""
        number, snapshot = self.manifest.number, self.question.snapshot
        present, names = self.present, list(snapshot.plan.schema.names)
        if self.same_as is not None:  # a standing query has said it already
            standing, found = self.question.queries[self.same_as], self._read(self.same_as, frames)
            rows = access_paths.last_answer(standing, self.streams, found, answers_of(standing))
            called = dict(zip(rows.columns[1:], standing.plan.schema.names, strict=False))
            shown = None if present is None else present.shown
            return Answer(number, shown, rows.drop("at", "#arrival_ts").rename(called))
        if present is None:
            return Answer(number, None, relation(snapshot.plan, {}, {}, -END, -END))
        if self.synopses is not None:
            span = self.synopses.fit.span
            shown = present.shown if span == self._span[1] else span.stop - 1
            return Answer(number, shown, self.synopses.rows(frames).select(names))
        given = self._rows(frames, present)
        clock, at = (END, END) if snapshot.is_at_once else (present.clock, present.at)
        if present.clock > END:
            raise QueryError(f"instants beyond {END} cannot be asked about", code="unsupported")
        tables = {n: self._changes_of(t) for n, t in snapshot.tables.items()}
        changes = {name: all_of.filter(pl.col(AT) < present.clock) for name, all_of in tables.items()}
        result = relation(snapshot.plan, given, changes, clock, at)
        about: int | None = present.shown
        if not self.streams:  # only answers: what these are about
            instants = [frame["at"].max() for frame in given.values() if "at" in frame.columns]
            about = max((each for each in instants if isinstance(each, int)), default=None)
        return Answer(number, about, result.select(names))

    def _read(self, name: str, frames: Mapping[str, pl.DataFrame]) -> list[pl.DataFrame]:
        return [frames[part.name] for part in self.ways[name].parts]

    def _rows(
        self, frames: Mapping[str, pl.DataFrame], present: access_paths.Present
    ) -> dict[str, pl.DataFrame]:
        snapshot, once = self.question.snapshot, self.question.once
        found: dict[str, pl.DataFrame] = {}
        leaves = {leaf.name: leaf for leaf in snapshot.leaves}
        named = {name: leaf.stream for name, leaf in leaves.items()} or snapshot.streams
        for name, stream in named.items():
            if stream.name in once.answers:
                standing = self.question.queries[once.answers[stream.name]]
                below = {s.name: self.record(s) for leaf in standing.plan.leaves for s in leaf.streams}
                answers = self._read(stream.name, frames)
                found[name] = access_paths.last_answer(standing, below, answers, stream)
            elif stream.name in once.tables:
                changes = self._changes_of(Table(once.tables[stream.name], stream.schema, TableKind.NRR))
                rows = from_synopses.copies(changes, list(stream.schema.names))
                found[name] = rows.with_columns(pl.lit(0, pl.Int64).alias("#arrival_ts"))
            else:
                parts = self._read(name, frames)
                rows = pl.concat(parts) if parts else empty_rows(stream)
                if name in leaves:
                    leaf = leaves[name]
                    rows = members(leaf.spec, stream, rows, present.at, leaf.alias)
                found[name] = rows
        return found

    def _changes_of(self, table: Table) -> pl.DataFrame:
        state = self.manifest.tables.get(table.name)
        history = () if state is None else state.options["history"]
        parts = parts_of(history, self.manifest.chunks.get(DRIVER, ()))
        return read_changes(self.question.log.store, table, parts)
