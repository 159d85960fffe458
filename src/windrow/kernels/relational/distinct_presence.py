"""δ whose ends are told when they come: a value is there from its first copy on, until its last one expires.

Card: presence
    requirements  no negative rows: the expiry of every copy is known
    time          O(new rows, and values that leave), sorted
    space         a value with one instant: the end of its youngest copy
    source        Golab's thesis, 3.5.2: δ*, which passes on the end of a copy and then that of the next; here
                  nobody is told that a value is prolonged
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.distinct_base import Delta, found_in
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, Columns, blank, grouped, together
from windrow.kernels.relational.sweep import START, codes
from windrow.kernels.state import State

VALUES, LASTS = "values", "#lasts"


class Presence(Delta):
    """One piece when a value comes, a negative one when it goes."""

    name = "δ, told"

    def __init__(self, below: Operator) -> None:
        super().__init__(below)
        self.kept: Columns = dict(self.values) | {LASTS: pl.Int64()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop, names = step.slice.stop, list(self.values)
        known = frame_of(state.of(VALUES), self.kept)
        new = grouped(inputs[0], names)
        touched = (known[LASTS] < stop) | found_in(known, new, names)
        if not new.height and not touched.any():
            return state, blank(self.columns)
        found, after = self._united(known.filter(touched), new, stop)
        left = together([known.filter(~touched), after], self.kept)
        return State({VALUES: chunks_of(left)}), found

    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Runs of copies that overlap or meet: what is told of them, and the values that stay."""
        names = list(self.values)
        rows = pl.concat([known.select(names), new.select(names)])
        code = codes(rows, names)
        vs = np.concatenate([np.full(known.height, START), new[VS].to_numpy()])
        ve = np.concatenate([known[LASTS].to_numpy(), new[VE].to_numpy()])
        order = np.lexsort((vs, code))
        code, vs = code[order], vs[order]
        copies = pl.DataFrame({"code": code, "ve": ve[order]})
        lasts = copies.select(pl.col("ve").cum_max().over("code"))["ve"].to_numpy()
        first = np.append(True, code[1:] != code[:-1])
        heads = np.flatnonzero(first | (vs > np.append(START, lasts[:-1])))
        ends, begins, code = lasts[np.append(heads[1:], len(code)) - 1], vs[heads], code[heads]
        came, over = begins > START, ends < stop
        told = came | over
        found = self._pieces(
            picked(rows, code[told]),
            np.where(came, begins, ends)[told],
            np.where(came & over, ends, FOREVER)[told],
            np.where(came, 1, -1)[told],
        )
        after = picked(rows, code[~over]).with_columns(pl.Series(LASTS, ends[~over], dtype=pl.Int64))
        return found, after
