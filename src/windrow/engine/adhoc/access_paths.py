"""Where the rows of a stream can be had: the ways there are, and the cheapest of them.

A way is a list of parts, each read by itself: files that never change, or a search. What offers one, or
refuses, is a function: kept sub-windows, and archives (`windrow.engine.adhoc.from_archives`).

Rows that are not there any more, or never were kept: what is kept, and how to keep more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from windrow.engine.adhoc.columns import read_columns
from windrow.engine.retention import of_stream
from windrow.errors import QueryError
from windrow.execution.kept_rows import kept_bytes, span_of
from windrow.state.names import KEPT
from windrow.state.store import LocalStore
from windrow.windows.domain import INFINITY, Domain, Instant
from windrow.windows.ranges import LaggedWindow, RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.units import MICROSECONDS

if TYPE_CHECKING:
    import polars as pl

    from windrow.algebra.catalog import Keep, Stream
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Window
    from windrow.engine.adhoc.columns import Columns
    from windrow.engine.adhoc.needs import Needs
    from windrow.engine.adhoc.synopsis_fit import NearMiss
    from windrow.engine.archives.manager import Archiving
    from windrow.engine.records import StreamRecord
    from windrow.state.manifest import Manifest
    from windrow.state.store import Store


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def not_kept(wanted: WantedRows, window: Window, missed: NearMiss | None = None) -> QueryError:
    """A stream does not keep the rows that a window needs; perhaps there are synopses that nearly do."""
    record, stream = wanted.record, wanted.record.stream
    more = _enough(stream, window)
    nearly = "" if missed is None else f"; the synopsis of query `{missed.query}` does not do: {missed.why}"
    instead = "" if missed is None or missed.instead is None else f"; or {missed.instead}"
    if record.kept_from is None:
        return QueryError(
            f"stream `{stream.name}` keeps no rows to ask about{nearly}",
            code="not-kept",
            hint=f"declare it with {more or 'KEEP'}: rows are kept from then on{instead}",
        )
    asked = (
        "all of them"
        if wanted.needs.begin == -INFINITY
        else f"those from {_shown(stream, wanted.needs.begin)} on"
    )
    if wanted.needs.rows is not None:
        asked = f"the last {wanted.needs.rows}"
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
    return f"KEEP {_length(keep.ticks or 0, domain)}"


def _enough(stream: Stream, window: Window) -> str | None:
    match window.spec:
        case RangeWindow(range=length, slide=slide):
            return f"KEEP {_length(length + (slide or 0), stream.domain)}"
        case LaggedWindow(range=length, lag=lag, slide=slide):
            return f"KEEP {_length(length + lag + (slide or 0), stream.domain)}"
        case RowsWindow(rows=rows) if not window.spec.partition_by:
            return f"KEEP {rows} ROWS"
    return None


def _length(ticks: int, domain: Domain) -> str:
    if domain is not Domain.TIME:
        return str(ticks)
    units = [(name, size) for name, size in reversed(MICROSECONDS.items()) if ticks % size == 0]
    name, size = units[0]
    count = ticks // size
    return f"{count} {name[:-1] if count == 1 else name}"


def _shown(stream: Stream, instant: Instant) -> str:
    if stream.domain is not Domain.TIME:
        return str(instant)
    return (_EPOCH + timedelta(microseconds=int(instant))).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True)
class WantedRows:
    """Rows of a stream that a window needs, as of a commit.

    `window` is given where it is about one instant, `predicate` is what its rows must satisfy to matter.
    """

    record: StreamRecord
    needs: Needs
    manifest: Manifest
    store: Store
    window: Window | None = None
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


OneWay: TypeAlias = Callable[[WantedRows], AccessPath | None]


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
            partial(read_columns, wanted.store, ref, record.stream, columns),
            wanted.store.place(ref.name) if isinstance(wanted.store, LocalStore) else None,
            partial(kept_bytes, wanted.store, ref),
        )
        for ref in inside
        if span_of(ref)[1] >= begin
    ]
    return AccessPath(f"kept sub-windows of `{record.stream.name}`", tuple(parts))


def cheapest(wanted: WantedRows, offers: Sequence[OneWay]) -> AccessPath | None:
    """The way that reads least, the first of those that read the same; None if there is none."""
    found = [way for offer in offers if (way := offer(wanted)) is not None]
    return min(found, key=lambda way: way.bytes, default=None)
