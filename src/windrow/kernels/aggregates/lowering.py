"""Lowering: from a combined state to the value of the aggregate, a column at a time.

Sums that do not fit their type fail here and nowhere before: only a sum that is asked for can overflow.
Quotients of exact numbers are rounded once; where 53 bits hold them numpy divides, else Python does.

Holistic aggregates and sketches are made of each window's cells, whose counts have slid as any COUNT does.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import singledispatch
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra import BIGINT, DataType, Kind, aggregates as agg
from windrow.algebra.aggregates import approx_frequency, in_order, user
from windrow.algebra.aggregates.numbers import checked, half_up
from windrow.errors import DataError, QueryError
from windrow.kernels.aggregates import measures, value_tables
from windrow.kernels.aggregates.partials import ExactTotal, LiftedRows, Partial, finals
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import column_of, masked, polars_type, values_of
from windrow.kernels.state import TableLayout
from windrow.windows.domain import Doubles, Ints, Numbers

_EXACT_DOUBLE = 2.0**53


@singledispatch
def lower(aggregate: agg.AggregateFunction, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    """The values of an aggregate, one for each row of states."""
    raise AssertionError(f"{aggregate!r} has no partial")


@lower.register(agg.ApproxCount)
@lower.register(agg.First)
@lower.register(agg.Min)
@lower.register(agg.MinBy)
def _(aggregate: agg.AggregateFunction, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 1)


@lower.register
def _(aggregate: agg.Count, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 0)


@lower.register
def _(aggregate: user.MergedAggregate, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    values = finals(aggregate.definition, _column(partial, frame, 1).to_list())
    return column_of("", _result(aggregate), values)


@lower.register(agg.BitOr)
@lower.register(agg.Sum)
def _(aggregate: agg.AggregateFunction, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count = _count(partial, frame)
    if not isinstance(partial, ExactTotal):
        return masked(_column(partial, frame, 1), count > 0)
    return masked(_fitted(_total(partial, frame), _result(aggregate), "the sum"), count > 0)


@lower.register
def _(aggregate: agg.Average, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count, result = _count(partial, frame), _result(aggregate)
    size = np.maximum(count, 1)
    if not isinstance(partial, ExactTotal):
        return masked(pl.Series(_column(partial, frame, 1).to_numpy() / size), count > 0)
    total = _total(partial, frame)
    if result.kind is Kind.DOUBLE:
        return masked(pl.Series(_quotient(total, size)), count > 0)
    unit = 10 ** (result.scale - partial.kind.scale)
    means = [half_up(t * unit, n) for t, n in zip(total.tolist(), size.tolist(), strict=True)]
    return masked(_fitted(decimals.narrow(decimals.ints(means)), result, "the average"), count > 0)


@lower.register
def _(aggregate: agg.VarPop, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count = _count(partial, frame)
    freedom = count - aggregate.lost
    size = np.maximum(freedom, 1)
    if isinstance(partial, ExactTotal):
        variance = _exact_variance(partial, frame, count, size)
    else:
        variance = _column(partial, frame, 2).to_numpy() / size
    root = isinstance(aggregate, agg.StddevPop)
    return masked(pl.Series(np.sqrt(variance) if root else variance), freedom > 0)


@lower.register
def _(aggregate: agg.CovarPop, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    """By the algebra's own formula, a state at a time: there is one for each answer."""
    states = zip(*(_column(partial, frame, place).to_list() for place in range(6)), strict=True)
    return pl.Series([aggregate.lower(state) for state in states], dtype=pl.Float64)


