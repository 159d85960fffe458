"""What a result over INTERNAL windows is made of: every row of a window gets a number of its own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.kernels.general.leaves import Leaf
from windrow.kernels.general.operator import Operator, Step
from windrow.kernels.general.pieces import ID, STAYS, VE
from windrow.kernels.general.rows_below import NUMBER
from windrow.kernels.state import State


class Identified(Operator):
    """A window whose pieces carry `#id.` of their row and, if external, `#stays.`, when it leaves."""

    name = "window"

    def __init__(self, leaf: Leaf, place: int, *, external: bool) -> None:
        self.leaf = leaf
        self.inputs = leaf.inputs
        self.id, self.stays = f"{ID}{place}", f"{STAYS}{place}"
        self.external = external
        leaf.extra = {self.id: NUMBER}
        extra = {self.id: pl.Int64()} | ({self.stays: pl.Int64()} if external else {})
        leaf.columns = dict(leaf.columns) | {self.id: pl.Int64()}
        self.columns = dict(leaf.columns) | extra

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.leaf.advance(state, inputs, step)
        if self.external:
            found = found.with_columns(pl.col(VE).alias(self.stays))
        return state, found.select(list(self.columns))
