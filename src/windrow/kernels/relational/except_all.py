"""EXCEPT ALL: max(0, k1 - k2) copies of each row.

Card: difference of counts
    requirements  any signed pieces
    time          events of the step, sorted
    space         two counts per value, the copies' expiries that are known, and the results that were given
                  one (`retractions`)
    source        Golab's thesis, 3.5.2 (negation by frequency counts)

In the calendar form a result ends when the left row does that brought it. That is a guess, since matches may
come and copies stay: what becomes of it is corrected when it does, at instants of events. So each step adds
the difference between the counts as they are and as they were promised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.distinct import found_in
from windrow.kernels.relational.exists import Retractions
from windrow.kernels.relational.expiry_layouts import Calendar, Chunks, Hashed, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.options import Choice, Negation
from windrow.kernels.relational.signed_rows import FOREVER, SIGNED, START, TS, VE, VS, Columns, N
from windrow.kernels.state import State

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.operators import Except

    Ints = npt.NDArray[np.int64]

COUNTS, ENDS, RESULTS = "counts", "ends", "results"
SIDE, AT = "#side", "#at"
#: shares of early results (`retractions`)
TELL, TELL_NO_MORE = 0.01, 0.001
#: rows of the left side, of the right side, and results that end as promised
LEFT, RIGHT, PROMISED = 0, 1, 2


class _Turns(NamedTuple):
    """By how many copies the promised results are wrong from an instant on."""

    code: Ints
    at: Ints
    change: Ints


class Difference(Operator):
    """Counts of both sides, by value."""

    name = "−"

    def __init__(
        self, plan: Except, left: Operator, right: Operator, choice: Choice, *, uniting: bool = False
    ) -> None:
        self.inputs = (left, right)
        self.names = [plan.left.schema.names, plan.right.schema.names]
        self.values: Columns = {n: left.columns[n] for n in self.names[0]}
        self.columns = dict(self.values) | dict(SIGNED)
        self.counted: Columns = dict(self.values) | {SIDE: pl.Int8(), N: pl.Int64()}
        self.ending: Columns = dict(self.counted) | {VE: pl.Int64()}
        self.promised: Columns = dict(self.values) | {N: pl.Int64(), VE: pl.Int64()}
        self.calendar = Calendar(choice.buckets)
        known = all(choice.known(part) for part in self.inputs) and not uniting
        self.retractions = Retractions(known, choice.options.negation, Negation.NEGATIVE, TELL, TELL_NO_MORE)
        if known and choice.options.negation is not Negation.NEGATIVE:
            choice.mixed.add(id(self))

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        new = pl.concat([self._side(side, frame) for side, frame in enumerate(inputs)])
        new = signed.grouped(new, list(self.values))
        ending = new.filter(pl.col(VE) < FOREVER).select(list(self.ending))
        over, later = self.calendar.due(self.calendar.add(state.of(ENDS), ending), stop, self.ending)
        left, promised = self.calendar.due(state.of(RESULTS), stop, self.promised)
        chunks = {COUNTS: state.of(COUNTS), ENDS: later, RESULTS: promised}
        if not new.height and not over.height and not left.height:
            return State(chunks, state.meta), signed.blank(self.columns)
        columns = [*self.values, SIDE, N]
        began = new.select(*columns, pl.col(VS).alias(AT))
        ended = over.select(*self.values, SIDE, -pl.col(N), pl.col(VE).alias(AT))
        gone = left.select(
            *self.values, pl.lit(PROMISED, pl.Int8).alias(SIDE), -pl.col(N), pl.col(VE).alias(AT)
        )
        moved = signed.together([began, ended], dict(self.counted) | {AT: pl.Int64()})
        events = pl.concat([moved, gone.select(moved.columns)])
        before = frame_of(state.of(COUNTS), self.counted).select(*columns, pl.lit(START, pl.Int64).alias(AT))
        before = before.filter(found_in(before, events, list(self.values)))
        chunks[COUNTS] = Hashed().add(state.of(COUNTS), moved.select(list(self.counted)))
        turns, early, on_time, rows = self._swept(pl.concat([events, before]))
        if self.retractions.form(state.meta) is Negation.CALENDAR or promised:
            calendar = self.retractions.form(state.meta) is Negation.CALENDAR
            found, chunks[RESULTS] = self._promises(
                turns, rows, new if calendar else new.clear(), promised, stop
            )
        else:
            found = self._pieces(rows, turns.code, turns.at, turns.change, FOREVER)
        return State(chunks, self.retractions.after(state.meta, early, on_time)), found

    def _side(self, side: int, frame: pl.DataFrame) -> pl.DataFrame:
        first = self.names[0]
        columns = [
            frame[a].cast(self.values[b]).alias(b) for a, b in zip(self.names[side], first, strict=True)
        ]
        rows = pl.DataFrame([*columns, frame[N], frame[VS], frame[VE]])
        return rows.with_columns(pl.lit(side, pl.Int8).alias(SIDE))

    def _swept(self, events: pl.DataFrame) -> tuple[_Turns, int, int, pl.DataFrame]:
        """Where results differ from what was promised; how many left early and on time; and their values."""
        n, side = events[N].to_numpy(), events[SIDE].to_numpy()
        lanes = [np.where(side == lane, n, 0) for lane in (LEFT, RIGHT, PROMISED)]
        swept = signed.sweep(signed.codes(events, list(self.values)), events[AT].to_numpy(), lanes)
        now = np.maximum(swept.totals[LEFT] - swept.totals[RIGHT], 0)
        was = np.maximum(swept.before(LEFT) - swept.before(RIGHT), 0)
        inside = swept.at > START
        change = now - was - _moved(swept, PROMISED)
        turns = np.flatnonzero(inside & (change != 0))
        falls = np.where(inside, np.maximum(was - now, 0), 0)
        on_time = np.minimum(falls, np.maximum(-_moved(swept, LEFT), 0))
        found = _Turns(swept.code[turns], swept.at[turns], change[turns])
        return found, int((falls - on_time).sum()), int(on_time.sum()), events.select(list(self.values))

    def _pieces(self, rows: pl.DataFrame, code: Ints, at: Ints, n: Ints, until: Ints | int) -> pl.DataFrame:
        ends = np.full(len(at), until, dtype=np.int64) if isinstance(until, int) else until
        return (
            picked(rows, code)
            .with_columns(
                pl.Series(VS, at, dtype=pl.Int64),
                pl.Series(VE, ends, dtype=pl.Int64),
                pl.Series(N, n, dtype=pl.Int64),
                pl.lit(-FOREVER, pl.Int64).alias(TS),
            )
            .select(list(self.columns))
        )

    def _promises(
        self, turns: _Turns, rows: pl.DataFrame, new: pl.DataFrame, promised: Chunks, stop: int
    ) -> tuple[pl.DataFrame, Chunks]:
        """The changes, copy by copy, each with an end if there is one; and what is promised after them.

        A copy that comes ends with a new left row of its value, if one is left. One that goes was promised to
        end at some instant, or was not promised at all.
        """
        code, at, sign = (np.repeat(column, np.abs(turns.change)) for column in turns)
        sign = np.sign(sign)
        births, deaths = unmatched(code, sign)
        names = list(self.values)
        alive = frame_of(promised, self.promised)
        if deaths.any() and alive.height:
            alive = signed.consolidated(alive.filter(found_in(alive, picked(rows, np.unique(code)), names)))
        else:
            alive = alive.clear()
        ends = new.filter((pl.col(SIDE) == LEFT) & pl.col(VE).is_between(stop, FOREVER - 1) & (pl.col(N) > 0))
        until = np.full(len(code), FOREVER)
        until[births] = self._assigned(rows, code[births], ends.select(list(self.promised)))
        until[deaths] = self._assigned(rows, code[deaths], alive)
        found = self._pieces(rows, code, at, sign, until)
        kept = found.filter(pl.Series((births | deaths) & (until < FOREVER)))
        return found, self.calendar.add(promised, kept.select(list(self.promised)))

    def _assigned(self, rows: pl.DataFrame, code: Ints, ends: pl.DataFrame) -> Ints:
        """An end for each of some copies, of those that their value has, latest first; else infinity."""
        if not len(code) or not ends.height:
            return np.full(len(code), FOREVER)
        names = list(self.values)
        ends = picked(ends, np.repeat(np.arange(ends.height), ends[N].to_numpy())).sort(VE, descending=True)
        same = signed.codes(pl.concat([rows.select(names), ends.select(names)]), names)[rows.height :]
        have = pl.DataFrame({"code": same, VE: ends[VE]}).with_columns(_place())
        want = pl.DataFrame({"code": code}).with_columns(_place())
        found = want.join(have, on=["code", "place"], how="left", maintain_order="left")
        return found[VE].fill_null(FOREVER).to_numpy()


def _moved(swept: signed.Swept, lane: int) -> Ints:
    return swept.totals[lane] - swept.before(lane)


def _place() -> pl.Expr:
    return pl.int_range(pl.len()).over("code").alias("place")


def unmatched(code: Ints, sign: Ints) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Copies that come and stay, and copies that go and were there before; each code's are in order of time.

    >>> births, deaths = unmatched(np.zeros(4, dtype=int), np.array([-1, 1, -1, 1]))
    >>> births.tolist(), deaths.tolist()
    ([False, False, False, True], [True, False, False, False])
    """
    depth = pl.DataFrame({"code": code, "n": sign}).select(pl.col("n").cum_sum().over("code"))["n"].to_numpy()
    level = np.where(sign > 0, depth, depth + 1)
    order = np.lexsort((np.arange(len(code)), level, code))
    new = np.ones(len(code), dtype=bool)
    if len(code):
        new[1:] = (code[order][1:] != code[order][:-1]) | (level[order][1:] != level[order][:-1])
    last = np.append(new[1:], True)[: len(code)]
    births, deaths = np.zeros(len(code), dtype=bool), np.zeros(len(code), dtype=bool)
    births[order] = last & (sign[order] > 0)
    deaths[order] = new & (sign[order] < 0)
    return births, deaths
