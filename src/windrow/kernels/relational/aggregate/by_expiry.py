"""γ without rows, where every row says when it leaves: states by end, and candidates for extremes.

Card: states by end
    requirements  states of constant size that do not depend on the order of rows; the expiry of every row is
                  known when it comes
    time          states of the pieces that come (`Lifts`); then as for recomputed groups, of states
    space         one state per group and end; where only MIN, MAX and ANY_VALUE are asked for, those that no
                  state of their group outdoes and outlives; and the value shown of each group
    source        Golab's thesis, 8.3.2 (BIJ: an aggregate over a join, in intervals by expiry time) and 2.2.2
                  (MAX keeps what can still become the answer)

A row that another of its group outdoes, and that does not outlive it, will never be an extreme: it is dropped
with the step in which this is known. The row that lives longest stays, since the group is there as long.

Card: candidates by expiry
    requirements  MIN, MAX, ANY_VALUE, FIRST, LAST; the expiry of every row is known when it comes
    time          as for recomputed groups, of the candidates only; sorting these
    space         rows that no row of their group outdoes and outlives
    source        Golab's thesis, 2.2.2 (MAX keeps what can still become the answer), for WK input

Of pieces with the same group, beginning and end, γ needs only what they come to together. There are as many
of these as there are groups and slides, however many rows a join gives. What one query has had computed of
the pieces of a join, the groups of rows or a state, is there for the others.

Card: states of pieces
    requirements  states of constant size that do not depend on the order of rows
    time          one grouping of the pieces for each GROUP BY, one combination for each state, whoever asks
    space         one state per group, beginning and end
    source        Golab's thesis, 8.3.2: a synopsis over a join by expiry time, shared by its aggregates
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from windrow.algebra import Aggregate, Expression
from windrow.kernels.aggregates import partials
from windrow.kernels.aggregates.measures import GROUPS, Argument, Measures
from windrow.kernels.aggregates.partials import Partial
from windrow.kernels.columnar import columns, combiners, expressions
from windrow.kernels.relational import expiry_layouts, operator, signed_rows as signed
from windrow.kernels.relational.aggregate.group_by import HELD, Grouped, GroupKeys
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, TURN, VE, VS, N
from windrow.kernels.state import PANE, ROWS, State, TableLayout
from windrow.windows.domain import Flags, Ints

Wanted = tuple[Partial, Argument | None]


@dataclass
class Lifts:
    """The states of some pieces. They may be asked for as if the pieces ended `sooner`."""

    pieces: pl.DataFrame
    sooner: int = 0
    _groupings: dict[tuple[Expression, ...], _Grouping] = field(default_factory=dict)

    def ending(self, sooner: int) -> Lifts:
        """The same over windows that are shorter by so many ticks; what is computed is shared."""
        return Lifts(self.pieces, self.sooner + sooner, self._groupings)

    def states(self, measures: Measures) -> pl.DataFrame:
        """`#k0` …, `#vs`, `#ve`, `#n`, and the states of γ's groups: those of one copy, of which there are
        `#n`."""
        keys = tuple(key for _, key in measures.plan.keys)
        if self.sooner and any(map(expressions.can_fail, measures.plan.reads)):
            # pieces that never begin here must not stop a query that does not see them
            return Lifts(ending(self.pieces, self.sooner)).states(measures)
        if keys not in self._groupings:
            self._groupings[keys] = _Grouping(self.pieces, keys)
        grouping = self._groupings[keys]
        wanted = [
            (partial, None if partial == ROWS else Argument(*measures.argument_of(partial)))
            for partial in measures.layouts[GROUPS].partials
        ]
        found = grouping.groups.with_columns(grouping.states(wanted))
        return ending(found, self.sooner) if self.sooner else found


def ending(pieces: pl.DataFrame, sooner: int) -> pl.DataFrame:
    """Pieces that end sooner; some never begin.

    >>> ending(pl.DataFrame({VS: [0, 5], VE: [9, 9]}), 4).rows()
    [(0, 5)]
    """
    ends = pl.when(pl.col(VE) < FOREVER).then(pl.col(VE) - sooner).otherwise(VE)
    return pieces.with_columns(ends.alias(VE)).filter(pl.col(VS) < pl.col(VE))


class _Grouping:
    """Pieces by one GROUP BY: `groups` has one row for each group, `number` says which one a piece is in."""

    def __init__(self, pieces: pl.DataFrame, keys: tuple[Expression, ...]) -> None:
        self.pieces = pieces
        rows = pl.DataFrame([*GroupKeys(keys).of(pieces), *(pieces[name] for name in (VS, VE, N))])
        first = signed.codes(rows, rows.columns)
        heads = first == np.arange(len(first))
        self.groups = rows.filter(pl.Series(heads))
        self.number = (np.cumsum(heads) - 1)[first]
        self._known: dict[Wanted, list[pl.Series]] = {}

    def states(self, wanted: Sequence[Wanted]) -> list[pl.Series]:
        """The columns of states, in the order of the groups; those that are not known yet are computed."""
        asked = [((replace(partial, label=""), argument), partial) for partial, argument in wanted]
        missing = list(dict.fromkeys(key for key, _ in asked if key not in self._known))
        if missing:
            self._known |= self._combined(missing)
        return [
            column.alias(f"{partial.label}.{place}")
            for key, partial in asked
            for place, column in enumerate(self._known[key])
        ]

    def _combined(self, missing: Sequence[Wanted]) -> dict[Wanted, list[pl.Series]]:
        named = [replace(shape, label=f"s{place}") for place, (shape, _) in enumerate(missing)]
        columns = [pl.Series(PANE, self.number)]
        for partial, (_, argument) in zip(named, missing, strict=True):
            if argument is None:
                columns.append(pl.Series(f"{partial.label}.0", [1]).new_from_index(0, self.pieces.height))
            else:
                columns += partial.lift(argument.rows(self.pieces, pl.DataFrame()))
        merged = pl.DataFrame(columns)
        if self.groups.height < self.pieces.height:
            merged = TableLayout((), tuple(named)).merge(merged, [PANE]).sort(PANE)
        return {
            key: [merged[name] for name in merged.columns if name.startswith(f"{partial.label}.")]
            for partial, key in zip(named, missing, strict=True)
        }


class Candidates(Grouped):
    """γ that forgets the rows which can no longer be an extreme."""

    name = "γ, candidates"

    @staticmethod
    def fits(general: Grouped) -> bool:
        """Whether extremes are all that is asked for, of rows whose expiry is known."""
        layouts = general.measures.layouts
        selects = all(
            isinstance(partial, partials.SelectedPartial) for partial in layouts[GROUPS].partials[1:]
        )
        asked = len(layouts) == 1 and len(layouts[GROUPS].partials) > 1
        return general.known and asked and selects and TURN not in general.rows

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        after, found = super().advance(state, inputs, step)
        if after.of(HELD) is state.of(HELD):
            return after, found
        rows = expiry_layouts.frame_of(after.of(HELD), self.rows)
        kept = self.layout.add((), rows.filter(pl.Series(self._useful(rows))))
        return State({**after.chunks, HELD: kept}, after.meta), found

    def _useful(self, rows: pl.DataFrame) -> Flags:
        """Which rows can still be the answer of some aggregate, or keep their group."""
        if not rows.height:
            return np.zeros(0, dtype=bool)
        order = rows.select(pl.col(TS).alias("#t"), *map(pl.col, self.plan.input.schema.names))

        def lifted(partial: Partial) -> pl.DataFrame:
            argument = Argument(*self.measures.argument_of(partial))
            return pl.DataFrame(partial.lift(argument.rows(rows, order)))

        return useful(rows, self.keys, self.measures.layouts[GROUPS].partials[1:], lifted)


def useful(
    rows: pl.DataFrame,
    keys: Sequence[str],
    partials: Sequence[Partial],
    states: Callable[[Partial], pl.DataFrame],
) -> Flags:
    """Which rows can still be the answer of some aggregate, by their states, or keep their group."""
    group, ends = signed.codes(rows, keys), rows[VE].to_numpy()
    found = longest(group, ends)
    for partial in partials:
        found |= can_be(partial, states(partial), group, ends)
    return found


def can_be(partial: Partial, states: pl.DataFrame, group: Ints, ends: Ints) -> Flags:
    """Which states can still be the answer of their group."""
    ((count,), (code,)), _ = partial.encode(states)
    value = code if partial.combiners[1] is combiners.GREATEST else ~code
    counts = np.flatnonzero(count > 0)
    found = np.zeros(states.height, dtype=bool)
    found[counts[standing(group[counts], ends[counts], value[counts])]] = True
    return found


def longest(group: Ints, ends: Ints) -> Flags:
    """One row of each group that lives longest.

    >>> longest(np.array([0, 0, 1]), np.array([5, 9, 3])).tolist()
    [False, True, True]
    """
    order = np.lexsort((ends, group))
    found = np.zeros(len(group), dtype=bool)
    found[order[signed.tails(group[order])]] = True
    return found


def standing(group: Ints, ends: Ints, value: Ints) -> Flags:
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


_LIFTED = (
    partials.CountPartial,
    partials.ExactTotal,
    partials.FloatTotal,
    partials.FloatMoments,
    partials.Extreme,
)


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
        self,
        plan: Aggregate,
        below: operator.Operator,
        choice: expiry_layouts.Choice,
        sources: dict[str, int] | None = None,
    ) -> None:
        super().__init__(plan, below, choice, sources)
        self.states = self.measures.layouts[GROUPS]
        lifted = Lifts(signed.blank(below.columns)).states(self.measures)
        self.lanes = {name: lifted[name].dtype for name in lifted.columns if not name.startswith("#")}
        self.rows = self.groups | self.lanes | {VE: INT}
        self.pieces = self.rows | {VS: INT}
        extremes = self.states.partials[1:]
        self.only_extremes = bool(extremes) and all(isinstance(each, partials.Extreme) for each in extremes)

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        after, found = super().advance(state, inputs, step)
        if after.of(HELD) is state.of(HELD):
            return State(after.chunks, state.meta), found
        before = state.meta.get(expiry_layouts.MERGED, 0)
        kept, merged = expiry_layouts.condensed(
            self.layout, after.of(HELD), self.rows, before, self._put_together
        )
        return State({**after.chunks, HELD: kept}, {expiry_layouts.MERGED: merged}), found

    def _taken(self, pieces: pl.DataFrame, step: operator.Step) -> pl.DataFrame:
        lifts = step.lifts or Lifts(pieces)
        return signed.copies(lifts.states(self.measures)).select(list(self.pieces))

    def _put_together(self, rows: pl.DataFrame) -> pl.DataFrame:
        """States of the same group and end as one, without those that will never be an answer."""
        found = self.states.merge(rows, [*self.keys, VE]).select(list(self.rows))
        if not self.only_extremes:
            return found
        return found.filter(pl.Series(useful(found, self.keys, self.states.partials[1:], lambda _: found)))

    def _lifted(self, rows: pl.DataFrame, row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
        """States combined by pane."""
        frame = columns.picked(rows.select(list(self.lanes)), row).with_columns(pl.Series(PANE, pane))
        return {GROUPS: self.states.merge(frame.select(PANE, *self.lanes), [PANE])}
