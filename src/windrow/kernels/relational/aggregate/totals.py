"""γ without its rows: totals that are added to and subtracted from, candidates for extremes, and waves.

Card: running totals
    requirements  exact inverses (COUNT, and SUM, AVG and variances of exact numbers); any signed pieces
    time          events of the step, sorted; values are computed where a group's rows change
    space         one state per group, and one for each group and instant at which rows will leave
    source        Golab's thesis, 2.3.4 (running synopses); No Pane, No Gain (differential aggregates)
Card: candidates
    requirements  MIN, MAX, ANY_VALUE, FIRST, LAST; rows leave in the order they come
    time          O(rows · log rows) array operations for the rows of a group that are looked at
    space         rows that no younger row of their group outdoes
    source        Golab's thesis, 2.2.2 (MAX keeps what no younger row exceeds); sparse tables for ranges
Card: sparse table
    requirements  associative, commutative, idempotent operation (minimum, maximum)
    time          O(n · log longest range) array operations, then one per range
    space         one level at a time
    source        Bender and Farach-Colton 2000 (range minimum by overlapping powers of two)
Card: waves
    requirements  APPROX_COUNT, APPROX_SUM; rows leave in the order they come
    time          O((new rows + kept rows) · log) array operations, no loop over groups
    space         per group c = ⌈1/ε⌉ + 1 rows for each power of two up to the sum
    source        Gibbons and Tirthapura 2002 (deterministic waves); Golab's thesis, 2.3.4 (exponential
                  histograms)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from windrow.algebra.operators import Aggregate
from windrow.errors import DataError, QueryError
from windrow.kernels.aggregates.measures import GROUPS, Argument, WavePartial, marks
from windrow.kernels.aggregates.partials import Partial, SelectedPartial
from windrow.kernels.columnar.columns import picked
from windrow.kernels.columnar.combiners import GREATEST, TOTAL
from windrow.kernels.relational import expiry_layouts as layouts, signed_rows as signed
from windrow.kernels.relational.aggregate import by_expiry
from windrow.kernels.relational.aggregate.group_by import AT, CELL, GROUP, SHOWN, WAITING, Grouped, lowered
from windrow.kernels.relational.expiry_layouts import MERGED, Choice, Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, INT, START, TS, TURN, VE, VS, Columns, N
from windrow.kernels.state import PANE, State
from windrow.windows.domain import Flags, Ints


def fold_ranges(fold: np.ufunc, values: Ints, low: Ints, high: Ints) -> Ints:
    """The fold of values[low:high] for each range; 0 for empty ones.

    >>> values, low, high = np.array([5, 2, 7, 1]), np.array([0, 1, 2, 3]), np.array([1, 3, 2, 4])
    >>> fold_ranges(np.minimum, values, low, high).tolist()
    [5, 2, 0, 1]
    """
    length = np.maximum(high - low, 0)
    level_of = np.frexp(np.maximum(length, 1).astype(np.float64))[1] - 1
    found = np.zeros(len(low), dtype=np.int64)
    table, level = values, 0
    while len(length) and level <= int(level_of.max()):
        mine = np.flatnonzero((level_of == level) & (length > 0))
        found[mine] = fold(table[low[mine]], table[high[mine] - (1 << level)])
        width = 1 << level
        table = fold(table[:-width], table[width:]) if len(table) > width else table
        level += 1
    return found


#: of a row kept for a wave: of which wave, the numbers of its units (from, to], when it leaves
WAVE, FROM, TO = "#wave", "#from", "#to"
#: numbers are brought down by this much before they are as large again; a multiple of every power that counts
FAR = 1 << 60


@dataclass(frozen=True)
class NumberedUnits:
    """The rows of one wave in order of group and time, with the numbers of their units."""

    rows: pl.DataFrame
    group: Ints
    vs: Ints
    ve: Ints
    before: Ints
    to: Ints

    def estimates(self, low: Ints, high: Ints, most: int) -> Ints:
        """The sum of the rows from place `low` to before `high`, for each of these ranges; 0 of none."""
        found = np.zeros(len(low), dtype=np.int64)
        some = np.flatnonzero(low < high)
        low, high = low[some], high[some]
        last, gone = self.to[high - 1], self.before[low]
        least, next_mark = marks(last, gone, most)
        place = _first_reaching(self.to, low, high, next_mark)
        start = np.where(next_mark > last, last, self.before[np.minimum(place, high - 1)])
        found[some] = last - (least + ((start - least) >> 1))
        return found

    def kept(self, wave: WavePartial, number: int, stays: Flags, keys: list[str]) -> pl.DataFrame:
        """What is left to know of the rows that stay: those with a mark, and the last one."""
        ends = signed.tails(self.group)
        places = np.flatnonzero(ends)
        sizes = np.diff(places, prepend=-1)
        final = np.repeat(self.to[places], sizes)
        _, next_mark = marks(final, self.before, wave.most)
        useful = np.flatnonzero(stays & (ends | (next_mark <= self.to)))
        far = signed.running(self.group[useful], self.before[useful], pl.Expr.min) // FAR
        far = np.maximum(far - 1, 0) * FAR
        return picked(self.rows.select(*keys, VE), useful).with_columns(
            pl.lit(number, pl.Int32).alias(WAVE),
            pl.Series(FROM, self.before[useful] - far),
            pl.Series(TO, self.to[useful] - far),
        )


def numbered(
    old: pl.DataFrame, new: pl.DataFrame, units: str, codes: Callable[[pl.DataFrame], Ints]
) -> NumberedUnits:
    """Rows kept before and new rows of a wave; `codes` tells groups apart."""
    names = [name for name in new.columns if name not in (VS, units)]
    rows = pl.concat([old.select(names), new.select(names)])
    group = codes(rows)
    vs = np.concatenate([np.full(old.height, -FOREVER), new[VS].to_numpy()])
    ve = np.concatenate([old[VE].to_numpy(), new[VE].to_numpy()])
    # of old rows the last number they had, of new ones how many they add
    value = np.concatenate([old[TO].to_numpy(), new[units].to_numpy()])
    before = np.concatenate([old[FROM].to_numpy(), np.zeros(new.height, dtype=np.int64)])
    order = np.lexsort((value, vs, group))
    group, vs, ve, value, before = group[order], vs[order], ve[order], value[order], before[order]
    was = vs == -FOREVER
    fresh = np.append(True, (group[1:] != group[:-1]) | (vs[1:] >= ve[:-1])) if len(group) else was
    follows = np.append(False, was[:-1]) & ~fresh & ~was
    base = np.where(follows, np.append(0, value[:-1]), 0) if len(group) else value
    to = np.where(was, value, _running(np.where(was, 0, value) + base, fresh | was | follows))
    return NumberedUnits(picked(rows, order), group, vs, ve, np.where(was, before, to - value), to)


def _running(values: Ints, starts: Flags) -> Ints:
    """Sums that begin anew where `starts` says; sums too large to number are refused."""
    if not len(values):
        return values
    heads = np.flatnonzero(starts)
    if float(np.add.reduceat(values.astype(np.float64), heads).max()) >= 2.0**62:
        raise DataError(
            "the units of APPROX_SUM exceed 64 bits", code="arithmetic-overflow", hint="divide its argument"
        )
    with np.errstate(over="ignore"):
        total = np.cumsum(values)
        return np.asarray(total - np.repeat((total - values)[heads], np.diff(np.append(heads, len(values)))))


def _first_reaching(values: Ints, low: Ints, high: Ints, wanted: Ints) -> Ints:
    """The first place from `low` to before `high` whose value is at least `wanted`; `high` if none is."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) >> 1
        short = (low < high) & (values[np.minimum(middle, len(values) - 1)] < wanted)
        high = np.where(short | (low >= high), high, middle)
        low = np.where(short, middle + 1, low)
    return low


