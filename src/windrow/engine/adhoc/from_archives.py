"""The rows of a window from an archive of the stream: found by key where the question says which it wants.

An archive may be ahead of the commit that is asked about. That does no harm: what came after the commit is
about later instants, and whether what has expired since could still be in the window is looked at when the
rows are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.algebra.catalog import Late
from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, conjunction, conjuncts
from windrow.algebra.operators import Filter
from windrow.algebra.types import Kind
from windrow.engine.adhoc.access_paths import AccessPath, SubWindow, WantedRows
from windrow.errors import StateError
from windrow.execution.kept_rows import empty_rows
from windrow.kernels.columnar.columns import frame_from_arrow
from windrow.windows.domain import ARRIVAL_TS, INFINITY

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit, Plan, Window
    from windrow.archive.piece import Reading
    from windrow.engine.archives.manager import Archiving, Kept
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


def from_archive(wanted: WantedRows) -> AccessPath | None:
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
    part = SubWindow(name, int(wanted.needs.end), size, partial(_fetched, wanted, search))
    return AccessPath(search.text, (part,), tells_size=True)


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


def _fetched(wanted: WantedRows, search: ArchivePath) -> pl.DataFrame:
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
