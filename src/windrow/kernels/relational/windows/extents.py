"""Pieces cut at the bounds of extents, for operators that read `window_start` and `window_end`.

Card: cut by extents
    requirements  windows with one common period, or extents that are reported by themselves
    time          one piece per extent a row is in
    space         the rows alive
    source        WID (Li et al. 2005), 5: rows tagged with window ids, where the id itself is asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.emit.emission import last_report
from windrow.kernels.relational.expiry_layouts import Hashed, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import BOUNDS, FOREVER, VE, VS, Columns, blank, positive, together
from windrow.kernels.state import State
from windrow.windows.grid import covered

ROWS = "rows"


class Extents(Operator):
    """Each piece once for every extent it is in, with the extent's bounds."""

    name = "extents"

    def __init__(self, below: Operator, spec: Any, reported: bool) -> None:
        self.inputs = (below,)
        self.spec = spec
        self.reported = reported
        self.layout = Hashed()
        self.columns = dict(below.columns) | BOUNDS
        self.rows: Columns = {n: d for n, d in below.columns.items() if n != VS}
        self.pieces: Columns = below.columns

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.pieces))
        old = frame_of(state.of(ROWS), self.rows).with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))
        rows = together([old, new], self.pieces)
        chunks = self.layout.forget(state.of(ROWS), step.slice.floor)
        chunks = self.layout.add(chunks, new.select(list(self.rows)).filter(pl.col(VE) > step.slice.floor))
        found = blank(self.columns)
        if rows.height:
            found = self._by_report(rows, step) if self.reported else self._by_grid(rows, step)
        return State({ROWS: chunks}), found

    def _by_report(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """Every instant is a report of its own."""
        if step.reports is None or not step.reports.height:
            return blank(self.columns)
        rows = positive(rows)
        low = np.maximum(rows[VS].to_numpy(), step.slice.start)
        row, at = covered(low, np.minimum(rows[VE].to_numpy(), step.slice.stop))
        bounds = picked(step.reports.select("start", "end"), at - step.first_report)
        columns = [pl.Series(VS, at), pl.Series(VE, at + 1)]
        columns += [bounds["start"].alias("#window_start"), bounds["end"].alias("#window_end")]
        return picked(rows, row).with_columns(columns).select(list(self.columns))

    def _by_grid(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """What was there gets pieces for the extents that begin now, what is new also for the current one."""
        grid = self.spec.grid
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, max(last_report([grid], step), step.until) + 1)
        vs, ve = rows[VS].to_numpy(), rows[VE].to_numpy()
        new = vs > -FOREVER
        begins = np.where(new, vs, step.slice.start)
        begins = np.clip(begins, -(FOREVER // 2), FOREVER // 2)
        ends = np.clip(np.minimum(ve, stop), -(FOREVER // 2), FOREVER // 2)
        # from the extent that is current when a new one begins: that of the last slide at or before it
        row, end = grid.within(np.where(new, grid.lasts(begins), begins), ends)
        start, stop_at = self.spec.bounds_of(end)
        columns = [
            pl.Series(VS, np.maximum(end, begins[row])),
            pl.Series(VE, np.minimum(grid.nexts(end), ve[row])),
            pl.Series("#window_start", [None] * len(end) if start is None else start, pl.Int64),
            pl.Series("#window_end", stop_at),
        ]
        found = picked(rows, row).with_columns(columns).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))
