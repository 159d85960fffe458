"""A SELECT at a commit: which instant is now, which parts of what is kept it needs, and the answer from them.

A commit may be followed by others while parts are read; the same question is then looked at anew.

The rows of a window from an archive of the stream: found by key where the question says which it wants.

An archive may be ahead of the commit that is asked about. That does no harm: what came after the commit is
about later instants, and whether what has expired since could still be in the window is looked at when the
rows are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from typing import Any

import polars as pl
import pyarrow as pa

from windrow.algebra.catalog import Late, Stream, Table, TableKind
from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, conjunction, conjuncts
from windrow.algebra.operators import Filter
from windrow.algebra.plan import Emit, Plan, Window
from windrow.algebra.types import Kind
from windrow.archive.snapshot import Reading
from windrow.engine.adhoc import access_paths, from_synopses
from windrow.engine.adhoc.from_synopses import FromSynopses, relation
from windrow.engine.adhoc.snapshot import END, Needs, members, needs_of, snapshot_of
from windrow.engine.archives import Archiving, Kept
from windrow.engine.records import StreamRecord
from windrow.engine.tables import read_changes
from windrow.errors import QueryError, StateError
from windrow.execution.kept_rows import empty_rows
from windrow.kernels.columnar.columns import frame_from_arrow, published, rows_schema
from windrow.kernels.relational.signed_rows import N, consolidated
from windrow.kernels.relational.tables import AT
from windrow.language.binder.once import LATEST, WINDOW, Once, answers_of
from windrow.language.catalog import StandingQuery
from windrow.state.log import CommitLog
from windrow.state.manifest import Manifest
from windrow.state.names import DRIVER
from windrow.windows.domain import ARRIVAL_TS, INFINITY, Instant, read_instant
from windrow.windows.spec import WindowSpec

# ------------------------------------------------------------ lookup
#
# Whether an archive can answer for a window, and how much it would read.
#
# `key_bounds` finds what a predicate says about the key, `oldest_row` how far back a window reaches,
# `is_whole` whether an archive has all rows since then; `archive_for` puts them together and takes the
# archive that reads the fewest rows. The bounds of a way are no more than a sieve: whoever takes it still
# applies the predicate, and still cuts the rows to the window.


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

    def within(self, other: Bounds) -> Bounds:
        """What both allow."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Bounds(max(lows, default=None), min(highs, default=None))


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
            parts = [str(low), "≤"] if low is not None else []
            keys = " ".join([*parts, self.key, *(["≤", str(high)] if high is not None else [])])
        return f"archive {self.archive}, {keys}: reads {self.rows:,} rows"


def archive_for(
    archives: Archiving,
    source: str,
    window: WindowSpec | None,
    predicate: Expression | None = None,
    alias: str | None = None,
) -> ArchivePath | None:
    """The best archive for a window over a stream, or for the answer of a query (no window); None: none is.

    `predicate` is what rows must satisfy; its columns are called `alias.column`, or `column` without one.
    """
    ways = [
        way
        for name, kept in archives.kept.items()
        if kept.spec.source == source
        and (way := _way(archives, name, kept, window, predicate, alias)) is not None
    ]
    return min(ways, key=lambda way: (way.rows, way.bounds.is_open), default=None)


@contextmanager
def read_way(archives: Archiving, way: ArchivePath) -> Iterator[Reading]:
    """The state of the archive to read; `find_between(way.bounds.low, way.bounds.high)` gives the rows."""
    with archives.reading(way.archive) as reading:
        yield reading


def _way(
    archives: Archiving,
    name: str,
    kept: Kept,
    window: WindowSpec | None,
    predicate: Expression | None,
    alias: str | None,
) -> ArchivePath | None:
    with archives.reading(name) as reading:
        plan = None if kept.shape.is_of_stream else archives.plan_of(kept)
        oldest = _oldest(kept, plan, window, reading.now)
        if oldest is None or not is_whole(oldest, reading.now, kept.spec.keep, kept.complete_from):
            return None
        key = kept.spec.key
        bounds = key_bounds(predicate, f"{alias}.{key}" if alias else key) if predicate else Bounds()
        return ArchivePath(name, key, bounds, reading.rows_to_read(bounds.low, bounds.high))


def _oldest(kept: Kept, plan: Emit | None, window: WindowSpec | None, at: int) -> int | None:
    """The first instant of a row that is needed at an instant; None if that is not known."""
    if at == _NEVER:
        return None
    if plan is None:
        return oldest_row(window, at) if window is not None and window.wattr is None else None
    if window is not None or not kept.shape.is_relation:
        return None
    reaches = [oldest_row(leaf.spec, at) for leaf in plan.leaves]
    known = [each for each in reaches if each is not None]
    return min(known) if len(known) == len(reaches) else None


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
    found = Bounds()
    for part in conjuncts(predicate):
        found = found.within(_bounds(part, column))
    return found


