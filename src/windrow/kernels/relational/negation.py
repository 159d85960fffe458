"""Negation and its kin: EXISTS, NOT EXISTS and EXCEPT ALL.

EXISTS and NOT EXISTS: rows of the left side while they have, or have not, a partner on the right. What a
row's partners depend on are the columns that the predicate reads of it. So

    EXISTS(L, R)      = L ⋈ δ(D ⋈ R),  D the distinct values of those columns in L
    NOT EXISTS(L, R)  = L − EXISTS(L, R)

where − is the difference of signed pieces, which needs no state: every piece of the semi-join lies in one of
L. With nothing but equalities, D is not needed: EXISTS(L, R) = L ⋈ δ(keys of R).

Card: match
    requirements  any signed pieces, any predicate
    time          as the joins and δ it is made of
    space         L, the distinct keys of R, or D and R; the results of NOT EXISTS where each is told by a
                  negative row (`retractions`)
    source        Golab's thesis, 3.5.2 (negation), by the linearity of signed pieces

Results that leave on time carry their expiry, and whoever keeps them has them in a calendar. One that leaves
early, because a match came, is taken away by a negative row, for which the calendar is searched. If most
leave early, it is better to tell every expiry by a negative row, and to keep results in a hash (thesis,
3.5.2). So the share of early ones is observed, and the form changes when it is clearly on the other side.
Which share that is depends on what each form costs. NOT EXISTS finds every expiry with the row it passes on,
so negative rows cost it a copy of its results (209 000 rows/s instead of 271 000, 250 000 rows on either
side): they pay only where next to nothing leaves on time. EXCEPT ALL learns of expiries by its counts, and
must keep what it has promised in the calendar form (87 000 rows/s instead of 192 000): that pays only where
next to nothing leaves early.

EXCEPT ALL: max(0, k1 - k2) copies of each row.

Card: difference of counts
    requirements  any signed pieces
    time          events of the step, sorted
    space         two counts per value, the copies' expiries that are known, and the results that were given
                  one (`retractions`)
    source        Golab's thesis, 3.5.2 (negation by frequency counts)

In the calendar form a result ends when the left row does that brought it. That is a guess, since matches may
come and copies stay. So each step adds the difference between the counts as they are and as they were
promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from windrow.algebra.expressions import ColumnRef, Expression
from windrow.algebra.operators import Except, Exists
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import expiry_layouts as layouts, signed_rows as signed
from windrow.kernels.relational.distinct import distinct
from windrow.kernels.relational.join import multiway, partners
from windrow.kernels.relational.operator import Operator, Stateless, Step, composed, part
from windrow.kernels.relational.signed_rows import AT, FOREVER, INT, SIGNED, START, TS, VE, VS, N
from windrow.kernels.relational.windows.leaf import NegativeRows
from windrow.kernels.state import State
from windrow.windows import Flags, Ints, Pattern, interfering

EARLY, ON_TIME, TOLD = "early", "on_time", "told"
#: nothing is concluded from fewer results
FEWEST = 32
#: older results count less: both numbers are halved when there are more
MOST = 1 << 12


@dataclass(frozen=True)
class Retractions:
    """Which form is used, as far as it can be chosen: only if every row below carries its expiry."""

    possible: bool
    forced: layouts.Negation | None = None
    first: layouts.Negation = layouts.Negation.CALENDAR
    #: above this share of early results every expiry is told, below that one no longer
    tell: float = 0.5
    tell_no_more: float = 0.3

    def form(self, meta: Mapping[str, int]) -> layouts.Negation:
        """The form in this step.

        >>> [Retractions(known).form({TOLD: 0}).value for known in (True, False)]
        ['calendar', 'negative rows']
        """
        if not self.possible:
            return layouts.Negation.NEGATIVE
        told = meta.get(TOLD, int(self.first is layouts.Negation.NEGATIVE))
        return self.forced or (layouts.Negation.NEGATIVE if told else layouts.Negation.CALENDAR)

    def after(self, meta: Mapping[str, int], early: int, on_time: int) -> dict[str, int]:
        """What is remembered of a step in which so many results left early, and so many on time.

        A result counts as on time until it leaves early, so that there may be fewer than before.

        >>> Retractions(True).after({}, early=30, on_time=10)
        {'early': 30, 'on_time': 10, 'told': 1}
        >>> Retractions(True).after({"early": 30, "on_time": 10, "told": 1}, early=0, on_time=40)["told"]
        1
        """
        if not self.possible:
            return {}
        early, on_time = meta.get(EARLY, 0) + early, max(0, meta.get(ON_TIME, 0) + on_time)
        told = self.form(meta) is layouts.Negation.NEGATIVE
        total = early + on_time
        if total >= FEWEST:
            told = early > (self.tell_no_more if told else self.tell) * total
        if total > MOST:
            early, on_time = early // 2, on_time // 2
        return {EARLY: early, ON_TIME: on_time, TOLD: int(told)}

    @property
    def text(self) -> str:
        """What people read."""
        if not self.possible:
            return "results leave by negative rows, since rows below do"
        if self.forced:
            return f"results leave by {_WORDS[self.forced]}, as asked for"
        return f"results leave by {_WORDS[self.first]} at first, then as the share of early ones says"


_WORDS = {
    layouts.Negation.CALENDAR: "calendar, early ones by negative rows",
    layouts.Negation.NEGATIVE: "negative rows",
}


#: a column that is always there, where no other is
ONE = "#one"
#: of the last step: how many rows lost their place when a partner came, and how many never had one
CUT, HIDDEN, BORN = "cut", "hidden", "#born"
#: shares of early results (`retractions`)
TELL, TELL_NO_MORE = 0.9, 0.7


class Keys(Stateless):
    """Pieces with nothing but keys."""

    name = "keys"

    def __init__(self, below: Operator, expressions: Sequence[Expression]) -> None:
        self.inputs = (below,)
        self.expressions = tuple(expressions)
        probe = partners.keyed(signed.blank(below.columns), expressions).schema
        keys = {name: dtype for name, dtype in probe.items() if name.startswith("#key")}
        self.columns = keys | {ONE: pl.Int8()} | SIGNED

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return _of_no_rows(partners.keyed(inputs[0], self.expressions)).select(list(self.columns))


class _Asked(Stateless):
    """The columns that a predicate reads."""

    name = "asked"

    def __init__(self, below: Operator, names: Sequence[str]) -> None:
        self.inputs = (below,)
        self.columns = {name: below.columns[name] for name in names} | {ONE: pl.Int8()} | SIGNED

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return _of_no_rows(inputs[0]).select(list(self.columns))


def _of_no_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Pieces that are made of no certain rows, with a column that is always there."""
    return frame.with_columns(pl.lit(1, pl.Int8).alias(ONE), pl.lit(-FOREVER, pl.Int64).alias(TS))


