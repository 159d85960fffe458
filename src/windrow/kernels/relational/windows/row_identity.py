"""Who a row is: every row that enters a window gets a number of its own.

Where a row that leaves takes results with it (`catalogues`), and where results over INTERNAL windows outlive
their rows (`staying`, `outliving`), rows are told apart, equal ones too. Their `row_num` does not do that: it
counts arrivals where a query asks for that, and elsewhere begins anew in every partition of a micro-batch.
So rows are counted where they enter the window, whichever way they came. The count is part of the state: a
step that is repeated gives the same numbers. They say who a row is and nothing else: no answer depends on
which row has which.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import ID, STAYS, VE
from windrow.kernels.relational.windows.leaf import Leaf
from windrow.kernels.state import State

#: the number of a row among all that ever entered its window, and how many there were
WHO, COUNT = "#who", "count"


class Numbered(Operator):
    """The rows that enter a window, of all streams below it, each with a number that no other has."""

    name = "rows"

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = dict(below.columns) | {WHO: pl.Int64()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (rows,) = inputs
        first = state.meta.get(COUNT, 0) + 1
        stop = first + rows.height
        numbers = pl.int_range(first, stop, dtype=pl.Int64, eager=True)
        return State({}, {COUNT: stop - 1}), rows.with_columns(numbers.alias(WHO))


def tell_apart(leaf: Leaf, place: int) -> None:
    """Let the pieces of a window whose rows are `Numbered` carry `#id.` of their row."""
    leaf.carry(f"{ID}{place}", WHO)


class Identified(Operator):
    """A window whose pieces carry `#id.` of their row and, if external, `#stays.`, when it leaves."""

    name = "window"

    def __init__(self, leaf: Leaf, place: int, *, external: bool) -> None:
        self.leaf = leaf
        self.inputs = leaf.inputs
        self.stays = f"{STAYS}{place}"
        self.external = external
        tell_apart(leaf, place)
        self.columns = dict(leaf.columns) | ({self.stays: pl.Int64()} if external else {})

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.leaf.advance(state, inputs, step)
        if self.external:
            found = found.with_columns(pl.col(VE).alias(self.stays))
        return state, found.select(list(self.columns))
