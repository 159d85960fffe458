"""Partials of whole numbers by their bits, and of pairs of values: MAX_BY and the covariances.

| state  | columns                                             | inverse              |
|--------|-----------------------------------------------------|----------------------|
| Bits   | n, the bits                                         | none is used         |
| Chosen | n, the value, its place: by the other value         | none exists          |
| Paired | n, means of x and y, Σ(x−x̄)², Σ(y−ȳ)², Σ(x−x̄)(y−ȳ)   | never: combined only |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.kernels.aggregates.partials import Partial, Rows
from windrow.kernels.aggregates.selections import Selected
from windrow.kernels.columnar.codes import Codes, by_order, row_order
from windrow.kernels.columnar.columns import without_negative_zero
from windrow.kernels.columnar.combiners import TOTAL, Combiner, Lanes, Moments, Pointwise


@dataclass(frozen=True)
class BitwiseLane(Pointwise):
    """One lane of whole numbers, combined bit by bit."""

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        column = pl.col(names[0])
        if self.ufunc is np.bitwise_and:
            return [column.bitwise_and()]
        return [column.bitwise_or() if self.ufunc is np.bitwise_or else column.bitwise_xor()]


BITWISE: dict[str, BitwiseLane] = {
    "BIT_AND": BitwiseLane(np.bitwise_and, -1),
    "BIT_OR": BitwiseLane(np.bitwise_or, 0),
    "BIT_XOR": BitwiseLane(np.bitwise_xor, 0),
}


@dataclass(frozen=True)
class Bits(Partial):
    """Whole numbers combined bit by bit; `operation` is the name of the aggregate."""

    operation: str

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, BITWISE[self.operation]

    def lift(self, rows: Rows) -> list[pl.Series]:
        counted = rows.counted.to_numpy()
        values = rows.args[0].cast(pl.Int64).fill_null(0).to_numpy()
        lane = np.where(counted, values, BITWISE[self.operation].neutral)
        return self._columns([(counted.astype(np.int64),), (lane,)])


@dataclass(frozen=True)
class Chosen(Selected):
    """The first argument of the row whose second one is the least or the greatest. Column 1 is the value."""

    def lift(self, rows: Rows) -> list[pl.Series]:
        value, by = rows.args
        counted = rows.chosen & by.is_not_null()
        order = [
            row_order(without_negative_zero(column)).alias(self._name(place))
            for place, column in ((2, by), (3, value))
        ]
        return [counted.cast(pl.Int64).alias(self._name(0)), value.alias(self._name(1)), *order]

    def codes(self, frame: pl.DataFrame) -> Codes:
        columns = [self._name(place) for place in (1, 2, 3)]
        return by_order(frame.select(columns), columns[1:])


@dataclass(frozen=True)
class PairMoments(Moments):
    """Moments of pairs, combined as Chan, Golub and LeVeque do; NaN in the spreads stands for good."""

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return (np.zeros(shape, dtype=np.int64), *(np.zeros(shape) for _ in range(5)))

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        m, n = a[0], b[0]
        with np.errstate(invalid="ignore", over="ignore"):
            share = n / np.maximum(m + n, 1)
            dx, dy, weight = b[1] - a[1], b[2] - a[2], share * m
            both = (
                a[1] + dx * share,
                a[2] + dy * share,
                a[3] + b[3] + dx * dx * weight,
                a[4] + b[4] + dy * dy * weight,
                a[5] + b[5] + dx * dy * weight,
            )
        rest = (
            np.where(n == 0, one, np.where(m == 0, two, mixed))
            for one, two, mixed in zip(a[1:], b[1:], both, strict=True)
        )
        return m + n, *rest

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        """Two passes: the means of all, then the distances from them."""
        n, x, y, *spreads = map(pl.col, names)
        count = n.sum()
        middles = [_middle(n, each, count) for each in (x, y)]
        apart = [pl.when(n > 0).then(each - middle) for each, middle in zip((x, y), middles, strict=True)]
        products = [apart[0] * apart[0], apart[1] * apart[1], apart[0] * apart[1]]
        sums = [spread.sum() + (n * product).sum() for spread, product in zip(spreads, products, strict=True)]
        return [each.alias(name) for each, name in zip([count, *middles, *sums], names, strict=True)]


def _middle(n: pl.Expr, mean: pl.Expr, count: pl.Expr) -> pl.Expr:
    """The mean of means; of equal ones exactly that, so that what does not vary has no spread."""
    known = pl.when(n > 0).then(mean)
    average = pl.when(n > 0).then(n * mean).sum() / count
    return pl.when(count == 0).then(0.0).when(known.min() == known.max()).then(known.min()).otherwise(average)


PAIR_MOMENTS = PairMoments()


@dataclass(frozen=True)
class Paired(Partial):
    """The means of two values and their spreads around them."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (PAIR_MOMENTS,)

    def lift(self, rows: Rows) -> list[pl.Series]:
        counted = rows.counted.to_numpy()
        x, y = (np.where(counted, arg.cast(pl.Float64).fill_null(0.0).to_numpy(), 0.0) for arg in rows.args)
        with np.errstate(invalid="ignore"):
            spread = (x - x) + (y - y)
        return self._columns([(counted.astype(np.int64), x + spread, y + spread, spread, spread, spread)])