def _exact_variance(partial: ExactTotal, frame: pl.DataFrame, count: Ints, size: Ints) -> Doubles:
    """(n·Σx² − (Σx)²) / (n·freedom), rounded once."""
    total = _total(partial, frame)
    squares = _integers(partial, frame, 1 + partial.limbs, 2 * partial.limbs)
    bound = np.maximum(count * squares.astype(float), total.astype(float) ** 2)
    unit = 10 ** (2 * partial.kind.scale)
    if total.dtype != object and squares.dtype != object and (bound * unit < _EXACT_DOUBLE).all():
        return np.asarray((count * squares - total * total) / (np.maximum(count, 1) * size * unit))
    states = zip(count.tolist(), total.tolist(), squares.tolist(), size.tolist(), strict=True)
    return np.array([(n * q - t * t) / (max(n, 1) * f * unit) for n, t, q, f in states])


def _column(partial: Partial, frame: pl.DataFrame, place: int) -> pl.Series:
    return frame[f"{partial.label}.{place}"]


def _count(partial: Partial, frame: pl.DataFrame) -> Ints:
    return _column(partial, frame, 0).to_numpy()


def _total(partial: ExactTotal, frame: pl.DataFrame) -> Numbers:
    return _integers(partial, frame, 1, partial.limbs)


def _integers(partial: ExactTotal, frame: pl.DataFrame, first: int, limbs: int) -> Numbers:
    return decimals.joined([_column(partial, frame, first + i).to_numpy() for i in range(limbs)])


def _quotient(total: Numbers, size: Ints) -> Doubles:
    if total.dtype != object and (np.abs(total.astype(float)) < _EXACT_DOUBLE).all():
        return np.asarray(total / size)
    return np.array([t / n for t, n in zip(total.tolist(), size.tolist(), strict=True)])


def _fitted(values: Numbers, kind: DataType, what: str) -> pl.Series:
    """Exact integers as values of their type; a DataError where one does not fit."""
    if kind.kind is not Kind.DECIMAL:
        least, greatest = BIGINT.bounds
        wrong = [v for v in values if not least <= v <= greatest] if values.dtype == object else []
        if wrong:
            checked(int(wrong[0]), BIGINT, what)
        return pl.Series(values.astype(np.int64)).cast(polars_type(kind))
    long = decimals.too_long(values, kind)
    if long.any():
        raise DataError(
            f"{what} has more digits than {kind}",
            code="arithmetic-overflow",
            hint="cast the argument to DOUBLE",
        )
    return decimals.decimal_column(values, kind)


def _result(aggregate: agg.AggregateFunction) -> DataType:
    assert aggregate.result is not None
    return aggregate.result


WINDOW = ["w", "g"]
#: aggregates that count a value right even if it stands in several rows of a window
TAKES_REPEATS = (agg.Median, agg.PercentileDisc, agg.ApproxQuantile, in_order.InOrder)
_COUNT = "rows.0"


@singledispatch
def of_counts(aggregate: agg.AggregateFunction, counts: pl.DataFrame) -> pl.DataFrame:
    """(w, g, value) of each window and group, from (w, g, v0 …, rows.0)."""
    raise QueryError(f"{aggregate!r} has no form on columns", code="unsupported")


def of_nothing(aggregate: agg.AggregateFunction) -> Any:
    """The value over no rows, as a column holds it."""
    value = aggregate.lower(aggregate.identity())
    return list(value) if isinstance(value, tuple) else value


@of_counts.register
def _(aggregate: agg.DistinctValues, counts: pl.DataFrame) -> pl.DataFrame:
    """Each value once: as counts of one, or as rows of the aggregate below."""
    inner = aggregate.inner
    cells = value_tables.cells_of(inner)
    args = tuple(counts[name] for name in counts.columns if name.startswith("v"))
    everyone = pl.Series([True]).new_from_index(0, counts.height)
    rows = LiftedRows(args, everyone, pl.DataFrame())
    once = [*counts.select(WINDOW), everyone.cast(pl.Int64).alias(_COUNT)]
    if cells is not None:
        lifted = cells.table(once, rows)
        by = [*WINDOW, *(name for name in lifted.columns if name.startswith("v"))]
        return of_counts(inner, TableLayout((), cells.partials).merge(lifted, by))
    partial = measures.partial_of(inner, "p")
    states = pl.DataFrame([*counts.select(WINDOW), *partial.lift(rows)])
    merged = TableLayout((), (partial,)).merge(states, WINDOW)
    return merged.select(WINDOW).with_columns(lower(inner, partial, merged).alias("value"))


