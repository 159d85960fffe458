"""γ by end: one state for each group and instant at which rows leave, in place of the rows.

Card: states by end
    requirements  states of constant size that do not depend on the order of rows; the expiry of every row is
                  known when it comes
    time          states of the pieces that come (`lifts`); then as for recomputed groups, of states
    space         one state per group and end; where only MIN, MAX and ANY_VALUE are asked for, those that no
                  state of their group outdoes and outlives; and the value shown of each group
    source        Golab's thesis, 8.3.2 (BIJ: an aggregate over a join, in intervals by expiry time) and 2.2.2
                  (MAX keeps what can still become the answer)

γ of extremes where rows expire at known instants, in another order than they came.

A row that another of its group outdoes, and that does not outlive it, will never be the answer: it is dropped
with the step in which this is known. The row that lives longest stays, since the group is there as long.

Card: candidates by expiry
    requirements  MIN, MAX, ANY_VALUE, FIRST, LAST; the expiry of every row is known when it comes
    time          as for recomputed groups, of the candidates only; sorting these
    space         rows that no row of their group outdoes and outlives
    source        Golab's thesis, 2.2.2 (MAX keeps what can still become the answer), for WK input
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.measures import GROUPS, Argument
from windrow.kernels.aggregates.partials import (
    CountPartial,
    ExactTotal,
    Extreme,
    FloatMoments,
    FloatTotal,
    SelectedPartial,
)
from windrow.kernels.columnar.columns import picked
from windrow.kernels.columnar.combiners import GREATEST
from windrow.kernels.relational.aggregate.group_by import ROWS, Grouped
from windrow.kernels.relational.aggregate.lifts import Lifts
from windrow.kernels.relational.expiry_layouts import MERGED, condensed, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import TS, TURN, VE, VS, N, blank, codes
from windrow.kernels.state import PANE, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.operators import Aggregate
    from windrow.kernels.aggregates.partials import Partial
    from windrow.kernels.relational.options import Choice

    Ints = npt.NDArray[np.int64]


class Candidates(Grouped):
    """γ that forgets the rows which can no longer be an extreme."""

    name = "γ, candidates"

    @staticmethod
    def fits(general: Grouped) -> bool:
        """Whether extremes are all that is asked for, of rows whose expiry is known."""
        layouts = general.measures.layouts
        selects = all(isinstance(partial, SelectedPartial) for partial in layouts[GROUPS].partials[1:])
        asked = len(layouts) == 1 and len(layouts[GROUPS].partials) > 1
        return general.known and asked and selects and TURN not in general.rows

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        after, found = super().advance(state, inputs, step)
        if after.of(ROWS) is state.of(ROWS):
            return after, found
        rows = frame_of(after.of(ROWS), self.rows)
        kept = self.layout.add((), rows.filter(pl.Series(self._useful(rows))))
        return State({**after.chunks, ROWS: kept}, after.meta), found

    def _useful(self, rows: pl.DataFrame) -> npt.NDArray[np.bool_]:
        """Which rows can still be the answer of some aggregate, or keep their group."""
        if not rows.height:
            return np.zeros(0, dtype=bool)
        group, ends = codes(rows, self.keys), rows[VE].to_numpy()
        order = rows.select(pl.col(TS).alias("#t"), *map(pl.col, self.plan.input.schema.names))
        found = longest(group, ends)
        for partial in self.measures.layouts[GROUPS].partials[1:]:
            lifted = partial.lift(Argument(*self.measures.argument_of(partial)).rows(rows, order))
            found |= can_be(partial, pl.DataFrame(lifted), group, ends)
        return found


def can_be(partial: Partial, states: pl.DataFrame, group: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
    """Which states can still be the answer of their group."""
    ((count,), (code,)), _ = partial.encode(states)
    value = code if partial.combiners[1] is GREATEST else ~code
    counts = np.flatnonzero(count > 0)
    found = np.zeros(states.height, dtype=bool)
    found[counts[standing(group[counts], ends[counts], value[counts])]] = True
    return found


def longest(group: Ints, ends: Ints) -> npt.NDArray[np.bool_]:
    """One row of each group that lives longest.

    >>> longest(np.array([0, 0, 1]), np.array([5, 9, 3])).tolist()
    [False, True, True]
    """
    order = np.lexsort((ends, group))
    found = np.zeros(len(group), dtype=bool)
    found[order[np.append(group[order][1:] != group[order][:-1], True)]] = True
    return found


def standing(group: Ints, ends: Ints, value: Ints) -> npt.NDArray[np.bool_]:
    """Which rows have a greater value than every row of their group that lives as long or longer.

    >>> standing(np.array([0, 0, 0]), np.array([5, 9, 7]), np.array([4, 1, 1])).tolist()
    [True, True, False]
    """
    order = np.lexsort((~value, ~ends, group))  # backwards, and the least of all integers too
    frame = pl.DataFrame({"g": group[order], "v": value[order]})
    best = frame.select(pl.col("v").cum_max().shift(1).over("g"))["v"]
    found = np.zeros(len(group), dtype=bool)
    found[order] = (frame["v"] > best).fill_null(True).to_numpy()
    return found


_LIFTED = (CountPartial, ExactTotal, FloatTotal, FloatMoments, Extreme)


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
