"""Partials: the state of each aggregate as columns, and these as lanes of numbers to combine.

`lift` makes the columns of single rows, combiners combine lanes, `windrow.kernels.aggregates.lowering` makes
values of the result: the algebra of `windrow.algebra.aggregates` on whole columns.

| state            | columns                          | inverse                         |
|------------------|----------------------------------|---------------------------------|
| Counted          | n                                | exact                           |
| ExactTotal       | n, limbs of Σx (and of Σx²)      | exact (integers, decimals)      |
| FloatTotal       | n, Σx                            | never: combined only            |
| FloatMoments     | n, mean, Σ(x−mean)²              | never: combined only            |
| Extreme          | n, the value                     | none exists                     |
| Edge             | n, the value, its place in order | none exists                     |

Multisets and sketches have no partial of their own, but a table of
cells (`windrow.kernels.aggregates.value_tables`).

Selections: partials that are one of the rows seen, the least or the greatest in some order.

MIN, MAX and ANY_VALUE go by the value, FIRST and LAST by the row's place: its instant, then all its columns.
The lane is a code in that order, so that all of them are minima and maxima of integers.

Partials of whole numbers by their bits, and of pairs of values: MAX_BY and the covariances.

| state  | columns                                             | inverse              |
|--------|-----------------------------------------------------|----------------------|
| Bits   | n, the bits                                         | none is used         |
| Chosen | n, the value, its place: by the other value         | none exists          |
| Paired | n, means of x and y, Σ(x−x̄)², Σ(y−ȳ)², Σ(x−x̄)(y−ȳ)   | never: combined only |

The states of user-defined aggregates as columns: the number of rows, and the state as bytes.

Calls of the user's code cannot be made on arrays; they are made one by one, and only where both states have
rows. A single row is not a state yet: it is kept as it is until the rows of its pane and group are gathered,
and these are then folded by `step`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Definition
from windrow.algebra.aggregates.plain_values import decoded, encoded
from windrow.algebra.types import DataType, Kind
from windrow.kernels.columnar import columns as columnar
from windrow.kernels.columnar import combiners, decimals
from windrow.kernels.columnar.combiners import TOTAL, Combiner, Lanes
from windrow.windows.domain import Doubles, Numbers

Decoder = Callable[["Sequence[Lanes]"], list[pl.Series]]


@dataclass(frozen=True)
class LiftedRows:
    """What states are lifted from: argument values, which rows count, the rows' place in the order, and where
    it matters, the sub-windows they are in."""

    args: tuple[pl.Series, ...]
    chosen: pl.Series
    order: pl.DataFrame
    sub_windows: pl.Series | None = None

    @property
    def counted(self) -> pl.Series:
        """The chosen rows in which no argument is NULL."""
        result = self.chosen
        for arg in self.args:
            result = result & arg.is_not_null()
        return result


@dataclass(frozen=True)
class Partial(ABC):
    """A state as columns named `label.…`."""

    label: str

    @property
    @abstractmethod
    def combiners(self) -> tuple[Combiner, ...]:
        """How its lanes are combined; the first counts the values."""

    @abstractmethod
    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        """The columns of single rows."""

    def encode(self, frame: pl.DataFrame) -> tuple[list[Lanes], Decoder]:
        """The columns as lanes, and the way back: here each lane is a column."""
        names = [column for column in frame.columns if column.startswith(f"{self.label}.")]
        lanes: list[Lanes] = []
        for combiner in self.combiners:
            width = len(combiner.identity((0,)))
            lanes.append(tuple(frame[names.pop(0)].to_numpy() for _ in range(width)))
        return lanes, self._columns

    def _columns(self, lanes: Sequence[Lanes]) -> list[pl.Series]:
        flat = [lane for group in lanes for lane in group]
        return [pl.Series(self._name(place), lane) for place, lane in enumerate(flat)]

    def _name(self, place: int) -> str:
        return f"{self.label}.{place}"


@dataclass(frozen=True)
class CountPartial(Partial):
    """A number of rows."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (TOTAL,)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        return [rows.counted.cast(pl.Int64).alias(self._name(0))]


