"""δ: each row value once, for as long as any copy is there.

Card: δ*
    requirements  no negative rows: the expiry of every copy is known
    time          O(new rows, and values whose shown copy expires), sorted
    space         a value with two instants: the end of what was passed on, and of its youngest duplicate
    source        Golab's thesis, 3.5.2 (δ*: at most twice the output)
Card: counting δ
    requirements  any signed pieces
    time          events of the step, sorted
    space         a count per value, and the copies' expiries that are known
    source        Golab's thesis, 3.2.2 (the strict implementation)
Card: presence
    requirements  no negative rows: the expiry of every copy is known
    time          O(new rows, and values that leave), sorted
    space         a value with one instant: the end of its youngest copy
    source        Golab's thesis, 3.5.2: δ*, which passes on the end of a copy and then that of the next; here
                  nobody is told that a value is prolonged
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import expiry_layouts, operator, signed_rows as signed
from windrow.kernels.relational.signed_rows import AT, FOREVER, INT, SIGNED, START, VE, VS, Columns, N, Swept
from windrow.kernels.state import State
from windrow.windows import Ints, interfering, strict

VALUES, COUNTS, ENDS = "values", "counts", "ends"
#: how far a value's result was passed on, and how far it is known to last
SHOWN, LASTS = "#shown", "#lasts"


class _Youngest(operator.Operator):
    """Values with the end of their youngest copy: what the forms without counts have in common."""

    #: what tells of a value whether it is to be looked at: it is there until that instant
    until = LASTS

    def __init__(self, below: operator.Operator) -> None:
        self.inputs = (below,)
        self.values = signed.values_of(below.columns)
        self.columns = self.values | SIGNED
        self.kept = self.values | {LASTS: INT}

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        stop, names = step.slice.stop, list(self.values)
        known = expiry_layouts.frame_of(state.of(VALUES), self.kept)
        new = signed.grouped(inputs[0], names)
        touched = (known[self.until] < stop) | signed.found_in(known, new, names)
        if not new.height and not touched.any():
            return state, signed.blank(self.columns)
        found, after = self._united(known.filter(touched), new, stop)
        left = signed.together([known.filter(~touched), after], self.kept)
        return State({VALUES: expiry_layouts.chunks_of(left)}), found

    @abstractmethod
    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What is passed on of the runs of copies, and what is known of each value after."""

    def _runs(self, known: pl.DataFrame, new: pl.DataFrame) -> tuple[pl.DataFrame, _Runs]:
        """Values, and the runs of their copies that overlap or meet."""
        rows = pl.concat([known.select(list(self.values)), new.select(list(self.values))])
        code = signed.codes(rows, list(self.values))
        vs = np.concatenate([np.full(known.height, START), new[VS].to_numpy()])
        ve = np.concatenate([known[LASTS].to_numpy(), new[VE].to_numpy()])
        order = np.lexsort((vs, code))
        code, vs = code[order], vs[order]
        lasts = signed.running(code, ve[order], pl.Expr.cum_max)
        first = signed.heads(code) | (vs > np.append(START, lasts[:-1]))
        heads = np.flatnonzero(first)
        ends = lasts[np.append(heads[1:], len(code)) - 1]
        return rows, _Runs(code[heads], vs[heads], ends, order[heads])


class _Runs(NamedTuple):
    """The value of each run, when it begins and ends, and which row is its first."""

    code: Ints
    begins: Ints
    ends: Ints
    row: Ints


class Presence(_Youngest):
    """One piece when a value comes, a negative one when it goes."""

    name = "δ, told"

    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        rows, runs = self._runs(known, new)
        came, over = runs.begins > START, runs.ends < stop
        told = came | over
        found = signed.pieces(
            picked(rows, runs.code[told]),
            self.columns,
            np.where(came, runs.begins, runs.ends)[told],
            np.where(came & over, runs.ends, FOREVER)[told],
            np.where(came, 1, -1)[told],
        )
        stay = picked(rows, runs.code[~over])
        return found, stay.with_columns(pl.Series(LASTS, runs.ends[~over], dtype=pl.Int64))


