"""From pieces of rows to cells: in which spans between two events of its group each row is there.

A row covers a range of its group's spans. Each range is cut into few aligned blocks of 2^l spans, as a
segment tree would; the rows of a block are combined once, and each span combines the blocks it lies in.

Card: dyadic cells
    requirements  associative and commutative combination (row order is part of the state where it matters)
    time          O((rows + spans) · log spans) combinations: one grouping for blocks, one for spans
    space         at most 2·log(spans) entries per row
    source        segment trees (Bentley 1977); rows × spans where that is not more

Aggregate values of cells: a cell is a group while none of its rows comes or goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.lowering import lower, of_counts, of_nothing
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.state import PANE

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


CELL = "#cell"


def lowered(measures: Measures, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`#cell`, then the value of each aggregate, one row per cell; states come in as tables by `pane`."""
    states = tables[GROUPS]
    columns = [_value(measure, states, tables.get(measure.table)) for measure in measures.measures]
    return pl.DataFrame([states[PANE].alias(CELL), *columns])


def _value(measure: Measure, states: pl.DataFrame, counts: pl.DataFrame | None) -> pl.Series:
    dtype = polars_type(measure.kind)
    if measure.partial is not None:
        return lower(measure.aggregate, measure.partial, states).cast(dtype).alias(measure.name)
    nothing = pl.Series([of_nothing(measure.aggregate)], dtype=dtype).new_from_index(0, states.height)
    if counts is None or not counts.height:
        return nothing.alias(measure.name)
    keyless = counts.select(
        pl.col(PANE).alias("w"), pl.lit(0, pl.Int64).alias("g"), pl.exclude(PANE, "^k[0-9]+$")
    )
    found = of_counts(measure.aggregate, keyless).with_columns(pl.lit(True).alias("known"))
    joined = states.select(pl.col(PANE).alias("w")).join(found, on="w", how="left", maintain_order="left")
    value = joined["value"].cast(dtype).zip_with(joined["known"].fill_null(False), nothing)
    return value.alias(measure.name)


#: rows × spans is done directly if it is no more than this many times the rows and spans
DIRECT = 4


def blocks(low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, level, block) of aligned blocks that make up each range.

    >>> [found.tolist() for found in blocks(np.array([1]), np.array([8]))]
    [[0, 0, 0], [0, 1, 2], [1, 1, 1]]
    """
    rows, levels, found = [], [], []
    row, level = np.arange(len(low)), 0
    inside = low < high
    row, low, high = row[inside], low[inside], high[inside]
    while len(row):
        left, right = (low & 1) == 1, (high & 1) == 1
        for some, block in ((left, low), (right, high - 1)):
            rows.append(row[some])
            levels.append(np.full(int(some.sum()), level))
            found.append(block[some])
        low, high, level = (low + left) >> 1, (high - right) >> 1, level + 1
        inside = low < high
        row, low, high = row[inside], low[inside], high[inside]
    empty = np.zeros(0, dtype=np.int64)
    parts = [np.concatenate(part) if part else empty for part in (rows, levels, found)]
    return parts[0], parts[1], parts[2]
