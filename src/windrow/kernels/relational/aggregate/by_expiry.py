"""γ by end: one state for each group and instant at which rows leave, in place of the rows.

Card: states by end
    requirements  states of constant size that do not depend on the order of rows; the expiry of every row is
                  known when it comes
    time          states of the pieces that come (`lifts`); then as for recomputed groups, of states
    space         one state per group and end; where only MIN, MAX and ANY_VALUE are asked for, those that no
                  state of their group outdoes and outlives; and the value shown of each group
    source        Golab's thesis, 8.3.2 (BIJ: an aggregate over a join, in intervals by expiry time) and 2.2.2
                  (MAX keeps what can still become the answer)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.aggregates.partials import Counted, ExactTotal, FloatMoments, FloatTotal
from windrow.kernels.aggregates.selections import Extreme
from windrow.kernels.columnar.columns import picked
from windrow.kernels.layouts import PANE
from windrow.kernels.relational.aggregate.extremes import can_be, longest
from windrow.kernels.relational.aggregate.group_by import ROWS, Grouped
from windrow.kernels.relational.aggregate.lifts import Lifts
from windrow.kernels.relational.expiry_layouts import MERGED, condensed
from windrow.kernels.relational.signed_rows import VE, VS, N, blank
from windrow.kernels.relational.sweep import codes
from windrow.kernels.state import State

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.operators import Aggregate
    from windrow.kernels.relational.operator import Operator, Step
    from windrow.kernels.relational.strategy import Choice

    Ints = npt.NDArray[np.int64]

_LIFTED = (Counted, ExactTotal, FloatTotal, FloatMoments, Extreme)


class ByEnd(Grouped):
    """γ that keeps states by the instant at which they leave."""

    name = "γ, by end"
    reads_states = True

    @staticmethod
    def fits(general: Grouped) -> bool:
        """Whether states stand for all that is asked for, of rows whose expiry is known."""
        layouts = general.measures.layouts
        small = all(isinstance(partial, _LIFTED) for partial in layouts[GROUPS].partials)
        return general.known and len(layouts) == 1 and small

    def __init__(
        self, plan: Aggregate, below: Operator, choice: Choice, sources: dict[str, int] | None = None
    ) -> None:
        super().__init__(plan, below, choice, sources)
        self.states = self.measures.layouts[GROUPS]
        lifted = Lifts(blank(below.columns)).states(self.measures)
        self.lanes = {name: lifted[name].dtype for name in lifted.columns if not name.startswith("#")}
        self.rows = dict(self.groups) | self.lanes | {VE: pl.Int64()}
        self.pieces = dict(self.rows) | {VS: pl.Int64()}
        extremes = self.states.partials[1:]
        self.only_extremes = bool(extremes) and all(isinstance(each, Extreme) for each in extremes)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        after, found = super().advance(state, inputs, step)
        if after.of(ROWS) is state.of(ROWS):
            return State(after.chunks, state.meta), found
        before = state.meta.get(MERGED, 0)
        kept, merged = condensed(self.layout, after.of(ROWS), self.rows, before, self._put_together)
        return State({**after.chunks, ROWS: kept}, {MERGED: merged}), found

    def _taken(self, pieces: pl.DataFrame, step: Step) -> pl.DataFrame:
        lifts = step.lifts or Lifts(pieces)
        states = lifts.states(self.measures)
        copies = states[N].to_numpy()
        states = (
            picked(states, np.repeat(np.arange(states.height), copies)) if (copies != 1).any() else states
        )
        return states.select(list(self.pieces))

    def _put_together(self, rows: pl.DataFrame) -> pl.DataFrame:
        """States of the same group and end as one, without those that will never be an answer."""
        found = self.states.merge(rows, [*self.keys, VE]).select(list(self.rows))
        return found.filter(pl.Series(self._useful(found))) if self.only_extremes else found

    def _useful(self, rows: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """Which states can still be the answer of some aggregate, or keep their group."""
        group, ends = codes(rows, self.keys), rows[VE].to_numpy()
        found = longest(group, ends)
        for partial in self.states.partials[1:]:
            found |= can_be(partial, rows, group, ends)
        return found

    def _replaced(
        self, rows: pl.DataFrame, shown: pl.DataFrame, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        return self._event_by_event(rows, shown, step)

    def _lifted(self, rows: pl.DataFrame, row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
        """States combined by pane."""
        frame = picked(rows.select(list(self.lanes)), row).with_columns(pl.Series(PANE, pane))
        return {GROUPS: self.states.merge(frame.select(PANE, *self.lanes), [PANE])}
