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

What all forms of δ have in common: values, and the pieces in which they are there.

δ whose ends are told when they come: a value is there from its first copy on, until its last one expires.

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
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.expiry_layouts import Calendar, Choice, Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, SIGNED, START, TS, TURN, VE, VS, Columns, N
from windrow.kernels.state import State
from windrow.windows.domain import Ints
from windrow.windows.patterns import interfering, strict


class DistinctOperator(Operator):
    """What all forms have in common."""

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.values: Columns = {n: d for n, d in below.columns.items() if n not in (*SIGNED, TURN)}
        self.columns = dict(self.values) | dict(SIGNED)

    def _pieces(self, rows: pl.DataFrame, vs: Ints, ve: Ints, n: Ints) -> pl.DataFrame:
        frame = rows.select(list(self.values)).with_columns(
            pl.Series(VS, vs, dtype=pl.Int64),
            pl.Series(VE, ve, dtype=pl.Int64),
            pl.Series(N, n, dtype=pl.Int64),
            pl.lit(-FOREVER, pl.Int64).alias(TS),
        )
        return frame.select(list(self.columns))


def found_in(rows: pl.DataFrame, others: pl.DataFrame, names: list[str]) -> pl.Series:
    """Whether each row's values occur in other rows."""
    both = pl.concat([others.select(names), rows.select(names)])
    return pl.Series(signed.codes(both, names)[others.height :] < others.height, dtype=pl.Boolean)


PRESENT_VALUES, PRESENT_LASTS = "values", "#lasts"