TOTALS, ENDS, CANDIDATES, WAVES = "totals", "ends", "candidates", "waves"


def grouped(
    plan: Aggregate, below: Operator, choice: Choice, sources: dict[str, int] | None = None
) -> Grouped:
    """γ in the form that fits its aggregates and what is below."""
    general = Grouped(plan, below, choice, sources)
    partials = general.measures.layouts[GROUPS].partials
    others = [p for p in partials if not _inverts(p)]
    label = choice.labels.get(id(below))
    # turns are told apart within a step only, so rows that have one are looked at again
    fifo = choice.known(below) and label is not None and label.fifo and TURN not in below.columns
    small = all(isinstance(p, SelectedPartial | WavePartial) and fifo for p in others)
    if len(general.measures.layouts) == 1 and small:
        return Running(plan, below, choice, sources)
    if any(isinstance(p, WavePartial) for p in partials):
        raise QueryError(
            "an estimated COUNT or SUM is kept only where rows leave in the order they come",
            code="unsupported",
            hint="take COUNT or SUM",
        )
    for kind in (by_expiry.ByEnd, by_expiry.Candidates):
        if kind.fits(general):
            return kind(plan, below, choice, sources)
    return general


def _inverts(partial: Partial) -> bool:
    return not isinstance(partial, WavePartial) and all(combiner is TOTAL for combiner in partial.combiners)