def _bounds(part: Expression, column: str) -> Bounds:
    match part:
        case Call(function="in", args=(ColumnRef(name=name), *values)) if name == column:
            known = [_value(each) for each in values if isinstance(each, Literal)]
            if len(known) == len(values) and None not in known:
                return Bounds(min(known), max(known))
        case Call(function=op, args=(ColumnRef(name=name), Literal() as value)) if name == column:
            return _compared(op, _value(value))
        case Call(function=op, args=(Literal() as value, ColumnRef(name=name))) if name == column:
            return _compared(_TURNED.get(op, ""), _value(value))
    return Bounds()


def _compared(op: str, value: Any) -> Bounds:
    match op:
        case "=":
            return Bounds(value, value)
        case "<" | "<=":
            return Bounds(high=value)
        case ">" | ">=":
            return Bounds(low=value)
    return Bounds()


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


# ------------------------------------------------------------ from archives


#: bytes of a value, about, as an archive is read
_WIDTH = 8


def from_archive(wanted: access_paths.WantedRows) -> access_paths.AccessPath | None:
    """The rows of the window that have the keys the question asks for, if an archive has all of them."""
    stream, window = wanted.record.stream, wanted.window
    if wanted.archives is None or window is None or stream.late is not Late.DROP:
        return None
    if stream.wattr not in stream.schema:
        return None
    alias = window.origins[0].alias
    search = archive_for(wanted.archives, stream.name, window.spec, wanted.predicate, alias)
    if search is None:
        return None
    size = search.rows * _WIDTH * len(stream.schema)
    name = f"{search.archive} {search.bounds} {wanted.manifest.number}"
    part = access_paths.SubWindow(name, int(wanted.needs.end), size, partial(_fetched, wanted, search))
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


def _fetched(wanted: access_paths.WantedRows, search: ArchivePath) -> pl.DataFrame:
    assert wanted.archives is not None
    stream, kept = wanted.record.stream, wanted.archives.kept[search.archive]
    with read_way(wanted.archives, search) as reading:
        if not is_whole(int(wanted.needs.begin), reading.now, kept.spec.keep, kept.complete_from):
            raise _gone(search.archive)
        names, bounds = list(stream.schema.names), search.bounds
        if bounds.is_open:
            table = reading.scan(columns=names)
        else:
            table = reading.find_between(bounds.low, bounds.high, columns=names)
    rows = frame_from_arrow(table, stream.schema).with_columns(pl.lit(0, pl.Int64).alias(f"#{ARRIVAL_TS}"))
    return rows.select(empty_rows(stream).columns)


def _gone(archive: str) -> StateError:
    return StateError(
        f"archive `{archive}` has let go of rows of the window since the question was asked",
        code="too-fast",
        hint="ask again, or CREATE ARCHIVE with a longer KEEP",
    )


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
        standing: from_synopses.Standing | None = None,
        level: str = LATEST,
    ) -> None:
        self.once, self.queries, self.log, self.archives = once, queries, log, archives
        self.standing, self.level = standing, level
        self.snapshot = snapshot_of(once.plan)
        self.texts = access_paths.texts_of(once.plan)
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
        """The question at a commit."""
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
            near = self._fit if isinstance(self._fit, from_synopses.NearMiss) else None
            raise access_paths.not_kept(*missing, near)
        return found

    @cached_property
    def synopses(self) -> FromSynopses | None:
        """Synopses that have the answer. Where neither they nor rows have it as of now, those of a state
        before will do, if that is what was asked for."""
        found = self._fit
        if (
            isinstance(found, from_synopses.NearMiss)
            and self.question.level == WINDOW
            and self._rows_at[1] is not None
        ):
            found = self._earlier
        if self.question.asked is None or not isinstance(found, from_synopses.Fit):
            return None
        return FromSynopses(self.question.asked, found, self.manifest, self.question.log.store)

    @cached_property
    def _fit(self) -> from_synopses.Found:
        if self.present is None or len(self._needs) != 1 or not self.question.snapshot.is_at_once:
            return None
        stream, span = self._span
        shelves = self._shelves(stream)
        asked = self.question.asked if shelves else None
        return None if asked is None else from_synopses.fit(asked, shelves, self.streams[stream], span)

    @property
    def _earlier(self) -> from_synopses.Fit | None:
        asked, (stream, span) = self.question.asked, self._span
        assert asked is not None
        return from_synopses.earlier(asked, self._shelves(stream), self.streams[stream], span)

    def _shelves(self, stream: str) -> list[from_synopses.SynopsisShelf]:
        standing = self.question.standing
        return [] if standing is None else from_synopses.shelves_of(self.manifest, stream, standing)

    @property
    def _span(self) -> tuple[str, from_synopses.AttributeRange]:
        ((stream, needs, _),) = self._needs.values()
        begin = -END if needs.begin == -INFINITY else int(needs.begin)
        return stream, from_synopses.AttributeRange(begin, int(needs.end) + 1)

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
