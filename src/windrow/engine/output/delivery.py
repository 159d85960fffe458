"""From the committed outbox to the sinks, commit by commit.

What is delivered was committed before, so a crash repeats a delivery and never invents one. Rows of one
commit go out by instant, then '+' before '-', then in the order of rows: NULL first, NaN last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.kernels.columnar.codes import row_order
from windrow.kernels.columnar.columns import to_frame

if TYPE_CHECKING:
    import numpy.typing as npt

#: rows that a sink is given at a time
PIECE = 1 << 18
#: more rows than these are sorted instant by instant
SORTED_AT_ONCE = 1 << 22


def in_order(parts: list[pa.Table]) -> Iterator[pl.DataFrame]:
    """The rows of several tables in order of delivery, in pieces.

    >>> parts = [pa.table({"#at": [2, 1], "k": ["b", None]}), pa.table({"#at": [2], "k": ["a"]})]
    >>> [piece.rows() for piece in in_order(parts)]
    [[(1, None), (2, 'a'), (2, 'b')]]
    """
    total = sum(part.num_rows for part in parts)
    if total <= SORTED_AT_ONCE:
        yield from sorted_rows([to_frame(part) for part in parts]).iter_slices(PIECE)
        return
    instants = sorted({at for part in parts for at in to_frame(part.select([0])).to_series().unique()})
    for at in instants:
        chosen = [to_frame(part).filter(pl.nth(0) == at) for part in parts]
        yield from sorted_rows([part for part in chosen if part.height]).iter_slices(PIECE)


def sorted_rows(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Sorted by as many columns as it takes: mostly the instant and the first column are enough."""
    frame = pl.concat(parts)
    known = _by_numbers(frame)
    if known is not None:
        return frame if len(known) == 0 else frame.select(pl.all().gather(pl.Series(known)))
    keys = pl.DataFrame([_key(column).alias(str(place)) for place, column in enumerate(frame)])
    order = _order(keys, keys.columns[:2])
    if _has_ties(keys.select(keys.columns[:2]), order):
        order = _order(keys, keys.columns)
    return frame.select(pl.all().gather(order))


def _by_numbers(frame: pl.DataFrame) -> npt.NDArray[np.int64] | None:
    """The order by the first columns, as many as it takes to have no ties, if these are integers: then it is
    that of all. None if they are not. Empty: it is in order already.

    Tasks write rows by instant and group, so that there are few runs to merge, which is what this sort does.

    >>> _by_numbers(pl.DataFrame({"#at": [1, 2, 1], "k": [4, 4, 3]})).tolist()
    [2, 0, 1]
    >>> _by_numbers(pl.DataFrame({"#at": [3, 2], "x": [0.5, 0.5]})).tolist()
    [1, 0]
    """
    code, spread = np.zeros(frame.height, dtype=np.int64), 1
    for place in range(frame.width):
        column = _integers(frame, place)
        if column is None:
            return None
        least = int(column.min())
        width = int(column.max()) - least + 1
        spread *= width
        if spread >= 1 << 62:
            return None
        code = code * width + (column - least)
        order = _without_ties(code)
        if order is not None:
            return order
    return None


def _integers(frame: pl.DataFrame, place: int) -> npt.NDArray[np.int64] | None:
    """A column of integers without NULL; None if it is no such column."""
    if place >= frame.width or not frame.height:
        return None
    column = frame.to_series(place)
    if not column.dtype.is_signed_integer() or column.null_count():
        return None
    return column.cast(pl.Int64).to_numpy()


def _without_ties(code: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """The order of numbers that all differ; empty if they are in order. None: some are the same."""
    if (np.diff(code) > 0).all():
        return np.empty(0, dtype=np.int64)
    order = np.argsort(code, kind="stable")
    return None if (np.diff(code[order]) == 0).any() else order


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
