"""Partials: the state of each aggregate as columns, and these as lanes of numbers to combine.

`lift` makes the columns of single rows, combiners combine lanes, `windrow.kernels.aggregates.lowering` makes
values of the result: the algebra of `windrow.algebra.aggregates` on whole columns.

| state        | columns                                            | inverse                         |
|--------------|----------------------------------------------------|---------------------------------|
| CountPartial | n                                                  | exact                           |
| ExactTotal   | n, limbs of Σx (and of Σx²)                        | exact (integers, decimals)      |
| FloatTotal   | n, Σx                                              | never: combined only            |
| FloatMoments | n, mean, Σ(x−mean)²                                | never: combined only            |
| Paired       | n, means of x and y, Σ(x−x̄)², Σ(y−ȳ)², Σ(x−x̄)(y−ȳ)  | never: combined only            |
| Extreme      | n, the value                                       | none exists                     |
| Edge         | n, the value, its place: its instant, all columns  | none exists                     |
| Chosen       | n, the value, its place: by the other value        | none exists                     |
| Bits         | n, the bits                                        | none is used                    |
| UserState    | n, the state as bytes                              | none is known                   |

Extreme, Edge and Chosen are one of the rows seen. Their lane is a code in the order of these, so that all of
them are minima and maxima of integers. Multisets and sketches have no partial of their own, but a table of
cells (`windrow.kernels.aggregates.value_tables`).

Calls of the user's code cannot be made on arrays; they are made one by one, and only where both states have
rows. A single row is not a state yet: it is kept as it is until the rows of its pane and group are gathered,
and these are then folded by `step`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Definition
from windrow.algebra.aggregates.plain_values import decoded, encoded
from windrow.algebra.types import DataType, Kind
from windrow.kernels.columnar import columns as columnar, decimals
from windrow.kernels.columnar.combiners import (
    BITWISE,
    FLOAT_TOTAL,
    GREATEST,
    LEAST,
    MOMENTS,
    PAIR_MOMENTS,
    TOTAL,
    Combiner,
    Lanes,
)
from windrow.windows.domain import Doubles, Ints, Numbers

Decoder = Callable[[Sequence[Lanes]], list[pl.Series]]


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

    def numbers(self) -> tuple[Ints, list[Doubles]]:
        """For each row 1 if it is counted, and its arguments as doubles; 0 if it is not."""
        counted = self.counted.to_numpy()
        doubles = (arg.cast(pl.Float64).fill_null(0.0).to_numpy() for arg in self.args)
        return counted.astype(np.int64), [np.where(counted, values, 0.0) for values in doubles]


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

    combiners = (TOTAL,)

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
        values = self._integers(rows.args[0].zip_with(counted, rows.args[0].clear(len(counted))).fill_null(0))
        lanes = [counted.cast(pl.Int64).to_numpy(), *decimals.split(values, self.limbs)]
        lanes += decimals.squares(values, self.limbs) if self.squared else []
        return self._columns([tuple(lanes)])

    def _integers(self, column: pl.Series) -> Numbers:
        if self.kind.kind is not Kind.DECIMAL:
            return column.to_numpy()
        return decimals.unscaled(column.cast(pl.Decimal(self.kind.precision, self.kind.scale)))


@dataclass(frozen=True)
class FloatTotal(Partial):
    """The total of doubles, added as IEEE says."""

    combiners = (TOTAL, FLOAT_TOTAL)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        count, values = rows.numbers()
        return self._columns([(count, *values)])


@dataclass(frozen=True)
class FloatMoments(Partial):
    """The mean of doubles and their spread around it."""

    combiners = (MOMENTS,)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        count, (values,) = rows.numbers()
        with np.errstate(invalid="ignore"):
            spread = values - values  # zero, or NaN if the value is not finite, and then for good
        return self._columns([(count, values + spread, spread)])


@dataclass(frozen=True)
class Paired(Partial):
    """The means of two values and their spreads around them."""

    combiners = (PAIR_MOMENTS,)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        count, (x, y) = rows.numbers()
        with np.errstate(invalid="ignore"):
            spread = (x - x) + (y - y)
        return self._columns([(count, x + spread, y + spread, spread, spread, spread)])


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


@dataclass(frozen=True)
class SelectedPartial(Partial):
    """One of the rows: its place in an order is the lane, its columns follow."""

    greatest: bool

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, GREATEST if self.greatest else LEAST

    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        """Numbers in the order of the states: that of the columns behind the value."""
        columns = [name for name in frame.columns if name.startswith(f"{self.label}.")]
        return columnar.by_order(frame.select(columns[1:]), columns[2:])

    def _selected(
        self, counted: pl.Series, value: pl.Series, order: Iterable[pl.Series] = ()
    ) -> list[pl.Series]:
        columns = [counted.cast(pl.Int64), value, *order]
        return [column.alias(self._name(place)) for place, column in enumerate(columns)]

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
        return self._selected(rows.counted, rows.args[0])

    def codes(self, frame: pl.DataFrame) -> columnar.Codes:
        return columnar.by_value(frame[self._name(1)])


@dataclass(frozen=True)
class Edge(SelectedPartial):
    """The value of the first or the last row, NULL included."""

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        return self._selected(rows.chosen, rows.args[0], map(columnar.row_order, rows.order))


@dataclass(frozen=True)
class Chosen(SelectedPartial):
    """The first argument of the row whose second one is the least or the greatest."""

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        value, by = rows.args
        order = (columnar.row_order(columnar.without_negative_zero(column)) for column in (by, value))
        return self._selected(rows.chosen & by.is_not_null(), value, order)


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


#: what the bytes of a row that is not stepped yet begin with; no plain value begins so
_ROW = b"r"
_NOTHING = b""


@dataclass(frozen=True)
class Merging(Combiner):
    """States as bytes, merged by the user's code; empty bytes are the state of no rows."""

    definition: Definition

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return (np.full(shape, _NOTHING, dtype=object),)

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        left, right = np.broadcast_arrays(a[0], b[0])
        found = np.where(left == _NOTHING, right, left)
        both = (left != _NOTHING) & (right != _NOTHING)
        for place in zip(*np.nonzero(both), strict=True):
            found[place] = self.definition.merged(left[place], right[place])
        return (found,)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        return [pl.col(names[0])]

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        """The lists of each group, which `merged` has gathered, made one state each."""
        states = columns[0].to_list()
        found = np.empty(len(states), dtype=object)
        found[:] = [self._reduced(each) for each in states]
        return (found,)

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
        stored = pl.Series(self._name(1), states.tolist(), dtype=pl.Binary)
        return [pl.Series(self._name(0), count), stored]


def finals(definition: Definition, states: Sequence[bytes]) -> list[Any]:
    """The value of each state."""
    return [
        definition.result(definition.loaded(state) if state else definition.started()) for state in states
    ]