@of_counts.register
def _(aggregate: agg.Mode, counts: pl.DataFrame) -> pl.DataFrame:
    return _ranked(counts).group_by(WINDOW, maintain_order=True).agg(pl.col("v0").first().alias("value"))


@of_counts.register
def _(aggregate: agg.TopK, counts: pl.DataFrame) -> pl.DataFrame:
    return _arrays(_ranked(counts), aggregate.k)


@of_counts.register
def _(aggregate: agg.Histogram, counts: pl.DataFrame) -> pl.DataFrame:
    return _arrays(counts.sort([*WINDOW, "v0"]))


@of_counts.register
def _(aggregate: agg.Frequent, counts: pl.DataFrame) -> pl.DataFrame:
    """Sub-windows that are still open are over for whoever asks."""
    return _arrays(_ranked(value_tables.exceeding(value_tables.closed(counts, WINDOW, aggregate.k), WINDOW)))


@of_counts.register
def _(aggregate: agg.HeavyHitters, counts: pl.DataFrame) -> pl.DataFrame:
    totals = counts.group_by(WINDOW).agg(pl.col(_COUNT).sum().alias("total"))
    part, whole = aggregate.fraction.as_integer_ratio()
    # counts are whole numbers: at least x is more than the greatest one below x
    below = whole - 1 if aggregate.at_least else 0
    limits = [(total * part + below) // whole - aggregate.at_least for total in totals["total"].to_list()]
    limited = counts.join(totals.with_columns(pl.Series("limit", limits, dtype=pl.Int64)), on=WINDOW)
    return _arrays(_ranked(limited.filter(pl.col(_COUNT) > pl.col("limit"))))


@of_counts.register
def _(aggregate: agg.ApproxTopK, counts: pl.DataFrame) -> pl.DataFrame:
    kept = value_tables.closed(counts, WINDOW, aggregate.capacity)
    return _arrays(_ranked(kept.filter(pl.col("v0").is_not_null())), aggregate.k)


@of_counts.register
def _(aggregate: agg.ApproxCountDistinct, counts: pl.DataFrame) -> pl.DataFrame:
    """How many registers have each rank, and the estimate from that."""
    ordered = counts.sort(WINDOW)
    groups = ordered.group_by(WINDOW, maintain_order=True).len()
    sizes = groups["len"].to_numpy().astype(np.int64)
    histograms = np.zeros((groups.height, 66 - aggregate.precision), dtype=np.int64)
    np.add.at(histograms, (np.repeat(np.arange(len(sizes)), sizes), ordered["rank.0"].to_numpy()), 1)
    histograms[:, 0] = aggregate.registers - sizes
    return groups.select(WINDOW).with_columns(pl.Series("value", value_tables.estimates(histograms)))


@of_counts.register
def _(aggregate: agg.ApproxFrequency, counts: pl.DataFrame) -> pl.DataFrame:
    """The least of the value's counters; one that is not there is 0."""
    windows = counts.select(WINDOW).unique()
    mine = counts.filter(pl.col("v0").is_in(list(aggregate.counters)))
    least = mine.group_by(WINDOW).agg(pl.col(_COUNT).min().alias("value"), pl.len().alias("lines"))
    known = least.filter(pl.col("lines") == approx_frequency.LINES).drop("lines")
    return windows.join(known, on=WINDOW, how="left").with_columns(pl.col("value").fill_null(0))


@of_counts.register
def _(aggregate: agg.ApproxQuantile, counts: pl.DataFrame) -> pl.DataFrame:
    """What the bucket of the value at position ⌊p·(n−1)⌋ stands for."""
    ordered, windows, size, places = _sorted(counts)
    at = places(np.floor(aggregate.fraction * (size - 1)))
    found = value_tables.representatives(ordered["v0"].to_numpy()[at], aggregate.steps)
    return windows.with_columns(pl.Series("value", found))


@of_counts.register
def _(aggregate: in_order.InOrder, counts: pl.DataFrame) -> pl.DataFrame:
    """All rows of a window in their order, folded."""
    assert aggregate.types is not None
    assert aggregate.result is not None
    width, names = len(aggregate.types), [name for name in counts.columns if name.startswith("v")]
    ordered = counts.sort([*WINDOW, *names[width:], *names[:width]])
    args = zip(names, aggregate.types, strict=False)
    columns = [values_of(value_tables.from_order(ordered[name], kind), kind) for name, kind in args]
    rows, copies = list(zip(*columns, strict=True)), ordered[_COUNT].to_list()
    groups = ordered.group_by(WINDOW, maintain_order=True).len()
    ends = np.cumsum(groups["len"].to_numpy()).tolist()
    found = [
        aggregate.folded(
            row for row, count in zip(rows[begin:end], copies[begin:end], strict=True) for _ in range(count)
        )
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    return groups.select(WINDOW).with_columns(column_of("value", aggregate.result, found))


@of_counts.register
def _(aggregate: agg.Median, counts: pl.DataFrame) -> pl.DataFrame:
    """The value at position p·(n−1) of each window's sorted values, between two of them interpolated."""
    ordered, windows, size, places = _sorted(counts)
    position = aggregate.fraction * (size - 1)
    below, above = np.floor(position), np.ceil(position)
    values = value_tables.doubles(ordered["v0"], value_tables.only_type(aggregate))
    low, high = values[places(below)], values[places(above)]
    with np.errstate(invalid="ignore"):
        between = low + (position - below) * (high - low)  # Spark's formula, to the last digit
    found = np.where((low == high) | (below == above), low, between)
    return windows.with_columns(pl.Series("value", found))


@of_counts.register
def _(aggregate: agg.PercentileDisc, counts: pl.DataFrame) -> pl.DataFrame:
    """The value at rank ⌈p·n⌉ of each window's sorted values."""
    ordered, windows, size, places = _sorted(counts)
    part, whole = Decimal(repr(aggregate.fraction)).as_integer_ratio()
    rank = np.array([max(1, -(-part * n // whole)) for n in size.tolist()], dtype=np.int64)
    return windows.with_columns(ordered["v0"].gather(places(rank - 1)).alias("value"))


def _sorted(counts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Ints, Callable[[Numbers], Ints]]:
    """Cells in order; the windows; how many values each has; and where the cell of one value of each is, by
    its number among them, from 0 on."""
    ordered = counts.sort([*WINDOW, "v0"])
    groups = ordered.group_by(WINDOW, maintain_order=True).agg(pl.col(_COUNT).sum())
    size, seen = groups[_COUNT].to_numpy(), np.cumsum(ordered[_COUNT].to_numpy())
    before = np.cumsum(size) - size

    def places(numbers: Numbers) -> Ints:
        return np.asarray(np.searchsorted(seen, before + numbers.astype(np.int64), side="right"))

    return ordered, groups.select(WINDOW), size, places


def _ranked(counts: pl.DataFrame) -> pl.DataFrame:
    """The most frequent value of each window first, then the least."""
    return counts.sort([*WINDOW, _COUNT, "v0"], descending=[False, False, True, False])


def _arrays(ranked: pl.DataFrame, most: int | None = None) -> pl.DataFrame:
    """The first values of each window with their counts, as an array."""
    pair = pl.struct(pl.col("v0").alias("value"), pl.col(_COUNT).alias("count"))
    pairs = pair if most is None else pair.head(most)
    return ranked.group_by(WINDOW, maintain_order=True).agg(pairs.alias("value"))