class Presence(DistinctOperator):
    """One piece when a value comes, a negative one when it goes."""

    name = "δ, told"

    def __init__(self, below: Operator) -> None:
        super().__init__(below)
        self.kept: Columns = dict(self.values) | {PRESENT_LASTS: pl.Int64()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop, names = step.slice.stop, list(self.values)
        known = frame_of(state.of(PRESENT_VALUES), self.kept)
        new = signed.grouped(inputs[0], names)
        touched = (known[PRESENT_LASTS] < stop) | found_in(known, new, names)
        if not new.height and not touched.any():
            return state, signed.blank(self.columns)
        found, after = self._united(known.filter(touched), new, stop)
        left = signed.together([known.filter(~touched), after], self.kept)
        return State({PRESENT_VALUES: chunks_of(left)}), found

    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Runs of copies that overlap or meet: what is told of them, and the values that stay."""
        names = list(self.values)
        rows = pl.concat([known.select(names), new.select(names)])
        code = signed.codes(rows, names)
        vs = np.concatenate([np.full(known.height, START), new[VS].to_numpy()])
        ve = np.concatenate([known[PRESENT_LASTS].to_numpy(), new[VE].to_numpy()])
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
        after = picked(rows, code[~over]).with_columns(pl.Series(PRESENT_LASTS, ends[~over], dtype=pl.Int64))
        return found, after


VALUES, COUNTS, ENDS = "values", "counts", "ends"
#: how far a value's result was passed on, and how far it is known to last
SHOWN, LASTS = "#shown", "#lasts"


def distinct(below: Operator, choice: Choice, *, uniting: bool = False, tells: bool = False) -> Operator:
    """δ in the form that fits what is below; `uniting` asks for pieces as long as may be, `tells` for ends
    told when they come."""
    found: Operator
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


class DeltaStar(DistinctOperator):
    """The current copy until it expires, then the youngest duplicate."""

    name = "δ*"

    def __init__(self, below: Operator) -> None:
        super().__init__(below)
        self.kept: Columns = dict(self.values) | {SHOWN: pl.Int64(), LASTS: pl.Int64()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        known = frame_of(state.of(VALUES), self.kept)
        new = signed.grouped(inputs[0], list(self.values))
        touched, rest = self._touched(known, new, stop)
        if not touched.height and not new.height:
            return state, signed.blank(self.columns)
        found, after = self._united(touched, new, stop)
        return State({VALUES: chunks_of(signed.together([rest, after], self.kept))}), found

    def _touched(
        self, known: pl.DataFrame, new: pl.DataFrame, stop: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The values with new copies, or whose shown copy ends; and the others."""
        if not known.height:
            return known, known
        names = list(self.values)
        both = pl.concat([new.select(names), known.select(names)])
        same = np.isin(signed.codes(both, names)[new.height :], np.arange(new.height))
        mine = pl.Series(same | (known[SHOWN].to_numpy() < stop))
        return known.filter(mine), known.filter(~mine)

    def _united(self, known: pl.DataFrame, new: pl.DataFrame, stop: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Runs of overlapping copies: what is passed on of them, and what is known of each value after."""
        names = list(self.values)
        rows = pl.concat([known.select(names), new.select(names)])
        code = signed.codes(rows, names)
        vs = np.concatenate([np.full(known.height, START), new[VS].to_numpy()])
        ve = np.concatenate([known[LASTS].to_numpy(), new[VE].to_numpy()])
        shown = np.concatenate([known[SHOWN].to_numpy(), np.full(new.height, START)])
        order = np.lexsort((vs, code))
        code, vs, ve, shown = code[order], vs[order], ve[order], shown[order]
        lasts = (
            pl.DataFrame({"code": code, "ve": ve})
            .select(pl.col("ve").cum_max().over("code"))["ve"]
            .to_numpy()
        )
        first = np.append(True, code[1:] != code[:-1])
        run = first | (vs > np.append(START, lasts[:-1]))
        heads = np.flatnonzero(run)
        tails = np.append(heads[1:], len(run)) - 1
        ends, begins = lasts[tails], np.where(shown[heads] > START, shown[heads], vs[heads])
        passed = (begins < stop) & (begins < ends)
        covered = np.where(passed | (begins >= ends), ends, begins)
        found = self._pieces(
            picked(rows, code[heads][passed]),
            begins[passed],
            ends[passed],
            np.ones(passed.sum(), dtype=np.int64),
        )
        last = np.append(code[heads][1:] != code[heads][:-1], True) & (ends > stop)
        after = picked(rows, code[heads][last]).with_columns(
            pl.Series(SHOWN, covered[last], dtype=pl.Int64), pl.Series(LASTS, ends[last], dtype=pl.Int64)
        )
        return found, after


class CountingDelta(DistinctOperator):
    """A count per value: it is there while the count is positive."""

    name = "counting δ"

    def __init__(self, below: Operator, buckets: int, *, opened: bool = False) -> None:
        super().__init__(below)
        #: whether a value that comes and goes within a step is told by two open pieces
        self.opened = opened
        self.counted: Columns = dict(self.values) | {N: pl.Int64()}
        self.ending: Columns = dict(self.values) | {VE: pl.Int64(), N: pl.Int64()}
        self.calendar = Calendar(buckets)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = signed.grouped(inputs[0], list(self.values))
        later = self.calendar.add(state.of(ENDS), new.filter(pl.col(VE) < FOREVER).select(list(self.ending)))
        over, later = self.calendar.due(later, step.slice.stop, self.ending)
        if not new.height and not over.height:
            return State({COUNTS: state.of(COUNTS), ENDS: later}), signed.blank(self.columns)
        counts = frame_of(state.of(COUNTS), self.counted)
        began = new.select(*self.values, pl.col(VS).alias("#at"), N)
        ended = over.select(*self.values, pl.col(VE).alias("#at"), -pl.col(N))
        before = counts.select(*self.values, pl.lit(START, pl.Int64).alias("#at"), N)
        names = list(self.values)
        events = pl.concat([began, ended])
        before = before.filter(found_in(before, events, names))
        found = self._presence(pl.concat([events, before]), names)
        changed = events.select(list(self.counted))
        return State({COUNTS: Hashed().add(state.of(COUNTS), changed), ENDS: later}), found

    def _presence(self, events: pl.DataFrame, names: list[str]) -> pl.DataFrame:
        swept = signed.sweep(signed.codes(events, names), events["#at"].to_numpy(), [events[N].to_numpy()])
        now, was = swept.totals[0] > 0, swept.before() > 0
        inside = swept.at > START
        turns = np.flatnonzero(inside & (now != was))
        code, at, rises = swept.code[turns], swept.at[turns], now[turns]
        if not len(turns):
            return signed.blank(self.columns)
        same = np.append(code[1:] == code[:-1], False) & (not self.opened)
        until = np.where(rises & same, np.append(at[1:], FOREVER), FOREVER)
        ended_here = np.append(False, same[:-1]) & ~rises
        keep = ~ended_here
        rows = picked(events, code[keep])
        return self._pieces(rows, at[keep], until[keep], np.where(rises[keep], 1, -1))
