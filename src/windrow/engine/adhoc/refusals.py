"""Rows that are not there any more, or never were kept: what is kept, and how to keep more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.windows.domain import INFINITY, Domain, Instant
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.units import MICROSECONDS

if TYPE_CHECKING:
    from windrow.algebra.catalog import Keep, Stream
    from windrow.algebra.plan import Window
    from windrow.engine.adhoc.access_paths import Wanted
    from windrow.engine.adhoc.synopsis_fit import NearMiss

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def not_kept(wanted: Wanted, window: Window, missed: NearMiss | None = None) -> QueryError:
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
