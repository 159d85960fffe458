"""Selections: partials that are one of the rows seen, the least or the greatest in some order.

MIN, MAX and ANY_VALUE go by the value, FIRST and LAST by the row's place: its instant, then all its columns.
The lane is a code in that order, so that all of them are minima and maxima of integers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.kernels.aggregates.partials import Decoder, Partial, Rows
from windrow.kernels.columnar.codes import Codes, by_order, by_value, row_order
from windrow.kernels.columnar.combiners import GREATEST, LEAST, TOTAL, Combiner, Lanes


@dataclass(frozen=True)
class Selected(Partial):
    """One of the rows: its place in an order is the lane, its columns follow."""

    greatest: bool

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, GREATEST if self.greatest else LEAST

    @abstractmethod
    def codes(self, frame: pl.DataFrame) -> Codes:
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
class Extreme(Selected):
    """The least or the greatest value."""

    def lift(self, rows: Rows) -> list[pl.Series]:
        return [rows.counted.cast(pl.Int64).alias(self._name(0)), rows.args[0].alias(self._name(1))]

    def codes(self, frame: pl.DataFrame) -> Codes:
        return by_value(frame[self._name(1)])


@dataclass(frozen=True)
class Edge(Selected):
    """The value of the first or the last row, NULL included. Column 1 is the value, then comes the order."""

    def lift(self, rows: Rows) -> list[pl.Series]:
        order = [row_order(column).alias(self._name(2 + place)) for place, column in enumerate(rows.order)]
        return [rows.chosen.cast(pl.Int64).alias(self._name(0)), rows.args[0].alias(self._name(1)), *order]

    def codes(self, frame: pl.DataFrame) -> Codes:
        columns = [name for name in frame.columns if name.startswith(f"{self.label}.")]
        return by_order(frame.select(columns[1:]), columns[2:])
