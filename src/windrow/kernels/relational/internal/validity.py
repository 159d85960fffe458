"""INTERNAL windows: results need their parts to meet, but outlive them.

Below, everything is as with external windows; only the final results stay, until the first of their external
windows lets go of them, or for ever. Hidden columns tell which rows a result is made of (`#id.`) and when its
external parts end (`#stays.`).

Card: births
    requirements  results made of the same rows are born once; with EXISTS they may be born again
    time          new results
    space         none if nothing sends negative rows, else the results alive; with EXISTS all results so far
    source        Golab's thesis, 3.3.2
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.distinct import found_in
from windrow.kernels.relational.emit.emission import last_report, reports_within
from windrow.kernels.relational.except_all import COUNTS, ENDS
from windrow.kernels.relational.expiry_layouts import Calendar, Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, ID, SIGNED, START, STAYS, TURN, VE, VS, Columns, N
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit

SEEN, ALIVE = "seen", "alive"


class Births(Enum):
    """What counts as a new result."""

    RESULTS = "rows that meet"
    FIRST = "rows that meet for the first time"
    VALUES = "each value of an aggregate"
    EXTENTS = "each value of each extent"


class Staying(Operator):
    """Results from their birth on."""

    name = "results that stay"

    def __init__(self, emit: Emit, below: Operator, births: Births, known: bool, buckets: int) -> None:
        self.emit = emit
        self.inputs = (below,)
        self.births = births
        self.known = known
        self.hidden = [n for n in below.columns if n.startswith((ID, STAYS))]
        self.values: Columns = {n: d for n, d in below.columns.items() if n not in (*SIGNED, TURN)}
        self.columns = {n: d for n, d in below.columns.items() if n != TURN and n not in self.hidden}
        self.made: Columns = dict(self.values) | dict(SIGNED)
        self.counted: Columns = dict(self.values) | {N: pl.Int64()}
        self.ending: Columns = dict(self.counted) | {VE: pl.Int64()}
        self.calendar = Calendar(buckets)
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.made))
        if self.births is Births.EXTENTS:
            return self._each_extent(state, new, step)
        if self.births is Births.VALUES or (self.known and self.births is Births.RESULTS):
            return state, self._stay(new.filter(pl.col(N) > 0))
        state, born = self._rising(state, new, step)
        if self.births is Births.FIRST:
            names = list(self.values)
            seen = frame_of(state.of(SEEN), self.values)
            born = born.filter(~found_in(born, seen, names)) if seen.height else born
            born = born.sort(VS).unique(names, keep="first", maintain_order=True)
            state = State({**state.chunks, SEEN: (*state.of(SEEN), *chunks_of(born.select(names)))})
        return state, self._stay(born)

    def _stay(self, born: pl.DataFrame) -> pl.DataFrame:
        ends = [name for name in self.hidden if name.startswith(STAYS)]
        last = pl.min_horizontal(ends) if ends else pl.lit(FOREVER, pl.Int64)
        found = born.with_columns(last.cast(pl.Int64).alias(VE)).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))

    def _rising(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The results of which there are more copies than before."""
        ending = new.filter(pl.col(VE) < FOREVER).select(list(self.ending))
        over, later = self.calendar.due(
            self.calendar.add(state.of(ENDS), ending), step.slice.stop, self.ending
        )
        names = list(self.values)
        began = new.select(*names, pl.col(VS).alias("#at"), N)
        ended = over.select(*names, pl.col(VE).alias("#at"), -pl.col(N))
        events = pl.concat([began, ended])
        counts = frame_of(state.of(COUNTS), self.counted)
        kept = Hashed().add(state.of(COUNTS), events.select(list(self.counted)))
        after = State({**state.chunks, COUNTS: kept, ENDS: later})
        if not events.height:
            return after, signed.blank(self.made)
        before = counts.select(*names, pl.lit(START, pl.Int64).alias("#at"), N)
        everything = pl.concat([events, before.filter(found_in(before, events, names))])
        swept = signed.sweep(
            signed.codes(everything, names), everything["#at"].to_numpy(), [everything[N].to_numpy()]
        )
        more = swept.totals[0] - swept.before()
        rises = (swept.at > START) & (more > 0)
        born = picked(everything.select(names), swept.code[rises]).with_columns(
            pl.Series(VS, swept.at[rises], dtype=pl.Int64),
            pl.lit(FOREVER, pl.Int64).alias(VE),
            pl.Series(N, more[rises], dtype=pl.Int64),
            pl.lit(-FOREVER, pl.Int64).alias("#ts"),
        )
        return after, born.select(list(self.made))

    def _each_extent(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """Every value at every reporting instant is a result of its own."""
        alive: Columns = {n: d for n, d in self.made.items() if n != VS}
        old = frame_of(state.of(ALIVE), alive).with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))
        runs = signed.positive(signed.together([old, new], self.made))
        layout = Hashed()
        kept = layout.forget(state.of(ALIVE), step.slice.floor)
        kept = layout.add(kept, new.select(list(alive)).filter(pl.col(VE) >= step.slice.floor))
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, last_report(self.grids, step) + 1)
        limit = FOREVER // 2
        low = np.clip(np.maximum(runs[VS].to_numpy(), step.slice.start), -limit, limit)
        high = np.clip(np.maximum(np.minimum(runs[VE].to_numpy(), stop), low), -limit, limit)
        row, at = reports_within(self.grids, step, low, high)
        born = picked(runs, row).with_columns(pl.Series(VS, at, dtype=pl.Int64))
        return State({ALIVE: kept}), self._stay(born)
