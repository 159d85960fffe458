"""The rows of a window from an archive of the stream: found by key where the question says which it wants.

An archive may be ahead of the commit that is asked about. That does no harm: what came after the commit is
about later instants, and whether what has expired since could still be in the window is looked at when the
rows are there.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.catalog import Late
from windrow.algebra.expressions import conjunction
from windrow.algebra.operators import Filter
from windrow.engine.adhoc.access_paths import AccessPath, SubWindow
from windrow.engine.archives.lookup import archive_for, is_whole, read_way
from windrow.errors import StateError
from windrow.execution.kept_rows import empty_rows
from windrow.kernels.columnar.columns import frame_from_arrow
from windrow.windows.domain import ARRIVAL_TS

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan, Window
    from windrow.engine.adhoc.access_paths import WantedRows
    from windrow.engine.archives.lookup import ArchivePath as Search

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


def _fetched(wanted: WantedRows, search: Search) -> pl.DataFrame:
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
