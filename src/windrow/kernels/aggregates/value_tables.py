"""Tables of cells: states that are many small ones, each under a key of its own.

A holistic aggregate keeps a row for each group and value, a sketch one for each group and cell, an aggregate
that folds rows one for each group and row. How often each occurs is a COUNT like any other, with the cell as
one more key, so it slides with the rest; `windrow.kernels.aggregates.lowering` makes values of the counts.

| cells    | key                          | kept with it      | for                                      |
|----------|------------------------------|-------------------|------------------------------------------|
| Values   | the argument values          | count             | MEDIAN, MODE, TOP_K, DISTINCT and others |
| Buckets  | the bucket of the value      | count             | APPROX_QUANTILE                          |
| Ranks    | the register of the hash     | count, most rank  | APPROX_COUNT_DISTINCT                    |
| Counters | the counters of the hash     | count             | APPROX_FREQUENCY                         |
| Ordered  | arguments, place in order    | count             | ARRAY_AGG, user-defined without merge    |
| Listed   | the value, its sub-window    | count             | FREQUENT, APPROX_TOP_K                   |

A table of FREQUENT has the value `v0`, the sub-window `v1` and how often the one occurs in the other. What is
kept of a sub-window that is over has no `v1` any more: its k most frequent values, and under no value the
count of the last of them. Both add up over sub-windows as counts do, so they slide as counts do:

    v0    v1    rows.0
    a     7     3          open: counted
    a     NULL  12         what lists say of a value
    NULL  NULL  5          the threshold

Card: frequent items
    requirements  sub-windows leave as a whole, in the order they came
    time          sorting the counts of a sub-window once, when it is over; then as counts of at most k values
    space         counts of the open sub-windows, at most k + 1 counts of each one that is over
    source        Golab's thesis, 6.2 (Algorithm 6)

The arithmetic of sketches on whole columns has the same operations in the same order as in
`windrow.algebra.aggregates`, each rounded as IEEE says, so that the numbers are the same to the last bit.

>>> from windrow.algebra.aggregates.approx_quantile import bucket, representative
>>> values = np.array([0.0, 1.5, -200.0, np.inf, np.nan])
>>> buckets(values, 50).tolist() == [bucket(value, 50) for value in values]
True
>>> representatives(buckets(values, 50), 50).tolist()
[0.0, 1.509933774834437, -200.95184713375795, inf, nan]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.algebra import DataType, Kind, aggregates as agg
from windrow.algebra.aggregates import approx_count_distinct, approx_frequency, in_order
from windrow.algebra.aggregates.approx_quantile import LOWEST, greatest
from windrow.kernels.aggregates.partials import LiftedRows, Partial
from windrow.kernels.columnar import columns, hashing
from windrow.kernels.columnar.combiners import GREATEST, Lanes
from windrow.kernels.columnar.functions.casts import decimal_as_double
from windrow.kernels.state import ROWS, TableLayout
from windrow.windows.domain import Doubles, Ints

VALUE, SUB_WINDOW, COUNT = "v0", "v1", "rows.0"
_PLACE = "#rank"


def ranked(counts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Counts of open sub-windows in order, with the place of each in its list, from 0 on as `#rank`."""
    parts = [*by, SUB_WINDOW]
    ordered = counts.sort([*parts, COUNT, VALUE], descending=[False] * len(parts) + [True, False])
    return ordered.with_columns(pl.int_range(pl.len()).over(parts).alias(_PLACE))


def listed(ordered: pl.DataFrame, by: Sequence[str], k: int) -> pl.DataFrame:
    """What is kept of ranked sub-windows when they are over: a count per value, and the threshold."""
    total = pl.col(COUNT).sum()
    lists = ordered.filter(pl.col(_PLACE) < k).group_by([*by, VALUE]).agg(total)
    limits = ordered.filter(pl.col(_PLACE) == k - 1).group_by(by).agg(total)
    nothing = [pl.lit(None, ordered.schema[name]).alias(name) for name in (VALUE, SUB_WINDOW)]
    return pl.concat(
        part.with_columns(nothing[n:]).select(*by, VALUE, SUB_WINDOW, COUNT)
        for n, part in enumerate((limits, lists))
    )


def closed(frame: pl.DataFrame, by: Sequence[str], k: int) -> pl.DataFrame:
    """The table after all its sub-windows are over.

    >>> seen = pl.DataFrame({"pane": [0, 0, 0], "v0": ["a", "b", "c"], "v1": [0, 0, 0], "rows.0": [5, 3, 1]})
    >>> closed(seen, ["pane"], 2).sort("v0").rows()
    [(0, None, None, 3), (0, 'a', None, 5), (0, 'b', None, 3)]
    >>> again = closed(closed(seen, ["pane"], 2), ["pane"], 2)
    >>> again.sort("v0").equals(closed(seen, ["pane"], 2).sort("v0"))
    True
    """
    still_open = pl.col(SUB_WINDOW).is_not_null()
    counted, kept = frame.filter(still_open), frame.filter(~still_open)
    if not counted.height:
        return frame
    found = listed(ranked(counted, by), by, k).select(frame.columns)
    if not kept.height:
        return found
    keys = [*by, VALUE, SUB_WINDOW]
    return pl.concat([kept, found]).group_by(keys).agg(pl.col(COUNT).sum()).select(frame.columns)


