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

The last two are in `windrow.kernels.aggregates.selections`, user-defined states in
`windrow.kernels.aggregates.user_states`. Multisets and sketches have no partial of their own, but a table of
cells (`windrow.kernels.aggregates.value_tables`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.types import DataType, Kind
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.combiners import FLOAT_TOTAL, MOMENTS, TOTAL, Combiner, Lanes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

Decoder = Callable[["Sequence[Lanes]"], list[pl.Series]]


@dataclass(frozen=True)
class Rows:
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
    def lift(self, rows: Rows) -> list[pl.Series]:
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
class Counted(Partial):
    """A number of rows."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (TOTAL,)

    def lift(self, rows: Rows) -> list[pl.Series]:
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

    def lift(self, rows: Rows) -> list[pl.Series]:
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
        return TOTAL, FLOAT_TOTAL

    def lift(self, rows: Rows) -> list[pl.Series]:
        counted = rows.counted
        values = np.where(counted.to_numpy(), _doubles(rows.args[0]), 0.0)
        return self._columns([(counted.cast(pl.Int64).to_numpy(), values)])


@dataclass(frozen=True)
class FloatMoments(Partial):
    """The mean of doubles and their spread around it."""

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return (MOMENTS,)

    def lift(self, rows: Rows) -> list[pl.Series]:
        counted = rows.counted
        values = np.where(counted.to_numpy(), _doubles(rows.args[0]), 0.0)
        with np.errstate(invalid="ignore"):
            spread = values - values  # zero, or NaN if the value is not finite, and then for good
        return self._columns([(counted.cast(pl.Int64).to_numpy(), values + spread, spread)])


@dataclass(frozen=True)
class Part(Partial):
    """Some columns of a partial each of whose columns is combined by itself."""

    whole: Partial
    first: int
    stop: int

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return self.whole.combiners[self.first : self.stop]

    def lift(self, rows: Rows) -> list[pl.Series]:
        columns = self.whole.lift(rows)[self.first : self.stop]
        return [column.alias(self._name(place)) for place, column in enumerate(columns)]


def integers_of(column: pl.Series, kind: DataType) -> npt.NDArray[Any]:
    """An exact column as integers; 0 for NULL."""
    if kind.kind is Kind.DECIMAL:
        whole = column.fill_null(0).cast(pl.Decimal(kind.precision, kind.scale))
        return decimals.unscaled(whole)
    return column.fill_null(0).to_numpy()


def _doubles(column: pl.Series) -> npt.NDArray[np.float64]:
    return column.cast(pl.Float64).fill_null(0.0).to_numpy()
