"""Where the rows of a stream can be had: the ways there are, and the cheapest of them.

A way is a list of parts, each read by itself: files that never change, or a search. What offers one, or
refuses, is a function: kept sub-windows, and archives (`windrow.engine.adhoc.question`).

Rows that are not there any more, or never were kept: what is kept, and how to keep more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra import Emit, Expression, Keep, Stream, StreamWord, Window
from windrow.algebra.explain.operators import quantity
from windrow.engine.adhoc.snapshot import Needs, QuestionSnapshot, without_order
from windrow.engine.output.outbox import StoredRows, stored_as
from windrow.engine.retention import of_stream
from windrow.errors import QueryError
from windrow.execution.kept_rows import empty_rows, kept_bytes, read_kept, span_of
from windrow.kernels.columnar.columns import polars_type, to_frame
from windrow.language.printer import print_query
from windrow.optimizer.prune_columns import prune_columns
from windrow.state.chunk import open_chunk
from windrow.state.names import ANSWERS, KEPT
from windrow.state.store import LocalStore, Store
from windrow.windows import INFINITY, Domain, Instant, RowsWindow

if TYPE_CHECKING:
    from windrow.engine.adhoc.from_synopses import NearMiss
    from windrow.engine.archives import Archiving
    from windrow.engine.records import StreamRecord
    from windrow.language.catalog import StandingQuery
    from windrow.state.manifest import ChunkRef, Manifest

Columns = frozenset[str]


def columns_read(snapshot: QuestionSnapshot) -> Mapping[str, Columns]:
    """By stream, the columns that any window over it needs, as the rule that narrows rows knows it; no others
    are taken from files. Streams that are read as a whole are left out: windows that count rows settle ties
    between rows of one instant by all columns."""
    if not snapshot.is_at_once:
        return {}
    top, _ = without_order(snapshot.asked)
    found: dict[str, Columns] = {}
    whole: set[str] = set()
    for window in (node for node in prune_columns(top).walk() if isinstance(node, Window)):
        alias = f"{window.origins[0].alias}."
        for stream in window.streams:
            if isinstance(window.spec, RowsWindow):
                whole.add(stream.name)
            names = {name.removeprefix(alias) for name in window.schema.names}
            found[stream.name] = found.get(stream.name, frozenset()) | names
    return {name: columns for name, columns in found.items() if name not in whole}


def _read_columns(store: Store, ref: ChunkRef, stream: Stream, columns: Columns | None) -> pl.DataFrame:
    """The rows of a sub-window, with NULL in all columns but those that are wanted."""
    rows = read_kept(store, ref, stream, columns)
    nothing = empty_rows(stream).schema
    missing = [pl.lit(None, kind).alias(name) for name, kind in nothing.items() if name not in rows.columns]
    return rows.with_columns(missing).select(nothing.names())


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def not_kept(wanted: WantedRows, missed: NearMiss | None = None) -> QueryError:
    """A stream does not keep the rows that a window needs; perhaps there are synopses that nearly do."""
    record, stream = wanted.record, wanted.record.stream
    spec, enough = wanted.window.spec, None
    if isinstance(spec, RowsWindow):
        enough = None if spec.partition_by else Keep(rows=spec.rows)
    elif spec.depth is not None and spec.depth > 1:
        enough = Keep(int(spec.reach_back))
    more = None if enough is None else keep_text(enough, stream.domain)
    nearly = "" if missed is None else f"; the synopsis of query `{missed.query}` does not do: {missed.why}"
    instead = "" if missed is None or missed.instead is None else f"; or {missed.instead}"
    if record.kept_from is None:
        return QueryError(
            f"stream `{stream.name}` keeps no rows to ask about{nearly}",
            code="not-kept",
            hint=f"declare it with {more or 'KEEP'}: rows are kept from then on{instead}",
        )
    asked = "all of them"
    if wanted.needs.rows is not None:
        asked = f"the last {wanted.needs.rows}"
    elif wanted.needs.begin != -INFINITY:
        asked = f"those from {_shown(stream, wanted.needs.begin)} on"
    assert stream.keep is not None
    return QueryError(
        f"stream `{stream.name}` keeps rows from {_shown(stream, record.kept_from)} on"
        f" ({keep_text(stream.keep, stream.domain)}), but this window needs {asked}{nearly}",
        code="not-kept",
        hint=f"ask about less, or declare the stream with {more}: rows are kept from then on{instead}"
        if more
        else "ask about a RANGE, or about ROWS, that is kept; longer windows need all rows from the first on",
    )


def keep_text(keep: Keep, domain: Domain) -> str:
    """A KEEP as it is written.

    >>> from windrow.algebra.catalog import Keep
    >>> keep_text(Keep(7_200_000_000), Domain.TIME), keep_text(Keep(rows=5), Domain.TIME)
    ('KEEP 2 HOURS', 'KEEP 5 ROWS')
    >>> keep_text(Keep(9), Domain.NUMBER)
    'KEEP 9'
    """
    if keep.rows is not None:
        return f"KEEP {keep.rows} ROWS"
    return f"KEEP {quantity(keep.ticks or 0, domain)}"


def _shown(stream: Stream, instant: Instant) -> str:
    if stream.domain is not Domain.TIME:
        return str(instant)
    return (_EPOCH + timedelta(microseconds=int(instant))).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True)
class WantedRows:
    """Rows of a stream that a window needs, as of a commit.

    Where the window is about one instant, `predicate` is what its rows must satisfy to matter.
    """

    record: StreamRecord
    needs: Needs
    manifest: Manifest
    store: Store
    window: Window
    predicate: Expression | None = None
    archives: Archiving | None = None
    #: the columns that are read; None: all
    columns: Columns | None = None


@dataclass(frozen=True)
class SubWindow:
    """A sub-window: what it is called, its last instant, what it costs, and how it is read.

    `file` is where it lies, if that is a Parquet file of the stream's rows; `check` fails if that is damaged.
    """

    name: str
    ends: int
    bytes: int
    fetch: Callable[[], pl.DataFrame] = field(compare=False, repr=False)
    file: str | None = None
    check: Callable[[], object] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class AccessPath:
    """A way to get rows; `tells_size`: what is said of it says already how much is read."""

    what: str
    parts: tuple[SubWindow, ...]
    tells_size: bool = False

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def described(self) -> str:
        """Where rows come from, for people."""
        if self.tells_size:
            return self.what
        count = len(self.parts)
        return f"{self.what}: {count} {'file' if count == 1 else 'files'}, {self.bytes} bytes"


def kept_sub_windows(wanted: WantedRows) -> AccessPath | None:
    """The rows the stream keeps, if they are all that is needed."""
    record, needs = wanted.record, wanted.needs
    if record.kept_from is None:
        return None
    refs = of_stream(wanted.manifest.chunks.get(KEPT, ()), record.stream.name)
    inside = [ref for ref in refs if span_of(ref)[0] <= needs.end]
    begin = needs.begin
    if needs.rows is not None:
        counted, begin = 0, INFINITY
        for ref in sorted(inside, key=lambda ref: -span_of(ref)[0]):
            if counted < needs.rows:
                begin = span_of(ref)[0]
                counted += ref.rows if span_of(ref)[1] <= needs.end else 0
        if counted < needs.rows:
            begin = -INFINITY
    if record.kept_from > begin:
        return None
    columns = wanted.columns
    of_columns = "" if columns is None else f" {', '.join(sorted(columns))}"
    parts = [
        SubWindow(
            f"{ref.name}{of_columns}",
            span_of(ref)[1],
            ref.bytes,
            partial(_read_columns, wanted.store, ref, record.stream, columns),
            wanted.store.place(ref.name) if isinstance(wanted.store, LocalStore) else None,
            partial(kept_bytes, wanted.store, ref),
        )
        for ref in inside
        if span_of(ref)[1] >= begin
    ]
    return AccessPath(f"kept sub-windows of `{record.stream.name}`", tuple(parts))


@dataclass(frozen=True)
class Present:
    """All rows below `clock` are known; the relation is asked about `at`, which `shown` names for people.

    The clock is that of the same query standing: the least promise of its streams. `at` is the last instant
    that this makes final, so that an answer is never taken back: the instant before the clock, or, where all
    windows slide, the last windows that have ended. Of streams that have ended, that of the last row counts.
    """

    clock: int
    at: int
    shown: int


def present_of(
    plan: Emit, streams: Mapping[str, StreamRecord], held: Sequence[Instant] = ()
) -> Present | None:
    """Now; None as long as nothing is known."""
    promised = [INFINITY if r.known.sealed else r.known.progress.progress for r in streams.values()]
    clock, grids = min([*promised, *held], default=INFINITY), [leaf.spec.grid for leaf in plan.leaves]
    sliding = [grid for grid in grids if grid is not None]
    slides = len(sliding) == len(grids)  # answers are about windows that have ended
    if clock == -INFINITY:
        return None
    if clock == INFINITY:
        seen = [record.greatest for record in streams.values() if record.greatest is not None]
        if not seen:
            return None
        clock = max(seen) + 1
        if slides:
            clock = max(grid.first_after(max(seen)) for grid in sliding)
    known = int(clock)
    if not slides:
        return Present(known, known - 1, known - 1)
    ends = [grid.end(grid.last_ending(known)) for grid in sliding]
    return Present(known, known, max(ends, default=known))


def way_to_answer(manifest: Manifest, store: Store, query: str) -> AccessPath:
    """The files with the newest answers of a query; commits name them until newer ones are there."""
    state = manifest.queries.get(query)
    if state is None:
        raise QueryError(f"query `{query}` has not begun yet", code="no-answer", hint="commit it first: run")
    parts = []
    for ref in manifest.chunks.get(ANSWERS, ()):
        place = stored_as(ref, state.options["id"])
        if place is not None:
            own = "" if place.follower is None else f" {place.follower.query}"
            name, size = f"{ref.name} {place.section}{own}", ref.operators[place.section].bytes
            parts.append(SubWindow(name, 0, size, partial(_read_answer, store, ref, place)))
    return AccessPath(f"the last answer of query `{query}`", tuple(parts))


def _read_answer(store: Store, ref: ChunkRef, place: StoredRows) -> pl.DataFrame:
    return to_frame(place.read(open_chunk(store, ref)))


def last_answer(
    query: StandingQuery,
    streams: Mapping[str, StreamRecord],
    found: Sequence[pl.DataFrame],
    as_stream: Stream,
) -> pl.DataFrame:
    """The rows of the last answer, as a stream of answers has them."""
    names = as_stream.schema.names
    kinds = {field.name: polars_type(field.type) for field in as_stream.schema}
    frames = [frame.rename(dict(zip(frame.columns, names, strict=True))) for frame in found]
    rows = pl.concat(frames) if frames else pl.DataFrame(schema=kinds)
    at = _instant(query, streams, rows)
    rows = rows.filter(pl.col("at") == at) if at is not None else rows.clear()
    return rows.with_columns(pl.lit(0, pl.Int64).alias("#arrival_ts"))


def _instant(query: StandingQuery, streams: Mapping[str, StreamRecord], rows: pl.DataFrame) -> int | None:
    """Which answer is the last: the one about the windows that ended last, since one without rows leaves no
    file; after the end of all streams, or where windows may be left out, the last that was given."""
    greatest = rows["at"].max()
    if query.max_gap is not None or all(record.known.sealed for record in streams.values()):
        return greatest if isinstance(greatest, int) else None
    if any(record.known.per is not None for record in streams.values()):
        raise QueryError(
            f"query `{query.name}` answers each group for itself: there is no answer about one instant",
            code="no-answer",
            hint="ask about the windows of its streams",
        )
    present = present_of(query.plan, streams)
    return None if present is None else present.shown


def texts_of(asked: Emit) -> tuple[str, ...]:
    """What a standing query that answers just what is asked would be called; none can be, without windows."""
    if not asked.is_by_extent:
        return ()
    try:
        return print_query(Emit(asked.input, StreamWord.AUTO)), print_query(asked)
    except QueryError:
        return ()


def same_query(manifest: Manifest, queries: Mapping[str, StandingQuery], texts: Sequence[str]) -> str | None:
    """A standing query of one of these texts that runs."""
    for name, query in queries.items() if texts else ():
        state = manifest.queries.get(name)
        if state is None or state.status != "running" or state.text not in texts:
            continue
        if query.plan.is_by_extent:
            return name
    return None
