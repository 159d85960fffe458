"""Holistic aggregates and sketches from tables of cells: one row per window, group and cell.

How often a value occurs in a window is a COUNT like any other, with the value as one more key; it slides
with the rest, by its exact inverse. What is left here is to make one value of each window's counts.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Aggregate
from windrow.algebra.aggregates.approx_count_distinct import ApproxCountDistinct
from windrow.algebra.aggregates.approx_frequency import LINES, ApproxFrequency
from windrow.algebra.aggregates.approx_quantile import ApproxQuantile
from windrow.algebra.aggregates.approx_top_k import ApproxTopK
from windrow.algebra.aggregates.distinct import Distinct
from windrow.algebra.aggregates.frequent import Frequent
from windrow.algebra.aggregates.heavy_hitters import HeavyHitters
from windrow.algebra.aggregates.histogram import Histogram
from windrow.algebra.aggregates.in_order import InOrder
from windrow.algebra.aggregates.mode import Mode
from windrow.algebra.aggregates.quantile import Median
from windrow.algebra.aggregates.top_k import TopK
from windrow.algebra.types import DataType, Kind
from windrow.errors import QueryError
from windrow.kernels.aggregates import frequent_items as lists
from windrow.kernels.aggregates.lowering import lower
from windrow.kernels.aggregates.partials import Rows
from windrow.kernels.aggregates.registry import partial_of
from windrow.kernels.aggregates.sketches import estimates, representatives
from windrow.kernels.aggregates.value_tables import cells_of, from_order
from windrow.kernels.columnar.columns import column_of, values_of
from windrow.kernels.columnar.functions.casts import decimal_as_double
from windrow.kernels.layouts import Layout

if TYPE_CHECKING:
    import numpy.typing as npt

WINDOW = ["w", "g"]
#: aggregates that count a value right even if it stands in several rows of a window
TAKES_REPEATS = (Median, ApproxQuantile, InOrder)
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
    cells = cells_of(inner)
    args = tuple(counts[name] for name in counts.columns if name.startswith("v"))
    everyone = pl.Series([True]).new_from_index(0, counts.height)
    rows = Rows(args, everyone, pl.DataFrame())
    once = [*counts.select(WINDOW), everyone.cast(pl.Int64).alias(_COUNT)]
    if cells is not None:
        lifted = cells.table(once, rows)
        by = [*WINDOW, *(name for name in lifted.columns if name.startswith("v"))]
        return of_counts(inner, Layout((), cells.partials).merge(lifted, by))
    partial = partial_of(inner, "p")
    states = pl.DataFrame([*counts.select(WINDOW), *partial.lift(rows)])
    merged = Layout((), (partial,)).merge(states, WINDOW)
    return merged.select(WINDOW).with_columns(lower(inner, partial, merged).alias("value"))


@of_counts.register
def _(aggregate: Mode, counts: pl.DataFrame) -> pl.DataFrame:
    return _ranked(counts).group_by(WINDOW, maintain_order=True).agg(pl.col("v0").first().alias("value"))


@of_counts.register
def _(aggregate: TopK, counts: pl.DataFrame) -> pl.DataFrame:
    return _arrays(_ranked(counts), aggregate.k)


@of_counts.register
def _(aggregate: Histogram, counts: pl.DataFrame) -> pl.DataFrame:
    return _arrays(counts.sort([*WINDOW, "v0"]))


@of_counts.register
def _(aggregate: Frequent, counts: pl.DataFrame) -> pl.DataFrame:
    """Sub-windows that are still open are over for whoever asks."""
    found = lists.exceeding(lists.closed(counts, WINDOW, aggregate.k), WINDOW)
    return _arrays(_ranked(found))


@of_counts.register
def _(aggregate: HeavyHitters, counts: pl.DataFrame) -> pl.DataFrame:
    totals = counts.group_by(WINDOW).agg(pl.col(_COUNT).sum().alias("total"))
    part, whole = aggregate.fraction.as_integer_ratio()
    limits = [total * part // whole for total in totals["total"].to_list()]
    limited = counts.join(totals.with_columns(pl.Series("limit", limits, dtype=pl.Int64)), on=WINDOW)
    return _arrays(_ranked(limited.filter(pl.col(_COUNT) > pl.col("limit"))))


@of_counts.register
def _(aggregate: ApproxTopK, counts: pl.DataFrame) -> pl.DataFrame:
    kept = lists.closed(counts, WINDOW, aggregate.capacity)
    return _arrays(_ranked(kept.filter(pl.col("v0").is_not_null())), aggregate.k)


@of_counts.register
def _(aggregate: ApproxCountDistinct, counts: pl.DataFrame) -> pl.DataFrame:
    """How many registers have each rank, and the estimate from that."""
    ordered = counts.sort(WINDOW)
    groups = ordered.group_by(WINDOW, maintain_order=True).len()
    sizes = groups["len"].to_numpy().astype(np.int64)
    histograms = np.zeros((groups.height, 66 - aggregate.precision), dtype=np.int64)
    np.add.at(histograms, (np.repeat(np.arange(len(sizes)), sizes), ordered["rank.0"].to_numpy()), 1)
    histograms[:, 0] = aggregate.registers - sizes
    return groups.select(WINDOW).with_columns(pl.Series("value", estimates(histograms)))


@of_counts.register
def _(aggregate: ApproxFrequency, counts: pl.DataFrame) -> pl.DataFrame:
    """The least of the value's counters; one that is not there is 0."""
    windows = counts.select(WINDOW).unique()
    mine = counts.filter(pl.col("v0").is_in(list(aggregate.counters)))
    least = mine.group_by(WINDOW).agg(pl.col(_COUNT).min().alias("value"), pl.len().alias("lines"))
    known = least.filter(pl.col("lines") == LINES).drop("lines")
    return windows.join(known, on=WINDOW, how="left").with_columns(pl.col("value").fill_null(0))


