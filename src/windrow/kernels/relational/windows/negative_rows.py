"""NT: a window that keeps its rows, and sends a negative row for each that expires.

Card: negative rows
    requirements  pieces with a known expiry
    time          twice the rows for everything above
    space         the rows of the window, besides what operators above keep
    source        Golab's thesis, 2.3.3 (the negative tuple approach)
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.kernels.relational.expiry_layouts import Fifo, Layout
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, Columns, N, together
from windrow.kernels.state import State

ROWS = "rows"


class NegativeRows(Operator):
    """Open pieces, each taken back when it ends."""

    name = "negative rows"

    def __init__(self, below: Operator, layout: Layout | None = None) -> None:
        self.inputs = (below,)
        self.columns = below.columns
        self.layout = layout or Fifo()
        self.kept: Columns = {n: d for n, d in self.columns.items() if n != VS}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (new,) = inputs
        opened = new.with_columns(pl.lit(FOREVER, pl.Int64).alias(VE))
        ending = new.filter(pl.col(VE) < FOREVER).select(list(self.kept))
        chunks = self.layout.add(state.of(ROWS), ending)
        expired, chunks = self.layout.due(chunks, step.slice.stop, self.kept)
        taken = expired.with_columns(pl.col(VE).alias(VS), pl.lit(FOREVER, pl.Int64).alias(VE), -pl.col(N))
        return State({ROWS: chunks}), together([opened, taken], self.columns)
