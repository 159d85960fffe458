"""LIMIT: the first rows by some order, ties by the remaining columns; -0.0 is 0.0, as in rows that are equal.
RANK and its like: all rows with their places in such an order, within partitions.

Card: rank at each change
    requirements  any signed pieces
    time          rows alive × instants at which any of them comes or goes, sorted
    space         the rows alive, and those shown
    source        LIMIT by definition
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.algebra.operators import Limit, Rank
from windrow.kernels.columnar.codes import value_order
from windrow.kernels.columnar.columns import picked
from windrow.kernels.columnar.expressions import compile_expression
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.expiry_layouts import Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, TURN, VE, VS, Columns, N
from windrow.kernels.state import State
from windrow.windows.grid import covered

ROWS, SHOWN = "rows", "shown"


class Limited(Operator):
    """The first `count` rows."""

    name = "LIMIT"

    def __init__(self, plan: Limit, below: Operator) -> None:
        self.inputs = (below,)
        self.count = plan.count
        self.names = plan.schema.names
        self.order = [(compile_expression(expression), down) for expression, down in plan.order]
        self.taken: Columns = {n: d for n, d in below.columns.items() if n != TURN}
        self.columns = dict(self.taken)
        self.rows: Columns = {n: d for n, d in self.taken.items() if n != VS}
        self.shown: Columns = self.rows

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.taken))
        layout = Hashed()
        over, alive = layout.due(state.of(ROWS), step.slice.stop, self.rows)
        if not new.height and not over.height:
            return state, signed.blank(self.columns)
        old = frame_of(state.of(ROWS), self.rows).with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))
        runs = signed.positive(signed.together([old, new], self.taken)).filter(pl.col(VS) < step.slice.stop)
        shown = frame_of(state.of(SHOWN), self.shown)
        found, after = self._ranked(runs, shown, step.slice.stop)
        kept = layout.add(alive, new.select(list(self.rows)).filter(pl.col(VE) >= step.slice.stop))
        return State({ROWS: kept, SHOWN: chunks_of(after)}), found

    def _ranked(
        self, runs: pl.DataFrame, shown: pl.DataFrame, stop: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        vs, ve = runs[VS].to_numpy(), runs[VE].to_numpy()
        events = np.unique(np.concatenate([vs[vs > -FOREVER], ve[ve < stop]]))
        if not len(events):
            return signed.blank(self.columns), shown
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
        return signed.consolidated(pl.concat(moves)), after.select(list(self.shown))

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of each span that stay, with as many copies as there is room for."""
        ranked = self._sorted(rows, [])
        room = self.count - (pl.col(N).cum_sum().over("#span") - pl.col(N))
        return ranked.with_columns(pl.min_horizontal(pl.col(N), room).alias(N)).filter(pl.col(N) > 0)

    def _sorted(self, rows: pl.DataFrame, parts: list[pl.Series]) -> pl.DataFrame:
        """By span and partition, in the given order, which is `#a…`, then by the remaining columns."""
        given = [value_order(evaluate(rows)).alias(f"#a{i}") for i, (evaluate, _) in enumerate(self.order)]
        rest = [value_order(rows[name]).alias(f"#b{i}") for i, name in enumerate(self.names)]
        by = ["#span", *(column.name for column in (*parts, *given, *rest))]
        down = [False] * (1 + len(parts)) + [down for _, down in self.order] + [False] * len(rest)
        return rows.with_columns([*parts, *given, *rest]).sort(by, descending=down, nulls_last=down)


class Ranked(Limited):
    """All rows, with their numbers within partitions."""

    name = "RANK"

    def __init__(self, plan: Rank, below: Operator) -> None:
        super().__init__(Limit(plan.input, plan.order, 1), below)
        self.kind, self.number = plan.kind, plan.name
        self.partition = [compile_expression(part) for part in plan.partition]
        self.columns = dict(self.taken) | {plan.name: pl.Int64()}
        self.shown = {n: d for n, d in self.columns.items() if n != VS}

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Each copy of a row by itself, with its number."""
        parts = [value_order(evaluate(rows)).alias(f"#p{i}") for i, evaluate in enumerate(self.partition)]
        ranked = self._sorted(rows, parts)
        copies = np.repeat(np.arange(ranked.height), ranked[N].to_numpy())
        ranked = picked(ranked, copies).with_columns(pl.lit(1, pl.Int64).alias(N))
        by = ["#span", *(part.name for part in parts)]
        ranked = ranked.with_columns(pl.col(N).cum_sum().over(by).alias("#row"))
        if self.kind == "ROW_NUMBER":
            return ranked.rename({"#row": self.number})
        equal = [*by, *(f"#a{i}" for i in range(len(self.order)))]
        first = pl.col("#row").min().over(equal)
        if self.kind == "RANK":
            return ranked.with_columns(first.alias(self.number))
        new = (pl.col("#row") == first).cast(pl.Int64)
        return ranked.with_columns(new.alias("#new")).with_columns(
            pl.col("#new").cum_sum().over(by).alias(self.number)
        )