class Running(Grouped):
    """γ by totals, candidates and waves."""

    name = "γ, running"

    def __init__(
        self, plan: Aggregate, below: Operator, choice: Choice, sources: dict[str, int] | None = None
    ) -> None:
        super().__init__(plan, below, choice, sources)
        partials = self.measures.layouts[GROUPS].partials
        self.totals = [partial for partial in partials if _inverts(partial)]
        self.selected = [partial for partial in partials if isinstance(partial, SelectedPartial)]
        self.waves = [partial for partial in partials if isinstance(partial, WavePartial)]
        lifted = self._lifted_rows(signed.blank(self.pieces))
        mine = [column for column in lifted.columns if self._of(self.totals, column)]
        theirs = [column for column in lifted.columns if self._of(self.selected, column)]
        self.lanes = mine
        self.kept: Columns = self.groups | dict.fromkeys(mine, INT)
        self.ending: Columns = self.kept | {VE: INT}
        #: some aggregates are known from few rows of a group; the youngest is always one of them
        self.by_rows = bool(self.selected or self.waves)
        self.reads_states = not self.by_rows
        spans = {VS: INT, VE: INT} if self.by_rows else {}
        self.candidates: Columns = self.groups | {n: lifted[n].dtype for n in theirs} | spans
        self.waved: Columns = self.groups | {WAVE: pl.Int32(), FROM: INT, TO: INT}
        self.waved = self.waved | {VE: INT}
        self.calendar = layouts.Calendar(choice.buckets)
        if not self.by_rows:
            self.pieces = self.kept | {VS: INT, VE: INT, N: INT}
        #: no totals are asked for: candidates and waves are all there is to know
        self.only_selected = self.by_rows and len(self.totals) == 1

    @staticmethod
    def _of(partials: Sequence[Partial], column: str) -> bool:
        return any(column.startswith(f"{partial.label}.") for partial in partials)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = frame_of(state.of(WAITING), self.pieces, self._taken(inputs[0], step))
        new, waiting = self._split(new, step, VS)
        lifted = self._lifted_rows(new) if self.by_rows else new
        leaving = self._leaving_candidates if self.only_selected else self._leaving
        over, ends = leaving(state, lifted, step)
        chunks = {**state.chunks, WAITING: chunks_of(waiting)}
        last = state.meta.get(MERGED, 0)
        chunks[ENDS], merged = layouts.condensed(self.calendar, ends, self.ending, last, self._put_together)
        meta = {MERGED: merged} if merged else {}
        fading, _ = self._split(frame_of(state.of(WAVES), self.waved), step, VE)
        if not new.height and not over.height and not fading.height:
            return State(chunks, meta), signed.blank(self.columns)
        events = self._events(lifted, over, fading)
        totals, shown = self._totals(state), frame_of(state.of(SHOWN), self.shown)
        mine, same = self._in(totals, events), self._in(shown, events)
        before = totals.filter(mine).with_columns(pl.lit(START, pl.Int64).alias(AT))
        everything = signed.together([events, before], self.kept | {AT: INT})
        found, after, left, rows = self._swept(everything, shown.filter(same), state, lifted, step)
        if not self.only_selected:
            chunks[TOTALS] = chunks_of(signed.together([totals.filter(~mine), left], self.kept))
        chunks[SHOWN] = chunks_of(signed.together([shown.filter(~same), after], self.shown))
        chunks |= {name: chunks_of(kept) for name, kept in rows.items()}
        return State(chunks, meta), found

    def _taken(self, pieces: pl.DataFrame, step: Step) -> pl.DataFrame:
        """Totals are made of states, whatever rows they come from."""
        if self.by_rows:
            return super()._taken(pieces, step)
        return (step.lifts or by_expiry.Lifts(pieces)).states(self.measures).select(list(self.pieces))

    def _leaving(self, state: State, lifted: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, Chunks]:
        """What leaves in the step, and what is to leave later."""
        ending = lifted.filter(pl.col(VE) < FOREVER)
        ends = self._put_together(ending.with_columns(pl.col(name) * pl.col(N) for name in self.lanes))
        later = self.calendar.add(state.of(ENDS), ends)
        over, later = self.calendar.due(later, step.slice.stop, self.ending)
        over, early = self._split(over, step, VE)
        return over, self.calendar.add(later, early)

    def _leaving_candidates(
        self, state: State, lifted: pl.DataFrame, step: Step
    ) -> tuple[pl.DataFrame, Chunks]:
        """New rows and candidates that leave: the others were outdone, so that no value changes with them."""
        counted = pl.lit(1, pl.Int64).alias("rows.0")
        old = frame_of(state.of(CANDIDATES), self.candidates).with_columns(counted)
        over, _ = self._split(signed.together([old, lifted], self.ending), step, VE)
        return over, ()

    def _totals(self, state: State) -> pl.DataFrame:
        """What groups have before the step; where only extremes are asked for, how many candidates."""
        if not self.only_selected:
            return frame_of(state.of(TOTALS), self.kept)
        old = frame_of(state.of(CANDIDATES), self.candidates)
        if not self.keys:
            return pl.DataFrame({"rows.0": [old.height]}, schema=dict(self.kept)).filter(pl.col("rows.0") > 0)
        return old.group_by(self.keys).agg(pl.len().cast(pl.Int64).alias("rows.0")).select(list(self.kept))

    def _lifted_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The states of single rows, with their keys and intervals."""
        order = pl.struct(TURN, TS).rank("dense").cast(pl.Int64) if TURN in rows.columns else pl.col(TS)
        placed = rows.select(order.alias("#t"), *map(pl.col, self.plan.input.schema.names))
        columns = [pl.Series("rows.0", [1], dtype=pl.Int64).new_from_index(0, rows.height)]
        for partial in self.measures.layouts[GROUPS].partials[1:]:
            argument = Argument(*self.measures.argument_of(partial))
            columns += partial.lift(argument.rows(rows, placed))
        return pl.DataFrame([*rows.select(*self.keys, VS, VE, N), *columns])

    def _put_together(self, rows: pl.DataFrame) -> pl.DataFrame:
        if not rows.height:
            return signed.blank(self.ending)
        added = [pl.col(name).sum() for name in self.lanes]
        return rows.group_by([*self.keys, VE]).agg(added).select(list(self.ending))

    def _events(self, lifted: pl.DataFrame, over: pl.DataFrame, fading: pl.DataFrame) -> pl.DataFrame:
        copies = pl.lit(1, pl.Int64) if self.only_selected else pl.col(N)  # a candidate leaves as one row
        came = lifted.select(*self.keys, pl.col(VS).alias(AT), *(pl.col(n) * copies for n in self.lanes))
        gone = over.select(*self.keys, pl.col(VE).alias(AT), *(-pl.col(name) for name in self.lanes))
        nothing = (pl.lit(0, pl.Int64).alias(name) for name in self.lanes)
        faded = fading.select(*self.keys, pl.col(VE).alias(AT), *nothing)
        return pl.concat([came, gone, faded])

    def _swept(
        self, events: pl.DataFrame, shown: pl.DataFrame, state: State, lifted: pl.DataFrame, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, dict[str, pl.DataFrame]]:
        """The changes, the values and totals after them, and the rows that are left, by what they are for."""
        keys = pl.concat([shown.select(self.keys), events.select(self.keys)]) if self.keys else pl.DataFrame()
        before, mine = signed.codes_of([shown, events], self.keys)
        lanes = [events[name].to_numpy() for name in self.lanes]
        swept = signed.sweep(mine, events[AT].to_numpy(), lanes)
        inside = swept.at > START
        group, at = swept.code[inside], swept.at[inside]
        cells = pl.DataFrame({CELL: np.arange(len(at)), GROUP: group, AT: at})
        totals = [pl.Series(name, lane) for name, lane in zip(self.lanes, swept.totals, strict=True)]
        states = pl.DataFrame(
            [cells[CELL].alias(PANE), *(total.filter(pl.Series(inside)) for total in totals)]
        )
        rows: dict[str, pl.DataFrame] = {}
        if self.by_rows:
            extremes, rows[CANDIDATES] = self._extremes(state, lifted, keys, cells, step)
            states = states.with_columns(extremes)
        if self.waves:
            estimates, rows[WAVES] = self._estimates(state, lifted, keys, cells, step)
            states = states.with_columns(estimates)
        values = lowered(self.measures, {GROUPS: states.filter(pl.col("rows.0") > 0)})
        named = events if self.keys else events.select(AT)
        found, after = self._changes(shown, before, named, cells, values)
        last = signed.tails(swept.code)
        own = picked(keys, swept.code[last]).get_columns() if self.keys else []
        left = pl.DataFrame([*own, *(total.filter(pl.Series(last)) for total in totals)])
        return found, after, left.filter(pl.col("rows.0") != 0).select(list(self.kept)), rows

    def _extremes(
        self, state: State, lifted: pl.DataFrame, keys: pl.DataFrame, cells: pl.DataFrame, step: Step
    ) -> tuple[list[pl.Series], pl.DataFrame]:
        """The selected values of each cell, and the rows that can still be one."""
        rows = frame_of(state.of(CANDIDATES), self.candidates, lifted)
        _, group = signed.codes_of([keys, rows], self.keys)
        order = np.lexsort((rows[VE].to_numpy(), rows[VS].to_numpy(), group))
        rows, group = picked(rows, order), group[order]
        vs, ve = rows[VS].to_numpy(), rows[VE].to_numpy()
        owner, at = cells[GROUP].to_numpy(), cells[AT].to_numpy()
        low, high = _counted(group, ve, owner, at), _counted(group, vs, owner, at)
        found: list[pl.Series] = []
        useful = np.zeros(rows.height, dtype=bool)
        for partial in self.selected:
            lanes, decode = partial.encode(rows)
            (count,), (code,) = lanes
            most = partial.combiners[1] is GREATEST
            totals = np.append(0, np.cumsum(count))
            chosen = fold_ranges(np.maximum if most else np.minimum, code, low, high)
            found += decode([(totals[high] - totals[np.minimum(low, high)],), (chosen,)])
            useful |= (count > 0) & _outdoing(group, code if most else ~code)
        # the youngest row tells how long the group is there
        useful |= signed.tails(group)
        return found, rows.filter(pl.Series(useful & (ve >= self._stop(rows, step))))

    def _estimates(
        self, state: State, lifted: pl.DataFrame, keys: pl.DataFrame, cells: pl.DataFrame, step: Step
    ) -> tuple[list[pl.Series], pl.DataFrame]:
        """The estimates of each cell, and the rows that waves still need."""
        old = frame_of(state.of(WAVES), self.waved)
        mine = self._in(old, keys)
        owner, at = cells[GROUP].to_numpy(), cells[AT].to_numpy()

        def groups(rows: pl.DataFrame) -> Ints:
            return signed.codes_of([keys, rows], self.keys)[1]

        found: list[pl.Series] = []
        kept = [old.filter(~mine)]
        for number, wave in enumerate(self.waves):
            counted, units = f"{wave.label}.0", f"{wave.label}.1"
            new = signed.copies(lifted.filter(pl.col(counted) > 0)).select(*self.keys, VS, VE, units)
            rows = numbered(old.filter(mine & (pl.col(WAVE) == number)), new, units, groups)
            low, high = _counted(rows.group, rows.ve, owner, at), _counted(rows.group, rows.vs, owner, at)
            found.append(pl.Series(counted, (low < high).astype(np.int64)))
            found.append(pl.Series(units, rows.estimates(low, high, wave.most)))
            kept.append(rows.kept(wave, number, rows.ve >= self._stop(rows.rows, step), self.keys))
        return found, signed.together(kept, self.waved)


def _counted(group: Ints, instants: Ints, owner: Ints, at: Ints) -> Ints:
    """How many rows, sorted by group and instant, come before the end of each (group, instant)."""
    distinct = np.sort(np.concatenate([instants, at]))
    width = len(distinct) + 1
    place = group * width + np.searchsorted(distinct, instants)
    return np.searchsorted(place, owner * width + np.searchsorted(distinct, at), side="right")


def _outdoing(group: Ints, value: Ints) -> Flags:
    """Which rows, in order of expiry, exceed all later ones of their group.

    >>> _outdoing(np.array([0, 0, 0, 1]), np.array([5, 3, 4, 1])).tolist()
    [True, False, True, True]
    """
    frame = pl.DataFrame({"g": group[::-1], "v": value[::-1]})
    best = frame.select(pl.col("v").cum_max().shift(1).over("g"))["v"]
    exceeds = (frame["v"] > best).fill_null(True)
    return exceeds.to_numpy()[::-1]
