"""Which columns of a stream a SELECT reads: no others are taken from the files of kept rows.

The rule that narrows rows of standing queries knows it. What nobody reads is NULL in the rows that are given
to the plan. Only windows that count rows need all columns: they settle ties between rows of one instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.plan import Window
from windrow.engine.adhoc.snapshot import without_order
from windrow.execution.kept_rows import empty_rows, read_kept
from windrow.optimizer.prune_columns import prune_columns
from windrow.windows.rows import RowsWindow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windrow.algebra.catalog import Stream
    from windrow.engine.adhoc.snapshot import QuestionSnapshot
    from windrow.state.manifest import ChunkRef
    from windrow.state.store import Store

Columns = frozenset[str]


def columns_read(snapshot: QuestionSnapshot) -> Mapping[str, Columns]:
    """By stream, the columns that any window over it needs; streams that are read as a whole are left out."""
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


def read_columns(store: Store, ref: ChunkRef, stream: Stream, columns: Columns | None) -> pl.DataFrame:
    """The rows of a sub-window, with NULL in all columns but those that are wanted."""
    if columns is None:
        return read_kept(store, ref, stream)
    rows = read_kept(store, ref, stream, columns)
    nothing = empty_rows(stream).schema
    missing = [pl.lit(None, kind).alias(name) for name, kind in nothing.items() if name not in rows.columns]
    return rows.with_columns(missing).select(nothing.names())
