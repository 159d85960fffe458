"""What a result over INTERNAL windows is made of: every row of a window gets a number of its own."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.kernels.general.leaves import Leaf
from windrow.kernels.general.operator import Operator, Stateless, Step
from windrow.kernels.general.pieces import ID, STAYS, VE
from windrow.kernels.general.rows_below import NUMBER
from windrow.kernels.state import State

#: the number of a row among those of all streams below its window
PLACE = "#place_below"
MOST_ROWS = 1 << 48


class Identified(Operator):
    """A window whose pieces carry `#id.` of their row and, if external, `#stays.`, when it leaves."""

    name = "window"

    def __init__(self, leaf: Leaf, place: int, *, external: bool) -> None:
        self.leaf = leaf
        self.inputs = leaf.inputs
        self.stays = f"{STAYS}{place}"
        self.external = external
        number_rows(leaf, place)
        self.columns = dict(leaf.columns) | ({self.stays: pl.Int64()} if external else {})

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.leaf.advance(state, inputs, step)
        if self.external:
            found = found.with_columns(pl.col(VE).alias(self.stays))
        return state, found.select(list(self.columns))


def number_rows(leaf: Leaf, place: int) -> None:
    """Let the pieces of a window carry `#id.` of their row."""
    leaf.carry(f"{ID}{place}", PLACE if PLACE in leaf.rows else NUMBER)


class Placed(Stateless):
    """The rows of one of several streams below a window, with numbers that no other stream's rows have."""

    name = "rows"

    def __init__(self, below: Operator, place: int) -> None:
        self.inputs = (below,)
        self.first = place * MOST_ROWS
        self.columns = dict(below.columns) | {PLACE: pl.Int64()}

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return inputs[0].with_columns((pl.col(NUMBER) + self.first).alias(PLACE)).select(list(self.columns))
