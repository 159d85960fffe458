"""From the committed outbox to the sinks, commit by commit.

What is delivered was committed before, so a crash repeats a delivery and never invents one. Rows of one
commit go out by instant, then '+' before '-', then in the order of rows: NULL first, NaN last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.engine.published import published
from windrow.kernels.codes import row_order
from windrow.kernels.columns import to_frame
from windrow.spark.sinks import Delivery
from windrow.state.reading import open_chunk

if TYPE_CHECKING:
    from windrow.state.entries import OutboxEntry
    from windrow.state.store import Store

#: rows that a sink is given at a time
PIECE = 1 << 18
#: more rows than these are sorted instant by instant
SORTED_AT_ONCE = 1 << 22


def pending(outbox: Iterable[OutboxEntry], section: str) -> dict[int, list[OutboxEntry]]:
    """What is still to be delivered of a section, by commit, oldest first."""
    found: dict[int, list[OutboxEntry]] = {}
    for entry in outbox:
        if section in entry.pending:
            found.setdefault(entry.commit, []).append(entry)
    return dict(sorted(found.items()))


def delivery(
    store: Store, query: str, section: str, commit: int, entries: list[OutboxEntry], schema: pa.Schema
) -> Delivery:
    """The rows of a section that came with one commit."""

    def tables() -> Iterator[pa.Table]:
        parts = [open_chunk(store, entry.ref).read(section) for entry in entries]
        for frame in in_order(parts):
            yield published(frame.to_arrow(), schema)

    return Delivery(query, commit, schema, tables)


def in_order(parts: list[pa.Table]) -> Iterator[pl.DataFrame]:
    """The rows of several tables in order of delivery, in pieces.

    >>> parts = [pa.table({"#at": [2, 1], "k": ["b", None]}), pa.table({"#at": [2], "k": ["a"]})]
    >>> [piece.rows() for piece in in_order(parts)]
    [[(1, None), (2, 'a'), (2, 'b')]]
    """
    total = sum(part.num_rows for part in parts)
    if total <= SORTED_AT_ONCE:
        yield from _sorted(parts).iter_slices(PIECE)
        return
    instants = sorted({at for part in parts for at in to_frame(part.select([0])).to_series().unique()})
    for at in instants:
        chosen = [to_frame(part).filter(pl.nth(0) == at).to_arrow() for part in parts]
        yield from _sorted([part for part in chosen if part.num_rows]).iter_slices(PIECE)


def _sorted(parts: list[pa.Table]) -> pl.DataFrame:
    """Sorted by as many columns as it takes: mostly the instant and the first column are enough."""
    frame = pl.concat([to_frame(part) for part in parts])
    keys = pl.DataFrame([_key(column).alias(str(place)) for place, column in enumerate(frame)])
    order = _order(keys, keys.columns[:2])
    if _has_ties(keys.select(keys.columns[:2]), order):
        order = _order(keys, keys.columns)
    return frame.select(pl.all().gather(order))


def _order(keys: pl.DataFrame, by: list[str]) -> pl.Series:
    return keys.select(pl.arg_sort_by([pl.col(name) for name in by])).to_series()


def _has_ties(keys: pl.DataFrame, order: pl.Series) -> bool:
    rows = keys.select(pl.all().gather(order))
    same = rows.select(
        pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in keys.columns)
    )
    return bool(same.to_series()[1:].any())


def _key(column: pl.Series) -> pl.Series:
    """A column that sorts as the order says: NaN after everything, arrays by their contents."""
    if column.dtype.is_nested():
        return column.map_elements(repr, pl.String, skip_nulls=True)
    return row_order(column)
