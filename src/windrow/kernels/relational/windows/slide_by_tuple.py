"""Slide-by-tuple windows: every n-th row moves the window, whose length is in the attribute.

Card: moving values
    requirements  all rows below the clock are known, hence all values w that move the window
    time          a binary search for each row of the window, when the window moves
    space         the rows of the window, those not yet final, a count of ranks
    source        WID (Li et al. 2005), 3.3 and 6 (a row is in the extents with t ≤ w < t + RANGE)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, TS, Columns, blank, together
from windrow.kernels.relational.windows.leaf import NUMBER, PENDING, Leaf
from windrow.kernels.state import State

INSIDE, ENTERED, RANKED = "inside", "#entered", "ranked"


class ByTuple(Leaf):
    """[RANGE r RATTR a SLIDE n ROWS SATTR row_num | rank(a)]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = dict(self.rows) | {ENTERED: pl.Boolean()}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        waiting = together([frame_of(state.of(PENDING), self.rows), rows], self.rows)
        if not waiting.height:
            return state, blank(self.columns)
        final = pl.Series(waiting[TS].to_numpy() < self.known(waiting, step))
        new, pending = waiting.filter(final), waiting.filter(~final)
        ranked = state.meta.get(RANKED, 0)
        meta, chunks = {RANKED: ranked + new.height}, {PENDING: chunks_of(pending)}
        if not new.height:
            return State({**chunks, INSIDE: state.of(INSIDE)}, meta), blank(self.columns)
        moves = self._moving(new, ranked)
        step.slides.append(moves)
        fresh = new.with_columns(pl.lit(False).alias(ENTERED))
        inside = together([frame_of(state.of(INSIDE), self.inside), fresh], self.inside)
        found, stay = self._moved(inside, np.append(moves, FOREVER))
        return State({**chunks, INSIDE: chunks_of(stay)}, meta), found

    def _moving(self, new: pl.DataFrame, ranked: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The attribute values of every n-th row, in order."""
        every = self.spec.every
        if self.spec.by_rank:
            return np.unique(np.sort(new[TS].to_numpy())[every - 1 - ranked % every :: every])
        counted = new[NUMBER].to_numpy() % every == 0
        return np.unique(new[TS].to_numpy()[counted])

    def _moved(
        self, inside: pl.DataFrame, moves: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        t, entered = inside[TS].to_numpy(), inside[ENTERED].to_numpy()
        enters = moves[np.searchsorted(moves, t)]
        leaves = moves[np.searchsorted(moves, t + self.spec.range)]
        here, over = ~entered & (enters < FOREVER), entered & (leaves < FOREVER)
        born = self.pieces(inside.filter(pl.Series(here)), enters[here], leaves[here])
        ended = self.pieces(inside.filter(pl.Series(over)), leaves[over], FOREVER, -1)
        stay = inside.with_columns(pl.Series(ENTERED, entered | here)).filter(pl.Series(leaves == FOREVER))
        return together([born, ended], self.columns), stay
