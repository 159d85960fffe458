"""LIMIT: the first rows by some order, ties by the remaining columns; -0.0 is 0.0, as in rows that are equal.

Card: rank at each change
    requirements  any signed pieces
    time          rows alive × instants at which any of them comes or goes, sorted
    space         the rows alive, and those shown
    source        LIMIT by definition
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.codes import value_order
from windrow.kernels.columns import picked
from windrow.kernels.expressions import compile_expression
from windrow.kernels.general.cells import covered
from windrow.kernels.general.layouts import Hashed, chunks_of, frame_of
from windrow.kernels.general.operator import Operator, Step
from windrow.kernels.general.pieces import (
    FOREVER,
    TURN,
    VE,
    VS,
    Columns,
    N,
    blank,
    consolidated,
    together,
)
from windrow.kernels.general.sweeps import positive
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.algebra.operators import Limit

ROWS, SHOWN = "rows", "shown"


class Limited(Operator):
    """The first `count` rows."""

    name = "LIMIT"

    def __init__(self, plan: Limit, below: Operator) -> None:
        self.inputs = (below,)
        self.count = plan.count
        self.names = plan.schema.names
        self.order = [(compile_expression(expression), down) for expression, down in plan.order]
        self.columns = {n: d for n, d in below.columns.items() if n != TURN}
        self.rows: Columns = {n: d for n, d in self.columns.items() if n != VS}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.columns))
        layout = Hashed()
        over, alive = layout.due(state.of(ROWS), step.slice.stop, self.rows)
        if not new.height and not over.height:
            return state, blank(self.columns)
        old = frame_of(state.of(ROWS), self.rows).with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))
        runs = positive(together([old, new], self.columns)).filter(pl.col(VS) < step.slice.stop)
        shown = frame_of(state.of(SHOWN), self.rows)
        found, after = self._ranked(runs, shown, step.slice.stop)
        kept = layout.add(alive, new.select(list(self.rows)).filter(pl.col(VE) >= step.slice.stop))
        return State({ROWS: kept, SHOWN: chunks_of(after)}), found

    def _ranked(
        self, runs: pl.DataFrame, shown: pl.DataFrame, stop: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        vs, ve = runs[VS].to_numpy(), runs[VE].to_numpy()
        events = np.unique(np.concatenate([vs[vs > -FOREVER], ve[ve < stop]]))
        if not len(events):
            return blank(self.columns), shown
        low = np.searchsorted(events, np.maximum(vs, events[0]))
        row, span = covered(low, np.where(ve < stop, np.searchsorted(events, ve), len(events)))
        first = self._first(picked(runs, row).with_columns(pl.Series("#span", span)))
        places = first["#span"].to_numpy()
        came = first.with_columns(pl.Series(VS, events[places]))
        ends = np.append(events, FOREVER)[places + 1]
        gone = first.with_columns(pl.Series(VS, ends), -pl.col(N)).filter(pl.Series(ends < FOREVER))
        before = shown.with_columns(pl.lit(int(events[0]), pl.Int64).alias(VS), -pl.col(N))
        never = pl.lit(FOREVER, pl.Int64).alias(VE)
        moves = [frame.with_columns(never).select(list(self.columns)) for frame in (came, gone, before)]
        after = first.filter(pl.Series(places == len(events) - 1)).with_columns(never)
        return consolidated(pl.concat(moves)), after.select(list(self.rows))

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of each span that stay, with as many copies as there is room for."""
        given = [value_order(evaluate(rows)).alias(f"#a{i}") for i, (evaluate, _) in enumerate(self.order)]
        rest = [value_order(rows[name]).alias(f"#b{i}") for i, name in enumerate(self.names)]
        ranked = rows.with_columns([*given, *rest])
        by = ["#span", *(column.name for column in (*given, *rest))]
        down = [False, *(down for _, down in self.order), *(False for _ in rest)]
        ranked = ranked.sort(by, descending=down, nulls_last=down)
        room = self.count - (pl.col(N).cum_sum().over("#span") - pl.col(N))
        return ranked.with_columns(pl.min_horizontal(pl.col(N), room).alias(N)).filter(pl.col(N) > 0)