@dataclass(frozen=True)
class ExactTotal(Partial):
    """The total of integers, decimals or intervals, in limbs; `squared` also that of their squares."""

    kind: DataType
    squared: bool = False

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (TOTAL,) * (1 + self.limbs + (2 * self.limbs if self.squared else 0))

    @property
    def limbs(self) -> int:
        return decimals.limb_count(self.kind)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        counted = rows.counted
        values = integers_of(rows.args[0].zip_with(counted, rows.args[0].clear(len(counted))), self.kind)
        lanes = [counted.cast(pl.Int64).to_numpy(), *decimals.split(values, self.limbs)]
        lanes += decimals.squares(values, self.limbs) if self.squared else []
        return self._columns([tuple(lanes)])


@dataclass(frozen=True)
class FloatTotal(Partial):
    """The total of doubles, added as IEEE says."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, combiners.FLOAT_TOTAL

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        counted = rows.counted
        values = np.where(counted.to_numpy(), _doubles(rows.args[0]), 0.0)
        return self._columns([(counted.cast(pl.Int64).to_numpy(), values)])


@dataclass(frozen=True)
class FloatMoments(Partial):
    """The mean of doubles and their spread around it."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (combiners.MOMENTS,)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        counted = rows.counted
        values = np.where(counted.to_numpy(), _doubles(rows.args[0]), 0.0)
        with np.errstate(invalid="ignore"):
            spread = values - values  # zero, or NaN if the value is not finite, and then for good
        return self._columns([(counted.cast(pl.Int64).to_numpy(), values + spread, spread)])


@dataclass(frozen=True)
class PartialColumns(Partial):
    """Some columns of a partial each of whose columns is combined by itself."""

    whole: Partial
    first: int
    stop: int

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return self.whole.combiners[self.first : self.stop]

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        columns = self.whole.lift(rows)[self.first : self.stop]
        return [column.alias(self._name(place)) for place, column in enumerate(columns)]


def integers_of(column: pl.Series, kind: DataType) -> Numbers:
    """An exact column as integers; 0 for NULL."""
    if kind.kind is Kind.DECIMAL:
        whole = column.fill_null(0).cast(pl.Decimal(kind.precision, kind.scale))
        return decimals.unscaled(whole)
    return column.fill_null(0).to_numpy()


def _doubles(column: pl.Series) -> Doubles:
    return column.cast(pl.Float64).fill_null(0.0).to_numpy()


@dataclass(frozen=True)
class SelectedPartial(Partial):
    """One of the rows: its place in an order is the lane, its columns follow."""

    greatest: bool

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, combiners.GREATEST if self.greatest else combiners.LEAST

    @abstractmethod
    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        """Numbers in the order of the states."""

    def encode(self, frame: pl.DataFrame) -> tuple[list[Lanes], Decoder]:
        codes = self.codes(frame)
        count = frame[self._name(0)].to_numpy()
        code = np.where(count > 0, codes.numbers, self.combiners[1].identity((1,))[0])

        def decode(lanes: Sequence[Lanes]) -> list[pl.Series]:
            (count,), (code,) = lanes
            return [pl.Series(self._name(0), count), *codes.payload(code, count > 0)]

        return [(count,), (code,)], decode


@dataclass(frozen=True)
class Extreme(SelectedPartial):
    """The least or the greatest value."""

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        return [rows.counted.cast(pl.Int64).alias(self._name(0)), rows.args[0].alias(self._name(1))]

    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        return columnar.by_value(frame[self._name(1)])


@dataclass(frozen=True)
class Edge(SelectedPartial):
    """The value of the first or the last row, NULL included. Column 1 is the value, then comes the order."""

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        order = [
            columnar.row_order(column).alias(self._name(2 + place)) for place, column in enumerate(rows.order)
        ]
        return [rows.chosen.cast(pl.Int64).alias(self._name(0)), rows.args[0].alias(self._name(1)), *order]

    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        columns = [name for name in frame.columns if name.startswith(f"{self.label}.")]
        return columnar.by_order(frame.select(columns[1:]), columns[2:])