@of_counts.register
def _(aggregate: ApproxQuantile, counts: pl.DataFrame) -> pl.DataFrame:
    """What the bucket of the value at position ⌊p·(n−1)⌋ stands for."""
    ordered, groups, size, before = _sorted(counts)
    rank = np.floor(aggregate.fraction * (size - 1)).astype(np.int64)
    places = np.searchsorted(np.cumsum(ordered[_COUNT].to_numpy()), before + rank, side="right")
    found = representatives(ordered["v0"].to_numpy()[places], aggregate.steps)
    return groups.select(WINDOW).with_columns(pl.Series("value", found))


@of_counts.register
def _(aggregate: InOrder, counts: pl.DataFrame) -> pl.DataFrame:
    """All rows of a window in their order, folded."""
    assert aggregate.types is not None
    assert aggregate.result is not None
    width, names = len(aggregate.types), [name for name in counts.columns if name.startswith("v")]
    ordered = counts.sort([*WINDOW, *names[width:], *names[:width]])
    columns = [
        values_of(from_order(ordered[name], kind), kind)
        for name, kind in zip(names, aggregate.types, strict=False)
    ]
    rows, copies = list(zip(*columns, strict=True)), ordered[_COUNT].to_list()
    groups = ordered.group_by(WINDOW, maintain_order=True).len()
    ends = np.cumsum(groups["len"].to_numpy()).tolist()
    found = [
        aggregate.folded(
            row for row, count in zip(rows[begin:end], copies[begin:end], strict=True) for _ in range(count)
        )
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    value = column_of("value", aggregate.result, found)
    return groups.select(WINDOW).with_columns(value)


@of_counts.register
def _(aggregate: Median, counts: pl.DataFrame) -> pl.DataFrame:
    """The value at position p·(n−1) of each window's sorted values, between two of them interpolated."""
    ordered, groups, size, before = _sorted(counts)
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


def _sorted(
    counts: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cells in order; the windows, how many values each has, and how many come before it."""
    ordered = counts.sort([*WINDOW, "v0"])
    groups = ordered.group_by(WINDOW, maintain_order=True).agg(pl.col(_COUNT).sum())
    size = groups[_COUNT].to_numpy()
    return ordered, groups, size, np.cumsum(size) - size


def _ranked(counts: pl.DataFrame) -> pl.DataFrame:
    """The most frequent value of each window first, then the least."""
    return counts.sort([*WINDOW, _COUNT, "v0"], descending=[False, False, True, False])


def _arrays(ranked: pl.DataFrame, most: int | None = None) -> pl.DataFrame:
    """The first values of each window with their counts, as an array."""
    pair = pl.struct(pl.col("v0").alias("value"), pl.col(_COUNT).alias("count"))
    pairs = pair if most is None else pair.head(most)
    return ranked.group_by(WINDOW, maintain_order=True).agg(pairs.alias("value"))


def _doubles(column: pl.Series, kind: DataType) -> npt.NDArray[np.float64]:
    if kind.kind is Kind.DECIMAL:
        return decimal_as_double(column, kind)
    return column.cast(pl.Float64).to_numpy()