def exceeding(kept: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The values whose lists say more than the threshold, with what they say."""
    values = kept.filter(pl.col(VALUE).is_not_null())
    thresholds = kept.filter(pl.col(VALUE).is_null()).select(*by, pl.col(COUNT).alias("δ"))
    limited = values.join(thresholds, on=list(by), how="left", nulls_equal=True)
    return limited.filter(pl.col(COUNT) > pl.col("δ").fill_null(0)).drop("δ")


def buckets(values: Doubles, steps: int) -> Ints:
    """The numbers of the buckets that values are in."""
    finite = np.isfinite(values)
    half, exponent = np.frexp(np.where(finite, np.abs(values), 1.0))
    numbers = (exponent.astype(np.int64) - LOWEST) * steps
    numbers += np.floor((2 * half - 1) * steps).astype(np.int64) + 1
    numbers = np.where(finite, numbers, greatest(steps))
    numbers = np.where(values == 0, 0, np.where(values < 0, -numbers, numbers))
    return np.where(np.isnan(values), greatest(steps) + 1, numbers)


def representatives(numbers: Ints, steps: int) -> Doubles:
    """The values that buckets stand for."""
    size = np.abs(numbers)
    octave, step = np.divmod(np.clip(size, 1, greatest(steps) - 1) - 1, steps)
    low = steps + step
    mean = 2 * low * (low + 1) / (steps * (2 * low + 1))
    found = np.ldexp(mean, (octave + LOWEST - 1).astype(np.int32))
    found = np.where(size == greatest(steps), np.inf, np.where(size == 0, 0.0, found))
    return np.where(size > greatest(steps), np.nan, np.where(numbers < 0, -found, found))


def counters(words: hashing.Words, width: int) -> Ints:
    """The counters of hashes, one column for each line."""
    lines = np.arange(approx_frequency.LINES, dtype=np.uint64)
    places = hashing.mixed(words[:, None] ^ (lines + np.uint64(1))[None, :]) & np.uint64(width - 1)
    return places.astype(np.int64) + (lines * np.uint64(width)).astype(np.int64)[None, :]


def estimates(histograms: Ints) -> Ints:
    """The number of different values, for each row of how many registers have rank 0, 1, …"""
    registers = histograms.sum(axis=1)
    total = registers * _tau(1 - histograms[:, -1] / registers)
    for rank in range(histograms.shape[1] - 2, 0, -1):
        total = (total + histograms[:, rank]) * 0.5
    total += registers * _sigma(histograms[:, 0] / registers)
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.rint(approx_count_distinct.ALPHA * registers * registers / total), dtype=np.int64
        )


def _sigma(share: Doubles) -> Doubles:
    power, weight, total = share.copy(), 1.0, share.copy()
    empty = share == 1
    power[empty] = 0.0
    while True:
        power *= power
        before = total
        total = total + power * weight
        weight += weight
        if (before == total).all():
            return np.where(empty, np.inf, total)


def _tau(share: Doubles) -> Doubles:
    nothing = (share == 0) | (share == 1)
    share = np.where(nothing, 1.0, share)
    weight, total = 1.0, 1 - share
    while True:
        share = np.sqrt(share)
        before = total
        weight *= 0.5
        total = total - (1 - share) * (1 - share) * weight
        if (before == total).all():
            return np.where(nothing, 0.0, total / 3)


@dataclass(frozen=True)
class Cells(ABC):
    """What the rows of such a table are keyed by."""

    @abstractmethod
    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        """The key columns of single rows."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        """What is kept of each cell; the first counts rows."""
        return (ROWS,)

    @property
    def subtracts(self) -> bool:
        """Whether a pane can be taken out of a sum of panes: all is added up."""
        return all(combiner.invertible for partial in self.partials for combiner in partial.combiners)

    def counted(self, rows: LiftedRows) -> pl.Series:
        """Which rows count."""
        return rows.counted

    def lift(self, rows: LiftedRows) -> pl.DataFrame:
        """The cells of single rows, without the count: keys named `v0 …`, and what else is kept."""
        keys = [key.alias(f"v{place}") for place, key in enumerate(self.keys(rows))]
        kept = [column for partial in self.partials[1:] for column in partial.lift(rows)]
        return pl.DataFrame([*keys, *kept])

    def table(self, known: Sequence[pl.Series], rows: LiftedRows) -> pl.DataFrame:
        """The cells of the rows that count, behind what else is known of these rows."""
        return pl.DataFrame([*known, *self.lift(rows)]).filter(self.counted(rows))


@dataclass(frozen=True)
class Values(Cells):
    """Every distinct combination of argument values."""

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        return [columns.without_negative_zero(arg) for arg in rows.args]


@dataclass(frozen=True)
class Buckets(Cells):
    """Buckets of relative width."""

    steps: int
    kind: DataType

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        return [pl.Series(buckets(doubles(rows.args[0], self.kind), self.steps))]


@dataclass(frozen=True)
class RankPartial(Partial):
    """The greatest rank a register has seen."""

    precision: int
    kind: DataType

    combiners = (GREATEST,)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        words = hashing.hashed(rows.args[0], self.kind)
        rest = (words >> np.uint64(self.precision)) | np.uint64(1 << (64 - self.precision))
        lowest = (rest & (~rest + np.uint64(1))).astype(np.float64)  # a power of two, hence exact
        return self._columns([(np.frexp(lowest)[1],)])

    def _columns(self, lanes: Sequence[Lanes]) -> list[pl.Series]:
        ((ranks,),) = lanes
        return [pl.Series(self._name(0), np.maximum(ranks, 0).astype(np.int8))]  # 0: no rows


@dataclass(frozen=True)
class Ranks(Cells):
    """The registers of HyperLogLog."""

    precision: int
    kind: DataType

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        words = hashing.hashed(rows.args[0], self.kind)
        return [pl.Series((words & np.uint64((1 << self.precision) - 1)).astype(np.int32))]

    @property
    def partials(self) -> tuple[Partial, ...]:
        return ROWS, RankPartial("rank", self.precision, self.kind)


@dataclass(frozen=True)
class Counters(Cells):
    """The counters of a count-min sketch; each row has one in every line."""

    width: int
    kind: DataType

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        lines = counters(hashing.hashed(rows.args[0], self.kind), self.width)
        return [pl.Series(lines, dtype=pl.Array(pl.Int64, lines.shape[1]))]

    def table(self, known: Sequence[pl.Series], rows: LiftedRows) -> pl.DataFrame:
        return super().table(known, rows).explode("v0")


@dataclass(frozen=True)
class OrderedRows(Cells):
    """All rows: their arguments, NULL included, and their place in the row order."""

    def counted(self, rows: LiftedRows) -> pl.Series:
        return rows.chosen

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        return [columns.row_order(column) for column in (*rows.args, *rows.order)]


@dataclass(frozen=True)
class Listed(Values):
    """Values by sub-window; of one that is over only the most frequent, together with those of others."""

    k: int

    def keys(self, rows: LiftedRows) -> list[pl.Series]:
        assert rows.sub_windows is not None
        return [*super().keys(rows), rows.sub_windows]

    def closed(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """What is kept of sub-windows that are over."""
        return closed(frame, by, self.k)


def merged_cells(
    cells: Cells, layout: TableLayout, known: Sequence[pl.Series], rows: LiftedRows
) -> pl.DataFrame:
    """The cells of rows as a table of its layout; `known` are their panes and groups."""
    ones = pl.Series(COUNT, [1], dtype=pl.Int64).new_from_index(0, len(rows.chosen))
    by = [known[0].name, *layout.keys]
    lifted = cells.table([*known, ones], rows)
    return layout.merge(lifted.select(*by, pl.exclude(by)), by)


def layout_of(cells: Cells, keys: Sequence[str], width: int) -> TableLayout:
    """The columns of a table of cells of so many arguments, behind these keys."""
    listed = cells.closed if isinstance(cells, Listed) else None
    values = tuple(f"v{place}" for place in range(width + (listed is not None)))
    return TableLayout((*keys, *values), cells.partials, listed)


def cells_of(aggregate: agg.AggregateFunction) -> Cells | None:
    """The cells of an aggregate that is bound to its types; None if it has one state per group."""
    match aggregate:
        case agg.ApproxQuantile():
            return Buckets(aggregate.steps, only_type(aggregate))
        case agg.ApproxCountDistinct():
            return Ranks(aggregate.precision, only_type(aggregate))
        case agg.ApproxFrequency():
            return Counters(aggregate.width, only_type(aggregate))
        case agg.ApproxTopK():
            return Listed(aggregate.capacity)
        case agg.Frequent():
            return Listed(aggregate.k)
        case in_order.InOrder():
            return OrderedRows()
    return Values() if aggregate.size is agg.Size.HOLISTIC else None


def from_order(column: pl.Series, kind: DataType) -> pl.Series:
    """The values of a key column of `OrderedRows`: doubles are kept as codes there, which know -0.0."""
    if not kind.is_fractional:
        return column
    values = pl.Series(column.name, columns.from_bits(column.fill_null(0).to_numpy())).cast(
        columns.polars_type(kind)
    )
    return columns.masked(values, column.is_not_null().to_numpy())


def only_type(aggregate: agg.AggregateFunction) -> DataType:
    assert aggregate.types is not None
    return aggregate.types[0]


def doubles(column: pl.Series, kind: DataType) -> Doubles:
    """Numbers as the nearest doubles; 0 for NULL."""
    if kind.kind is Kind.DECIMAL:
        return decimal_as_double(column.fill_null(0).cast(column.dtype), kind)
    return column.cast(pl.Float64).fill_null(0.0).to_numpy()