@dataclass(frozen=True)
class BitwiseLane(combiners.Pointwise):
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

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        counted = rows.counted.to_numpy()
        values = rows.args[0].cast(pl.Int64).fill_null(0).to_numpy()
        lane = np.where(counted, values, BITWISE[self.operation].neutral)
        return self._columns([(counted.astype(np.int64),), (lane,)])


@dataclass(frozen=True)
class Chosen(SelectedPartial):
    """The first argument of the row whose second one is the least or the greatest. Column 1 is the value."""

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        value, by = rows.args
        counted = rows.chosen & by.is_not_null()
        order = [
            columnar.row_order(columnar.without_negative_zero(column)).alias(self._name(place))
            for place, column in ((2, by), (3, value))
        ]
        return [counted.cast(pl.Int64).alias(self._name(0)), value.alias(self._name(1)), *order]

    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        columns = [self._name(place) for place in (1, 2, 3)]
        return columnar.by_order(frame.select(columns), columns[1:])


@dataclass(frozen=True)
class PairMoments(combiners.Moments):
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

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        counted = rows.counted.to_numpy()
        x, y = (np.where(counted, arg.cast(pl.Float64).fill_null(0.0).to_numpy(), 0.0) for arg in rows.args)
        with np.errstate(invalid="ignore"):
            spread = (x - x) + (y - y)
        return self._columns([(counted.astype(np.int64), x + spread, y + spread, spread, spread, spread)])


#: what the bytes of a row that is not stepped yet begin with; no plain value begins so
_ROW = b"r"
_NOTHING = b""


@dataclass(frozen=True)
class Merging:
    """States as bytes, merged by the user's code; empty bytes are the state of no rows."""

    definition: Definition
    invertible: bool = False
    chooses: bool = False

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return (np.full(shape, _NOTHING, dtype=object),)

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        left, right = np.broadcast_arrays(a[0], b[0])
        found = np.where(left == _NOTHING, right, left)
        both = (left != _NOTHING) & (right != _NOTHING)
        for place in zip(*np.nonzero(both), strict=True):
            found[place] = self.definition.merged(left[place], right[place])
        return (found,)

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        return combiners.scanned(self, lanes, axis)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        return [pl.col(names[0])]

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        """The lists of each group, which `merged` has gathered, made one state each."""
        return (_objects([self._reduced(states) for states in columns[0].to_list()]),)

    def _reduced(self, states: list[bytes]) -> bytes:
        own = self.definition
        rows = [decoded(state[1:]) for state in states if state.startswith(_ROW)]
        found = own.stored(own.stepped(own.started(), rows), "step") if rows else _NOTHING
        for state in states:
            if state and not state.startswith(_ROW):
                found = own.merged(found, state) if found else state
        return found


@dataclass(frozen=True)
class UserState(Partial):
    """The state of a user-defined aggregate with `merge`."""

    definition: Definition
    kinds: tuple[DataType, ...]

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, Merging(self.definition)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        chosen = rows.chosen.to_numpy()
        columns = [columnar.values_of(arg, kind) for arg, kind in zip(rows.args, self.kinds, strict=True)]
        states = np.full(len(chosen), _NOTHING, dtype=object)
        for place, args in enumerate(zip(*columns, strict=True)):
            if chosen[place]:
                states[place] = _ROW + encoded(args)
        return self._columns([(chosen.astype(np.int64),), (states,)])

    def _columns(self, lanes: Sequence[Lanes]) -> list[pl.Series]:
        (count,), (states,) = lanes
        return [
            pl.Series(self._name(0), count),
            pl.Series(self._name(1), states.tolist(), dtype=pl.Binary),
        ]


def finals(definition: Definition, states: Sequence[bytes]) -> list[Any]:
    """The value of each state."""
    return [
        definition.result(definition.loaded(state) if state else definition.started()) for state in states
    ]


def _objects(values: list[bytes]) -> Numbers:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
