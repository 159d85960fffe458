"""EXCEPT ALL: max(0, k1 - k2) copies of each row.

Card: difference of counts
    requirements  any signed pieces
    time          events of the step, sorted
    space         two counts per value, and the copies' expiries that are known
    source        Golab's thesis, 3.5.2 (negation by frequency counts)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columns import picked
from windrow.kernels.general.distinct import found_in
from windrow.kernels.general.layouts import Calendar, Hashed, frame_of
from windrow.kernels.general.operator import Operator, Step
from windrow.kernels.general.pieces import (
    FOREVER,
    SIGNED,
    TS,
    TURN,
    VE,
    VS,
    Columns,
    N,
    blank,
    grouped,
)
from windrow.kernels.general.sweeps import START, codes, sweep
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.algebra.operators import Except

COUNTS, ENDS = "counts", "ends"
SIDE = "#side"


class Difference(Operator):
    """Counts of both sides, by value."""

    name = "−"

    def __init__(self, plan: Except, left: Operator, right: Operator) -> None:
        self.inputs = (left, right)
        self.names = [plan.left.schema.names, plan.right.schema.names]
        self.values: Columns = {n: d for n, d in left.columns.items() if n not in (*SIGNED, TURN)}
        self.columns = dict(self.values) | dict(SIGNED)
        self.counted: Columns = dict(self.values) | {SIDE: pl.Int8(), N: pl.Int64()}
        self.ending: Columns = dict(self.counted) | {VE: pl.Int64()}
        self.calendar = Calendar()

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = pl.concat([self._side(side, frame) for side, frame in enumerate(inputs)])
        new = grouped(new, list(self.values))
        ending = new.filter(pl.col(VE) < FOREVER).select(list(self.ending))
        over, later = self.calendar.due(
            self.calendar.add(state.of(ENDS), ending), step.slice.stop, self.ending
        )
        if not new.height and not over.height:
            return State({COUNTS: state.of(COUNTS), ENDS: later}), blank(self.columns)
        columns = [*self.values, SIDE, N]
        began = new.select(*columns, pl.col(VS).alias("#at"))
        ended = over.select(*self.values, SIDE, -pl.col(N), pl.col(VE).alias("#at"))
        events = pl.concat([began, ended])
        before = frame_of(state.of(COUNTS), self.counted).select(
            *columns, pl.lit(START, pl.Int64).alias("#at")
        )
        names = list(self.values)
        before = before.filter(found_in(before, events, names))
        found = self._differences(pl.concat([events, before]), names)
        return State(
            {COUNTS: Hashed().add(state.of(COUNTS), events.select(list(self.counted))), ENDS: later}
        ), found

    def _side(self, side: int, frame: pl.DataFrame) -> pl.DataFrame:
        first = self.names[0]
        columns = [
            frame[a].cast(self.values[b]).alias(b) for a, b in zip(self.names[side], first, strict=True)
        ]
        rows = pl.DataFrame([*columns, frame[N], frame[VS], frame[VE]])
        return rows.with_columns(pl.lit(side, pl.Int8).alias(SIDE))

    def _differences(self, events: pl.DataFrame, names: list[str]) -> pl.DataFrame:
        n, right = events[N].to_numpy(), events[SIDE].to_numpy() == 1
        lanes = [np.where(right, 0, n), np.where(right, n, 0)]
        swept = sweep(codes(events, names), events["#at"].to_numpy(), lanes)
        now = np.maximum(swept.totals[0] - swept.totals[1], 0)
        was = np.maximum(swept.before(0) - swept.before(1), 0)
        turns = np.flatnonzero((swept.at > START) & (now != was))
        rows = picked(events, swept.code[turns]).select(names)
        return rows.with_columns(
            pl.Series(VS, swept.at[turns], dtype=pl.Int64),
            pl.lit(FOREVER, pl.Int64).alias(VE),
            pl.Series(N, (now - was)[turns], dtype=pl.Int64),
            pl.lit(-FOREVER, pl.Int64).alias(TS),
        ).select(list(self.columns))