class Semijoin(Operator):
    """Pieces of the left side, cut to where their keys are present; `negated`, to where they are not."""

    name = "semi-join"

    def __init__(
        self,
        left: Operator,
        present: Operator,
        keys: Sequence[Expression],
        choice: layouts.Choice,
        *,
        nulls: bool,
        negated: bool,
        tells: bool,
    ) -> None:
        self.inputs = (left, present)
        self.negated = negated
        #: whether results end by negative rows, although rows below carry their ends
        self.tells = tells
        self.keys = tuple(keys)
        self.nulls = nulls
        self.layouts = [choice.layout(left), choice.layout(present)]
        self.loops = choice.options.tables is layouts.Tables.LOOPS
        self.expiry = multiway.Expiry(choice.options.expire_every)
        self.columns = left.columns
        self.sides = [signed.without(each.columns, VS) for each in self.inputs]

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        left, right = inputs
        frames = [layouts.frame_of(state.of(str(i)), side) for i, side in enumerate(self.sides)]
        old_left, old_right = map(signed.begun, frames)
        if self.tells:
            left = partners.with_negative_rows(old_left, left, step.slice)
            old_left = partners.still_there(old_left, step.slice)
        everything = signed.together([old_right, right], self.inputs[1].columns)
        met = [self._met(left, everything), self._met(old_left.select(list(self.columns)), right)]
        found = signed.together(met, self.columns)
        if self.negated:
            found = signed.consolidated(signed.together([left, signed.negated(found)], self.columns))
        after = self.expiry.after(state, self.layouts, self.sides, inputs, partners.last_kept(step.slice))
        return State(after.chunks, {**after.meta, **_shares(met)}), found

    def _met(self, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
        if not left.height or not right.height:
            return signed.blank(self.columns | {BORN: INT})
        left = left.with_columns(pl.col(VS).alias(BORN))
        keys, left = [f"#key{i}" for i in range(len(self.keys))], partners.keyed(left, self.keys)
        pairs = partners.meet(left, right, keys, nulls=self.nulls, loops=self.loops)
        return pairs.select(*self.columns, BORN)


def _shares(met: Sequence[pl.DataFrame]) -> dict[str, int]:
    """How many rows lost their place when a partner came, and how many never had one."""
    late, partner = pl.col(VS) > pl.col(BORN), pl.col(N) > 0
    cut = sum(int(frame.filter(late & partner)[N].sum()) for frame in met)
    hidden = sum(int(frame.filter(~late)[N].sum()) for frame in met)
    return {CUT: cut, HIDDEN: max(0, hidden)}


class Matched(Operator):
    """[NOT] EXISTS, made of joins and δ.

    `lapses` asks for keys on the right that are told when they come and go, not each time they are prolonged;
    `tells` for results that are told when they end.
    """

    def __init__(
        self,
        plan: Exists,
        left: Operator,
        right: Operator,
        choice: layouts.Choice,
        *,
        uniting: bool,
        lapses: bool,
        tells: bool,
    ) -> None:
        self.name = "NOT EXISTS" if plan.negated else "EXISTS"
        self.inputs = (left, right)
        self.columns = left.columns
        self.negated = plan.negated
        names = [plan.left.schema.names, plan.right.schema.names]
        condition = partners.Condition(plan.predicate, names)
        if condition.is_equality:
            self.asked: tuple[Operator, Operator] | None = None
            theirs = [equality.side(1) for equality in condition.equalities]
            keys: list[Expression] = [equality.side(0) for equality in condition.equalities]
            self.theirs: Operator = Keys(right, theirs)
            choice.label(self.theirs, choice.labels[id(right)])
        else:
            read = [name for name in names[0] if name in plan.predicate.columns]
            keys = [ColumnRef(name, plan.left.schema.column(name).type) for name in read]
            asked = _Asked(left, read)
            choice.label(asked, choice.labels[id(left)])
            different = distinct(asked, choice)
            pairs = multiway.Joined([different, right], plan.predicate, [read, names[1]], choice)
            sides = [choice.labels[id(side)] for side in (different, right)]
            choice.label(pairs, interfering(sides, "a pair lives while both do"))
            self.asked = asked, different
            self.pairs = pairs
            self.theirs = Keys(pairs, keys)
            choice.label(self.theirs, choice.labels[id(pairs)])
        coming = lapses and (tells or plan.negated)
        self.present = distinct(self.theirs, choice, uniting=uniting, tells=coming)
        self.tells = tells and any(map(choice.ends, (left, self.present)))
        present = choice.labels[id(self.present)]
        if uniting and present.pattern is Pattern.STR:  # a row ends as its key is retracted
            choice.label(self, present)
        how = {"nulls": not condition.is_equality, "negated": plan.negated, "tells": self.tells}
        self.kept = Semijoin(left, self.present, keys, choice, **how)
        self.condition = condition
        expires = all(choice.known(side) for side in self.inputs) and not self.tells
        known = plan.negated and expires and not uniting
        self.retractions = Retractions(
            known, choice.options.negation, layouts.Negation.CALENDAR, TELL, TELL_NO_MORE
        )
        self.told = NegativeRows(left, layouts.Hashed())
        if known and choice.options.negation is not layouts.Negation.NEGATIVE:
            choice.mixed.add(id(self))

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        left, right = inputs
        parts: dict[str, State] = {}
        if self.asked is not None:
            asked, different = self.asked
            _, rows = asked.advance(State(), [left], step)
            parts["asked"], rows = different.advance(part(state, "asked"), [rows], step)
            parts["pairs"], right = self.pairs.advance(part(state, "pairs"), [rows, right], step)
        _, keys = self.theirs.advance(State(), [right], step)
        parts["present"], present = self.present.advance(part(state, "present"), [keys], step)
        parts["kept"], found = self.kept.advance(part(state, "kept"), [left, present], step)
        if not self.retractions.possible:
            return composed(parts), found
        early = int(parts["kept"].meta[CUT])
        shown = int(left[N].sum()) - int(parts["kept"].meta[HIDDEN])
        parts["told"], found = self._left(part(state, "told"), found, step, early, shown - early)
        return composed(parts), found

    def _left(
        self, state: State, found: pl.DataFrame, step: Step, early: int, on_time: int
    ) -> tuple[State, pl.DataFrame]:
        """Results in the form in which they leave; those that were told before are told to the end."""
        tells = self.retractions.form(state.meta) is layouts.Negation.NEGATIVE
        kept, told = self.told.advance(state, [found if tells else found.clear()], step)
        found = told if tells else signed.together([found, told], self.columns)
        return State(kept.chunks, self.retractions.after(state.meta, early, on_time)), found


COUNTS, ENDS, RESULTS = "counts", "ends", "results"
SIDE = "#side"
#: shares of early results (`retractions`)
TELL_COUNTS, TELL_COUNTS_NO_MORE = 0.01, 0.001
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
        self, plan: Except, left: Operator, right: Operator, choice: layouts.Choice, *, uniting: bool = False
    ) -> None:
        self.inputs = (left, right)
        self.names = [plan.left.schema.names, plan.right.schema.names]
        self.values = {n: left.columns[n] for n in self.names[0]}
        self.columns = self.values | SIGNED
        self.counted = self.values | {SIDE: pl.Int8(), N: INT}
        self.ending = self.counted | {VE: INT}
        self.promised = self.values | {N: INT, VE: INT}
        self.calendar = layouts.Calendar(choice.buckets)
        known = all(choice.known(part) for part in self.inputs) and not uniting
        self.retractions = Retractions(
            known, choice.options.negation, layouts.Negation.NEGATIVE, TELL_COUNTS, TELL_COUNTS_NO_MORE
        )
        if known and choice.options.negation is not layouts.Negation.NEGATIVE:
            choice.mixed.add(id(self))

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        new = pl.concat([self._side(side, frame) for side, frame in enumerate(inputs)])
        new = signed.grouped(new, list(self.values))
        over, later = self.calendar.ended(state.of(ENDS), new, stop, self.ending)
        left, promised = self.calendar.due(state.of(RESULTS), stop, self.promised)
        chunks = {COUNTS: state.of(COUNTS), ENDS: later, RESULTS: promised}
        if not new.height and not over.height and not left.height:
            return State(chunks, state.meta), signed.blank(self.columns)
        columns = [*self.values, SIDE]
        moved = signed.events(new, over, columns)
        side = pl.lit(PROMISED, pl.Int8).alias(SIDE)
        events = pl.concat([moved, left.select(*self.values, side, pl.col(VE).alias(AT), -pl.col(N))])
        before = layouts.frame_of(state.of(COUNTS), self.counted)
        before = before.select(*columns, pl.lit(START, pl.Int64).alias(AT), N)
        before = before.filter(signed.found_in(before, events, list(self.values)))
        chunks[COUNTS] = layouts.Hashed().add(state.of(COUNTS), moved.select(list(self.counted)))
        turns, early, on_time, rows = self._swept(pl.concat([events, before]))
        calendar = self.retractions.form(state.meta) is layouts.Negation.CALENDAR
        if calendar or promised:
            new = new if calendar else new.clear()
            found, chunks[RESULTS] = self._promises(turns, rows, new, promised, stop)
        else:
            found = signed.pieces(picked(rows, turns.code), self.columns, turns.at, n=turns.change)
        return State(chunks, self.retractions.after(state.meta, early, on_time)), found

    def _side(self, side: int, frame: pl.DataFrame) -> pl.DataFrame:
        names = zip(self.names[side], self.names[0], strict=True)
        columns = [frame[mine].cast(self.values[name]).alias(name) for mine, name in names]
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
        change = now - was - swept.change(PROMISED)
        turns = np.flatnonzero(inside & (change != 0))
        falls = np.where(inside, np.maximum(was - now, 0), 0)
        on_time = np.minimum(falls, np.maximum(-swept.change(LEFT), 0))
        found = _Turns(swept.code[turns], swept.at[turns], change[turns])
        return found, int((falls - on_time).sum()), int(on_time.sum()), events.select(list(self.values))

    def _promises(
        self, turns: _Turns, rows: pl.DataFrame, new: pl.DataFrame, promised: layouts.Chunks, stop: int
    ) -> tuple[pl.DataFrame, layouts.Chunks]:
        """The changes, copy by copy, each with an end if there is one; and what is promised after them.

        A copy that comes ends with a new left row of its value, if one is left. One that goes was promised to
        end at some instant, or was not promised at all.
        """
        code, at, sign = (np.repeat(column, np.abs(turns.change)) for column in turns)
        sign = np.sign(sign)
        births, deaths = unmatched(code, sign)
        names = list(self.values)
        alive = layouts.frame_of(promised, self.promised)
        if deaths.any() and alive.height:
            mine = signed.found_in(alive, picked(rows, np.unique(code)), names)
            alive = signed.consolidated(alive.filter(mine))
        else:
            alive = alive.clear()
        ends = new.filter((pl.col(SIDE) == LEFT) & pl.col(VE).is_between(stop, FOREVER - 1) & (pl.col(N) > 0))
        until = np.full(len(code), FOREVER)
        until[births] = self._assigned(rows, code[births], ends.select(list(self.promised)))
        until[deaths] = self._assigned(rows, code[deaths], alive)
        found = signed.pieces(picked(rows, code), self.columns, at, until, sign)
        kept = found.filter(pl.Series((births | deaths) & (until < FOREVER)))
        return found, self.calendar.add(promised, kept.select(list(self.promised)))

    def _assigned(self, rows: pl.DataFrame, code: Ints, ends: pl.DataFrame) -> Ints:
        """An end for each of some copies, of those that their value has, latest first; else infinity."""
        if not len(code) or not ends.height:
            return np.full(len(code), FOREVER)
        ends = signed.copies(ends).sort(VE, descending=True)
        _, same = signed.codes_of([rows, ends], list(self.values))
        have = pl.DataFrame({"code": same, VE: ends[VE]}).with_columns(_place())
        want = pl.DataFrame({"code": code}).with_columns(_place())
        found = want.join(have, on=["code", "place"], how="left", maintain_order="left")
        return found[VE].fill_null(FOREVER).to_numpy()


def _place() -> pl.Expr:
    return pl.int_range(pl.len()).over("code").alias("place")


def unmatched(code: Ints, sign: Ints) -> tuple[Flags, Flags]:
    """Copies that come and stay, and copies that go and were there before; each code's are in order of time.

    >>> births, deaths = unmatched(np.zeros(4, dtype=int), np.array([-1, 1, -1, 1]))
    >>> births.tolist(), deaths.tolist()
    ([False, False, False, True], [True, False, False, False])
    """
    order, new = signed.levels(code, sign)
    last = np.append(new[1:], True)[: len(code)]
    births, deaths = np.zeros(len(code), dtype=bool), np.zeros(len(code), dtype=bool)
    births[order] = last & (sign[order] > 0)
    deaths[order] = new & (sign[order] < 0)
    return births, deaths