def distinct(
    below: operator.Operator, choice: expiry_layouts.Choice, *, uniting: bool = False, tells: bool = False
) -> operator.Operator:
    """δ in the form that fits what is below; `uniting` asks for pieces as long as may be, `tells` for ends
    told when they come."""
    found: operator.Operator
    if choice.known(below) and choice.ends(below) and tells and not uniting:
        found = Presence(below)
        choice.label(found, strict("a value is retracted when its last copy expires"))
    elif choice.known(below) and not uniting:
        found = DeltaStar(below)
        choice.label(found, interfering([choice.labels[id(below)]], "a value lasts as its youngest copy"))
    else:
        found = CountingDelta(below, choice.buckets, opened=uniting)
        choice.label(found, strict("a value is retracted with its last copy"))
    return found


class DeltaStar(_Youngest):
    """The current copy until it expires, then the youngest duplicate."""

    name = "δ*"
    until = SHOWN

    def __init__(self, below: operator.Operator) -> None:
        super().__init__(below)
        self.kept = self.values | {SHOWN: INT, LASTS: INT}

    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        rows, (code, vs, ends, row) = self._runs(known, new)
        shown = np.concatenate([known[SHOWN].to_numpy(), np.full(new.height, START)])[row]
        begins = np.where(shown > START, shown, vs)
        passed = (begins < stop) & (begins < ends)
        found = signed.pieces(picked(rows, code[passed]), self.columns, begins[passed], ends[passed])
        covered = np.where(passed | (begins >= ends), ends, begins)
        last = signed.tails(code) & (ends > stop)
        after = picked(rows, code[last]).with_columns(
            pl.Series(SHOWN, covered[last], dtype=pl.Int64), pl.Series(LASTS, ends[last], dtype=pl.Int64)
        )
        return found, after


class Counts:
    """How often each value is there, and when known copies leave: what a state has of them, and what a step
    makes of that."""

    def __init__(self, values: Columns, ending: Columns, buckets: int) -> None:
        self.values = list(values)
        self.counted = values | {N: INT}
        self.ending = ending
        self.calendar = expiry_layouts.Calendar(buckets)

    def advance(self, state: State, new: pl.DataFrame, stop: int) -> tuple[State, pl.DataFrame, Swept]:
        """The next state, and the counts of the values that events of the step are about, over time."""
        over, later = self.calendar.ended(state.of(ENDS), new, stop, self.ending)
        events = signed.events(new, over, self.values)
        if not events.height:
            nothing = np.zeros(0, dtype=np.int64)
            swept = signed.sweep(nothing, nothing, [nothing])
            return State({COUNTS: state.of(COUNTS), ENDS: later}), events, swept
        before = expiry_layouts.frame_of(state.of(COUNTS), self.counted)
        before = before.select(*self.values, pl.lit(START, pl.Int64).alias(AT), N)
        everything = pl.concat([events, before.filter(signed.found_in(before, events, self.values))])
        code, at = signed.codes(everything, self.values), everything[AT].to_numpy()
        swept = signed.sweep(code, at, [everything[N].to_numpy()])
        counts = expiry_layouts.Hashed().add(state.of(COUNTS), events.select(list(self.counted)))
        return State({COUNTS: counts, ENDS: later}), everything.select(self.values), swept


class CountingDelta(operator.Operator):
    """A count per value: it is there while the count is positive."""

    name = "counting δ"

    def __init__(self, below: operator.Operator, buckets: int, *, opened: bool = False) -> None:
        self.inputs = (below,)
        self.values = signed.values_of(below.columns)
        self.columns = self.values | SIGNED
        #: whether a value that comes and goes within a step is told by two open pieces
        self.opened = opened
        self.counts = Counts(self.values, self.values | {VE: INT, N: INT}, buckets)
        self.calendar = self.counts.calendar

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        new = signed.grouped(inputs[0], list(self.values))
        state, rows, swept = self.counts.advance(state, new, step.slice.stop)
        now, was = swept.totals[0] > 0, swept.before() > 0
        turns = np.flatnonzero((swept.at > START) & (now != was))
        if not len(turns):
            return state, signed.blank(self.columns)
        code, at, rises = swept.code[turns], swept.at[turns], now[turns]
        same = np.append(code[1:] == code[:-1], False) & (not self.opened)
        until = np.where(rises & same, np.append(at[1:], FOREVER), FOREVER)
        ended_here = np.append(False, same[:-1]) & ~rises
        keep = ~ended_here
        signs = np.where(rises[keep], 1, -1)
        return state, signed.pieces(picked(rows, code[keep]), self.columns, at[keep], until[keep], signs)
