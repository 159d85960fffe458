"""Holistic aggregates from tables of values and counts: one row per window, group and distinct value.

How often a value occurs in a window is a COUNT like any other, with the value as one more key; it slides
with the rest, by its exact inverse. What is left here is to make one value of each window's counts.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Aggregate, Size
from windrow.algebra.aggregates.distinct import Distinct
from windrow.algebra.aggregates.mode import Mode
from windrow.algebra.aggregates.quantile import Median
from windrow.algebra.aggregates.top_k import TopK
from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError
from windrow.kernels.functions.casting import decimal_as_double
from windrow.kernels.layout import Layout
from windrow.kernels.lowering import lower
from windrow.kernels.partials import Rows
from windrow.kernels.registry import partial_of

if TYPE_CHECKING:
    import numpy.typing as npt

WINDOW = ["w", "g"]
_COUNT = "rows.0"


@singledispatch
def of_counts(aggregate: Aggregate, counts: pl.DataFrame) -> pl.DataFrame:
    """(w, g, value) of each window and group, from (w, g, v0 …, rows.0)."""
    raise QueryError(f"{aggregate!r} has no form on columns", code="unsupported")


def of_nothing(aggregate: Aggregate) -> Any:
    """The value over no rows, as a column holds it."""
    value = aggregate.lower(aggregate.identity())
    return list(value) if isinstance(value, tuple) else value


@of_counts.register
def _(aggregate: Distinct, counts: pl.DataFrame) -> pl.DataFrame:
    """Each value once: as counts of one, or as rows of the aggregate below."""
    inner = aggregate.inner
    if inner.size is Size.HOLISTIC:
        return of_counts(inner, counts.with_columns(pl.lit(1, pl.Int64).alias(_COUNT)))
    partial = partial_of(inner, "p")
    args = tuple(counts[name] for name in counts.columns if name.startswith("v"))
    everyone = pl.Series([True]).new_from_index(0, counts.height)
    states = pl.DataFrame([*counts.select(WINDOW), *partial.lift(Rows(args, everyone, pl.DataFrame()))])
    merged = Layout((), (partial,)).merge(states, WINDOW)
    return merged.select(WINDOW).with_columns(lower(inner, partial, merged).alias("value"))


@of_counts.register
def _(aggregate: Mode, counts: pl.DataFrame) -> pl.DataFrame:
    return _ranked(counts).group_by(WINDOW, maintain_order=True).agg(pl.col("v0").first().alias("value"))


@of_counts.register
def _(aggregate: TopK, counts: pl.DataFrame) -> pl.DataFrame:
    pair = pl.struct(pl.col("v0").alias("value"), pl.col(_COUNT).alias("count"))
    return _ranked(counts).group_by(WINDOW, maintain_order=True).agg(pair.head(aggregate.k).alias("value"))


@of_counts.register
def _(aggregate: Median, counts: pl.DataFrame) -> pl.DataFrame:
    """The value at position p·(n−1) of each window's sorted values, between two of them interpolated."""
    ordered = counts.sort([*WINDOW, "v0"])
    groups = ordered.group_by(WINDOW, maintain_order=True).agg(pl.col(_COUNT).sum())
    size = groups[_COUNT].to_numpy()
    before = np.cumsum(size) - size
    position = aggregate.fraction * (size - 1)
    below, above = np.floor(position), np.ceil(position)
    assert aggregate.types is not None
    values, ranks = _doubles(ordered["v0"], aggregate.types[0]), np.cumsum(ordered[_COUNT].to_numpy())
    places = [np.searchsorted(ranks, before + rank.astype(np.int64), side="right") for rank in (below, above)]
    low, high = values[places[0]], values[places[1]]
    with np.errstate(invalid="ignore"):
        between = low + (position - below) * (high - low)  # Spark's formula, to the last digit
    found = np.where((low == high) | (below == above), low, between)
    return groups.select(WINDOW).with_columns(pl.Series("value", found))


def _ranked(counts: pl.DataFrame) -> pl.DataFrame:
    """The most frequent value of each window first, then the least."""
    return counts.sort([*WINDOW, _COUNT, "v0"], descending=[False, False, True, False])


def _doubles(column: pl.Series, kind: DataType) -> npt.NDArray[np.float64]:
    if kind.kind is Kind.DECIMAL:
        return decimal_as_double(column, kind)
    return column.cast(pl.Float64).to_numpy()
