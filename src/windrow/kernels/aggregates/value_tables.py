"""Tables of cells: states that are many small ones, each under a key of its own.

A holistic aggregate keeps a row for each group and value, a sketch one for each group and cell, an aggregate
that folds rows one for each group and row. How often each occurs is a COUNT like any other, with the cell as
one more key, so it slides with the rest; `windrow.kernels.aggregates.frequencies` makes values of the counts.

| cells    | key                          | kept with it      | for                                      |
|----------|------------------------------|-------------------|------------------------------------------|
| Values   | the argument values          | count             | MEDIAN, MODE, TOP_K, DISTINCT and others |
| Buckets  | the bucket of the value      | count             | APPROX_QUANTILE                          |
| Ranks    | the register of the hash     | count, most rank  | APPROX_COUNT_DISTINCT                    |
| Counters | the counters of the hash     | count             | APPROX_FREQUENCY                         |
| Ordered  | arguments, place in order    | count             | ARRAY_AGG, user-defined without merge    |
| Listed   | the value, its sub-window    | count             | FREQUENT, APPROX_TOP_K                   |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Aggregate, Size
from windrow.algebra.aggregates.approx_count_distinct import ApproxCountDistinct
from windrow.algebra.aggregates.approx_frequency import ApproxFrequency
from windrow.algebra.aggregates.approx_quantile import ApproxQuantile
from windrow.algebra.aggregates.approx_top_k import ApproxTopK
from windrow.algebra.aggregates.frequent import Frequent
from windrow.algebra.aggregates.in_order import InOrder
from windrow.algebra.types import DataType, Kind
from windrow.kernels.aggregates import frequent_items as lists
from windrow.kernels.aggregates.partials import Partial, Rows
from windrow.kernels.aggregates.sketches import buckets, counters
from windrow.kernels.columnar.codes import from_bits, row_order
from windrow.kernels.columnar.columns import polars_type, without_negative_zero
from windrow.kernels.columnar.combiners import GREATEST, Combiner, Lanes
from windrow.kernels.columnar.functions.casts import decimal_as_double
from windrow.kernels.columnar.hashing import hashed
from windrow.kernels.layouts import ROWS, Layout

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Cells(ABC):
    """What the rows of such a table are keyed by."""

    @abstractmethod
    def keys(self, rows: Rows) -> list[pl.Series]:
        """The key columns of single rows."""

    @property
    def partials(self) -> tuple[Partial, ...]:
        """What is kept of each cell; the first counts rows."""
        return (ROWS,)

    @property
    def subtracts(self) -> bool:
        """Whether a pane can be taken out of a sum of panes: all is added up, and nothing is left out."""
        added_up = all(c.invertible for partial in self.partials for c in partial.combiners)
        return added_up and type(self).pruned is Cells.pruned

    def counted(self, rows: Rows) -> pl.Series:
        """Which rows count."""
        return rows.counted

    def lift(self, rows: Rows) -> pl.DataFrame:
        """The cells of single rows, without the count: keys named `v0 …`, and what else is kept."""
        keys = [key.alias(f"v{place}") for place, key in enumerate(self.keys(rows))]
        kept = [column for partial in self.partials[1:] for column in partial.lift(rows)]
        return pl.DataFrame([*keys, *kept])

    def table(self, known: Sequence[pl.Series], rows: Rows) -> pl.DataFrame:
        """The cells of the rows that count, behind what else is known of these rows."""
        return pl.DataFrame([*known, *self.lift(rows)]).filter(self.counted(rows))

    def pruned(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """The cells that matter, of each combination of `by`."""
        return frame


@dataclass(frozen=True)
class Values(Cells):
    """Every distinct combination of argument values."""

    def keys(self, rows: Rows) -> list[pl.Series]:
        return [without_negative_zero(arg) for arg in rows.args]


@dataclass(frozen=True)
class Buckets(Cells):
    """Buckets of relative width."""

    steps: int
    kind: DataType

    def keys(self, rows: Rows) -> list[pl.Series]:
        return [pl.Series(buckets(_doubles(rows.args[0], self.kind), self.steps))]


@dataclass(frozen=True)
class Rank(Partial):
    """The greatest rank a register has seen."""

    precision: int
    kind: DataType

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (GREATEST,)

    def lift(self, rows: Rows) -> list[pl.Series]:
        words = hashed(rows.args[0], self.kind)
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

    def keys(self, rows: Rows) -> list[pl.Series]:
        words = hashed(rows.args[0], self.kind)
        return [pl.Series((words & np.uint64((1 << self.precision) - 1)).astype(np.int32))]

    @property
    def partials(self) -> tuple[Partial, ...]:
        return ROWS, Rank("rank", self.precision, self.kind)


@dataclass(frozen=True)
class Counters(Cells):
    """The counters of a count-min sketch; each row has one in every line."""

    width: int
    kind: DataType

    def keys(self, rows: Rows) -> list[pl.Series]:
        lines = counters(hashed(rows.args[0], self.kind), self.width)
        return [pl.Series(lines, dtype=pl.Array(pl.Int64, lines.shape[1]))]

    def table(self, known: Sequence[pl.Series], rows: Rows) -> pl.DataFrame:
        return super().table(known, rows).explode("v0")


@dataclass(frozen=True)
class Ordered(Cells):
    """All rows: their arguments, NULL included, and their place in the row order."""

    def counted(self, rows: Rows) -> pl.Series:
        return rows.chosen

    def keys(self, rows: Rows) -> list[pl.Series]:
        return [row_order(column) for column in (*rows.args, *rows.order)]


@dataclass(frozen=True)
class Listed(Values):
    """Values by sub-window; of one that is over only the most frequent, together with those of others."""

    k: int

    def keys(self, rows: Rows) -> list[pl.Series]:
        assert rows.sub_windows is not None
        return [*super().keys(rows), rows.sub_windows]

    def closed(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """What is kept of sub-windows that are over."""
        return lists.closed(frame, by, self.k)


def layout_of(cells: Cells, keys: Sequence[str], width: int) -> Layout:
    """The columns of a table of cells of so many arguments, behind these keys."""
    listed = cells.closed if isinstance(cells, Listed) else None
    values = tuple(f"v{place}" for place in range(width + (listed is not None)))
    prune = cells.pruned if type(cells).pruned is not Cells.pruned else None
    return Layout((*keys, *values), cells.partials, prune, listed)


@singledispatch
def cells_of(aggregate: Aggregate) -> Cells | None:
    """The cells of an aggregate that is bound to its types; None if it has one state per group."""
    return Values() if aggregate.size is Size.HOLISTIC else None


@cells_of.register
def _(aggregate: ApproxQuantile) -> Cells:
    return Buckets(aggregate.steps, _only(aggregate))


@cells_of.register
def _(aggregate: ApproxCountDistinct) -> Cells:
    return Ranks(aggregate.precision, _only(aggregate))


@cells_of.register
def _(aggregate: ApproxFrequency) -> Cells:
    return Counters(aggregate.width, _only(aggregate))


@cells_of.register
def _(aggregate: ApproxTopK) -> Cells:
    return Listed(aggregate.capacity)


@cells_of.register
def _(aggregate: Frequent) -> Cells:
    return Listed(aggregate.k)


@cells_of.register
def _(aggregate: InOrder) -> Cells:
    return Ordered()


def from_order(column: pl.Series, kind: DataType) -> pl.Series:
    """The values of a key column of `Ordered`: doubles are kept as codes there, which know -0.0."""
    if not kind.is_fractional:
        return column
    values = pl.Series(column.name, from_bits(column.fill_null(0).to_numpy())).cast(polars_type(kind))
    return values.zip_with(column.is_not_null(), values.clear(len(values)))


def _only(aggregate: Aggregate) -> DataType:
    assert aggregate.types is not None
    return aggregate.types[0]


def _doubles(column: pl.Series, kind: DataType) -> npt.NDArray[np.float64]:
    if kind.kind is Kind.DECIMAL:
        return decimal_as_double(column.fill_null(0).cast(column.dtype), kind)
    return column.cast(pl.Float64).fill_null(0.0).to_numpy()
