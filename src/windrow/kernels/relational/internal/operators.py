"""What results over INTERNAL windows are made of, and operators over it: how long a result stays.

A run is a row with the whole interval [`#vs`, `#ve`) in which it is there, as far as that is known. Hidden
columns tell who it is (`#id.`), when its external window lets go of it (`#stays.`), and whether that may
still turn out to be earlier (`#open.`).

Card: kept runs
    requirements  any signed pieces
    time          the runs kept, and what is new
    space         runs that are there, and those that results not yet let go of may be made of
    source        Golab's thesis, 3.3.2

σ, π, ∪ and ⋈ are those of all plans: they pass hidden columns on, and a result stays as long as the first of
its parts lets it. The other operators choose among rows or put them together, so they look at each span
between neighbouring endpoints: a row that EXISTS stays as with any one of its matches, a value of γ until the
first of its rows is let go of.

Card: by spans
    requirements  runs; all that is asked for lies between `since` and the clock
    time          rows × the spans they are in
    space         none
    source        Golab's thesis, 3.3.2

Where pieces tell all there is to know, everything below is as with external windows; only the final results
stay, until the first of their external windows lets go of them, or for ever.

Card: births
    requirements  results made of the same rows are born once; with EXISTS they may be born again
    time          new results
    space         none if nothing sends negative rows, else the results alive; with EXISTS all results so far
    source        Golab's thesis, 3.3.2
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import polars as pl

from windrow.algebra import Aggregate, Emit
from windrow.kernels.columnar import columns, expressions
from windrow.kernels.relational import distinct, emission, expiry_layouts, signed_rows as signed
from windrow.kernels.relational.operator import Operator, Stateless, Step
from windrow.kernels.relational.signed_rows import FOREVER, INT, SIGNED, TS, VE, VS, Columns, N
from windrow.kernels.state import State
from windrow.windows.spec import Grid, covered

#: prefix of columns that tell whether a row may leave earlier than `#stays.` says
OPEN = "#open."


def place_name(number: int) -> str:
    """The place of a part in its plan, as it sorts."""
    return f"{number:04}"


class Runs(Operator):
    """One source of a plan. It is not advanced by itself: what it kept and what is new become its runs."""

    def __init__(
        self,
        below: Operator,
        number: int,
        values: Sequence[str],
        kept: Columns,
        ids: Columns,
        by_value: Sequence[str] = (),
    ) -> None:
        self.below = below
        self.number = place_name(number)
        self.stays, self.open = f"{signed.STAYS}{self.number}", f"{OPEN}{self.number}"
        own = {name: below.columns[name] for name in values}
        #: what is kept of each run
        self.kept = own | kept
        #: values that tell who a row is, besides `ids`: a projection above may leave them out
        self.copies = {name: f"{signed.ID}{self.number}.{i:02}" for i, name in enumerate(by_value)}
        copied = {copy: own[name] for name, copy in self.copies.items()}
        self.columns = own | copied | ids | {self.stays: INT, self.open: pl.Int8()} | SIGNED

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        raise AssertionError("runs are collected by the operator that is made of them")

    def collected(self, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        """The runs that were kept, with what is new."""
        return signed.merged(signed.together([old, new], self.kept))

    @abstractmethod
    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        """The runs with their hidden columns; `stop` is how far all is known."""

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        """Of some results, those that may be found again at instants from `since` on."""
        return pl.repeat(True, records.height, dtype=pl.Boolean, eager=True)

    def _annotated(self, runs: pl.DataFrame, stays: pl.Expr, open_: pl.Expr) -> pl.DataFrame:
        told = runs.with_columns(
            *(pl.col(name).alias(copy) for name, copy in self.copies.items()),
            stays.cast(pl.Int64).alias(self.stays),
            open_.cast(pl.Int8).alias(self.open),
            pl.lit(1, pl.Int64).alias(N),
        )
        return told.select(list(self.columns))


NEVER, NO, END = pl.lit(FOREVER), pl.lit(0), pl.col(VE)


class WindowRuns(Runs):
    """The rows of a window; each has a number."""

    name = "rows of a window"

    def __init__(
        self, below: Operator, number: int, values: Sequence[str], *, internal: bool, ends_known: bool
    ) -> None:
        self.internal, self.ends_known = internal, ends_known
        (self.numbered,) = (name for name in below.columns if name.startswith(signed.ID))
        self.id = f"{signed.ID}{place_name(number)}"
        super().__init__(below, number, values, {self.numbered: INT} | SIGNED, {self.id: INT})

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        runs = runs.rename({self.numbered: self.id})
        open_ = NO if self.internal or self.ends_known else stop < END
        return self._annotated(runs, NEVER if self.internal else END, open_)

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        if self.id not in records.columns:
            return super().has_all(records, runs, since)
        numbers = records[self.id]
        return numbers.is_in(runs[self.numbered].unique().implode()) | (numbers == 0)


class TableRuns(Runs):
    """The rows of a RELATION; of equal rows, the one that was inserted first is deleted first."""

    name = "rows of a table"

    def __init__(self, below: Operator, number: int, values: Sequence[str]) -> None:
        self.values = list(values)
        self.since, self.copy = f"{signed.ID}{place_name(number)}.s", f"{signed.ID}{place_name(number)}.t"
        ids = {self.since: INT, self.copy: INT}
        super().__init__(below, number, values, {self.copy: INT} | SIGNED, ids, values)

    def collected(self, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        inserted = new.filter(pl.col(N) > 0)
        place = pl.Series(signed.codes(inserted, [*self.values, VS]))
        number = pl.int_range(pl.len(), dtype=pl.Int64).over("#code") + 1
        inserted = inserted.with_columns(place.alias("#code")).with_columns(number.alias(self.copy))
        lives = signed.together([old, inserted], self.kept).sort(VS, self.copy, maintain_order=True)
        gone = new.filter(pl.col(N) < 0).sort(VS)
        if not gone.height or not lives.height:
            return lives
        mine, theirs = signed.codes_of([lives, gone], self.values)
        alive = (lives[VE] >= FOREVER).to_numpy()
        turn = pl.int_range(pl.len(), dtype=pl.Int64).over("#code").alias("#turn")
        first = pl.DataFrame({"#code": mine[alive], "#row": np.flatnonzero(alive)}).with_columns(turn)
        last = pl.DataFrame({"#code": theirs, "#end": gone[VS]}).with_columns(turn)
        pairs = first.join(last, on=["#code", "#turn"])
        ends = lives[VE].to_numpy().copy()
        ends[pairs["#row"].to_numpy()] = pairs["#end"].to_numpy()
        return lives.with_columns(pl.Series(VE, ends)).filter(pl.col(VS) < pl.col(VE))

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        return self._annotated(runs.with_columns(pl.col(VS).alias(self.since)), END, stop < END)


class ValueRuns(Runs):
    """Rows not made of certain rows, which others may take the place of: results of δ, − and LIMIT."""

    name = "values"

    def __init__(self, below: Operator, number: int, values: Sequence[str], *, stamped: bool = False) -> None:
        self.level, self.stamp = f"{signed.ID}{place_name(number)}", f"{signed.ID}{place_name(number)}.s"
        self.stamped = stamped
        kept = {VS: INT, VE: INT, N: INT} | ({TS: INT} if stamped else {})
        super().__init__(below, number, values, kept, {self.level: INT, self.stamp: INT}, values)

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        told = signed.merged(signed.single_copies(runs, self.level))
        if not self.stamped:
            told = told.with_columns(pl.lit(-FOREVER, pl.Int64).alias(TS))
        return self._annotated(told.with_columns(pl.col(TS).alias(self.stamp)), END, stop < END)


class GroupRuns(Runs):
    """The values of groups: a group has a new one when its value changes."""

    name = "values of groups"

    def __init__(self, below: Operator, number: int, plan: Aggregate) -> None:
        self.internal = plan.is_internal
        self.since = f"{signed.ID}{place_name(number)}.s"
        kept = {VS: INT, VE: INT, N: INT}
        keys = [name for name, _ in plan.keys]
        super().__init__(below, number, plan.schema.names, kept, {self.since: INT}, keys)

    def shown(self, runs: pl.DataFrame, stop: int) -> pl.DataFrame:
        told = runs.with_columns(pl.col(VS).alias(self.since), pl.lit(-FOREVER, pl.Int64).alias(TS))
        return self._annotated(told, END, NO if self.internal else stop < END)

    def has_all(self, records: pl.DataFrame, runs: pl.DataFrame, since: int) -> pl.Series:
        if self.since not in records.columns:
            return super().has_all(records, runs, since)
        began = records[self.since]
        return began.is_in(runs[VS].unique().implode()) | (began == 0) | (began >= since)


# ------------------------------------------------------------ operators


SEEN, ALIVE = "seen", "alive"


class Births(Enum):
    """What counts as a new result."""

    RESULTS = "rows that meet"
    FIRST = "rows that meet for the first time"
    VALUES = "each value of an aggregate"
    EXTENTS = "each value of each extent"


class Staying(Operator):
    """Results from their birth on."""

    name = "results that stay"

    def __init__(self, emit: Emit, below: Operator, births: Births, known: bool, buckets: int) -> None:
        self.emit = emit
        self.inputs = (below,)
        self.births = births
        self.known = known
        self.hidden = [n for n in below.columns if n.startswith((signed.ID, signed.STAYS))]
        self.values = signed.values_of(below.columns)
        self.columns = signed.without(below.columns, signed.TURN, *self.hidden)
        self.made = self.values | SIGNED
        self.counts = distinct.Counts(self.values, self.values | {N: INT, VE: INT}, buckets)
        self.calendar = self.counts.calendar
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.made))
        if self.births is Births.EXTENTS:
            return self._each_extent(state, new, step)
        if self.births is Births.VALUES or (self.known and self.births is Births.RESULTS):
            return state, self._stay(new.filter(pl.col(N) > 0))
        state, born = self._rising(state, new, step)
        if self.births is Births.FIRST:
            names = list(self.values)
            seen = expiry_layouts.frame_of(state.of(SEEN), self.values)
            born = born.filter(~signed.found_in(born, seen, names)) if seen.height else born
            born = born.sort(VS).unique(names, keep="first", maintain_order=True)
            state = State(
                {**state.chunks, SEEN: (*state.of(SEEN), *expiry_layouts.chunks_of(born.select(names)))}
            )
        return state, self._stay(born)

    def _stay(self, born: pl.DataFrame) -> pl.DataFrame:
        ends = [name for name in self.hidden if name.startswith(signed.STAYS)]
        last = pl.min_horizontal(ends) if ends else pl.lit(FOREVER, pl.Int64)
        found = born.with_columns(last.cast(pl.Int64).alias(VE)).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))

    def _rising(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The results of which there are more copies than before."""
        after, rows, swept = self.counts.advance(state, new, step.slice.stop)
        more = swept.change()
        rises = (swept.at > signed.START) & (more > 0)
        born = signed.pieces(
            columns.picked(rows, swept.code[rises]), self.made, swept.at[rises], n=more[rises]
        )
        return State({**state.chunks, **after.chunks}), born

    def _each_extent(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """Every value at every reporting instant is a result of its own."""
        alive = signed.without(self.made, VS)
        old = signed.begun(expiry_layouts.frame_of(state.of(ALIVE), alive))
        runs = signed.positive(signed.together([old, new], self.made))
        kept = expiry_layouts.Hashed().alive(state.of(ALIVE), new, step.slice.floor, alive)
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, emission.last_report(self.grids, step) + 1)
        low = np.maximum(runs[VS].to_numpy(), step.slice.start)
        span = emission.clipped(low, np.minimum(runs[VE].to_numpy(), stop))
        row, at = emission.reports_within(self.grids, step, *span)
        born = columns.picked(runs, row).with_columns(pl.Series(VS, at, dtype=pl.Int64))
        return State({ALIVE: kept}), self._stay(born)


SPAN, CODE, ROW = "#span", "#code", "#row"
LEAST, MAYBE, OWN = "#least", "#maybe", "#own_ts"


@dataclass
class Moment(Step):
    """A step in which instants from `since` on are looked at again, and reports are before `until_report`."""

    since: int = -FOREVER
    until_report: int = FOREVER
    #: since when rows are there that may leave at any time
    held: list[int] = field(default_factory=list)


def let_go(frame: pl.DataFrame) -> pl.DataFrame:
    """With `#least`, until when each row stays, and `#maybe`, whether that may become less."""
    ends = [name for name in frame.columns if name.startswith(signed.STAYS)]
    doubts = [name for name in frame.columns if name.startswith(OPEN)]
    return frame.with_columns(
        (pl.min_horizontal(ends) if ends else pl.lit(FOREVER)).cast(pl.Int64).alias(LEAST),
        (pl.max_horizontal(doubts) if doubts else pl.lit(0)).cast(pl.Int8).alias(MAYBE),
    )


class Spans:
    """The spans between neighbouring endpoints of some rows, from `since` up to the clock."""

    def __init__(self, frames: Sequence[pl.DataFrame], moment: Moment) -> None:
        ends = np.concatenate([frame[name].to_numpy() for frame in frames for name in (VS, VE)])
        inside = ends[(ends > moment.since) & (ends < moment.slice.stop)]
        self.starts = np.unique(np.append(inside, moment.since))
        self.stops = np.append(self.starts[1:], FOREVER)

    def cut(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Each row once for every span it is in, with `#span`."""
        low = np.searchsorted(self.starts, np.maximum(frame[VS].to_numpy(), self.starts[0]))
        high = np.searchsorted(self.starts, frame[VE].to_numpy())
        row, span = covered(low, high)
        return columns.picked(frame, row).with_columns(pl.Series(SPAN, span, dtype=pl.Int64))

    def within(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Cut rows, each valid in its span."""
        span = frame[SPAN].to_numpy()
        return frame.with_columns(pl.Series(VS, self.starts[span]), pl.Series(VE, self.stops[span]))


class Branch(Stateless):
    """An input of ∪ that tells which one it is."""

    name = "∪"

    def __init__(self, below: Operator, number: int, branch: int) -> None:
        self.inputs = (below,)
        self.id = f"{signed.ID}{place_name(number)}"
        self.branch = branch
        self.columns = below.columns | {self.id: INT}

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        told = inputs[0].with_columns(pl.lit(self.branch, pl.Int64).alias(self.id))
        return told.select(list(self.columns))


class Stamped(Stateless):
    """Rows that keep their own `#ts` when they are paired with others."""

    name = "left"

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = below.columns | {OWN: INT}

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return inputs[0].with_columns(pl.col(TS).alias(OWN)).select(list(self.columns))


class Copies(Stateless):
    """Rows joined with an NRR, each copy by itself, that tell which row of the table they have."""

    name = "⋈ NRR"

    def __init__(self, below: Operator, number: int, table: Sequence[str]) -> None:
        self.inputs = (below,)
        place = f"{signed.ID}{place_name(number)}"
        self.copies = {name: f"{place}.{i:02}" for i, name in enumerate(table)}
        self.level = f"{place}.t"
        own: signed.Columns = {copy: below.columns[name] for name, copy in self.copies.items()}
        self.columns = below.columns | own | {self.level: INT}

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        (frame,) = inputs
        copied = (pl.col(name).alias(copy) for name, copy in self.copies.items())
        return signed.single_copies(frame, self.level).with_columns(*copied).select(list(self.columns))


class Recomputed(Operator):
    """An operator that looks at all runs of its inputs anew in every step."""

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        assert isinstance(step, Moment)
        if not all(frame.height for frame in self.needed(inputs)):
            return state, signed.blank(self.columns)
        return state, self.found(inputs, step).select(list(self.columns))

    def needed(self, inputs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        """The inputs without which nothing is found."""
        return inputs

    @abstractmethod
    def found(self, inputs: Sequence[pl.DataFrame], moment: Moment) -> pl.DataFrame:
        """The rows of the result."""

    def _keep(self, below: Operator, number: int) -> None:
        """The columns of one input, but how long rows stay is told anew."""
        place = place_name(number)
        self.stays, self.open = f"{signed.STAYS}{place}", f"{OPEN}{place}"
        own = {n: d for n, d in below.columns.items() if not n.startswith((signed.STAYS, OPEN))}
        self.columns = own | {self.stays: INT, self.open: pl.Int8()}
        #: what tells a row from others
        self.who = [name for name in own if name not in SIGNED]

    def _until_they_leave(self, rows: pl.DataFrame, moment: Moment) -> pl.DataFrame:
        """Rows over external windows only: they let go when they leave."""
        runs = signed.merged(rows.select(*self.who, *SIGNED))
        leaves = pl.col(VE) > moment.slice.stop
        moment.held += runs.filter(leaves)[VS].unique().to_list()
        return runs.with_columns(pl.col(VE).alias(self.stays), leaves.cast(pl.Int8).alias(self.open))


class Witnessed(Recomputed):
    """EXISTS: rows of the left, from the pairs that meet."""

    name = "⋉"

    def __init__(self, pairs: Operator, left: Operator, number: int, *, internal: bool) -> None:
        self.inputs = (pairs,)
        self.internal = internal
        self._keep(left, number)

    def found(self, inputs: Sequence[pl.DataFrame], moment: Moment) -> pl.DataFrame:
        pairs = let_go(inputs[0])
        spans = Spans([pairs], moment)
        cut = spans.cut(pairs)
        cut = cut.with_columns(pl.Series(CODE, signed.codes(cut, [*self.who, SPAN])))
        sure = pl.col(LEAST).filter(pl.col(MAYBE) == 0).max().fill_null(-FOREVER)
        hoped = pl.col(LEAST).filter(pl.col(MAYBE) > 0).max().fill_null(-FOREVER)
        best = cut.group_by(CODE).agg(
            pl.max_horizontal(sure, hoped).alias(self.stays), (hoped > sure).cast(pl.Int8).alias(self.open)
        )
        rows = spans.within(columns.picked(cut, best[CODE].to_numpy()))
        rows = rows.with_columns(pl.lit(1, pl.Int64).alias(N), pl.col(OWN).alias(TS))
        if not self.internal:
            return self._until_they_leave(rows, moment)
        return rows.with_columns(best[self.stays], best[self.open])


class Unmatched(Recomputed):
    """NOT EXISTS over external windows: rows of the left in the spans in which no pair has them."""

    name = "▷"

    def __init__(self, left: Operator, pairs: Operator, number: int) -> None:
        self.inputs = (left, pairs)
        self._keep(left, number)

    def needed(self, inputs: Sequence[pl.DataFrame]) -> Sequence[pl.DataFrame]:
        return inputs[:1]

    def found(self, inputs: Sequence[pl.DataFrame], moment: Moment) -> pl.DataFrame:
        left, pairs = inputs
        spans = Spans([left, pairs], moment)
        rows, matched = spans.cut(left), spans.cut(pairs)
        mine, theirs = signed.codes_of([rows, matched], [*self.who, SPAN])
        kept = rows.filter(pl.Series(~np.isin(mine, theirs), dtype=pl.Boolean))
        ends = np.minimum(kept[VE].to_numpy(), spans.stops[kept[SPAN].to_numpy()])
        return self._until_they_leave(spans.within(kept).with_columns(pl.Series(VE, ends)), moment)


class Valued(Recomputed):
    """γ: values of groups, and until when the rows they are made of are all still held.

    In a periodic plan each value at each reporting instant is a result of its own.
    """

    name = "γ"

    def __init__(
        self, plan: Aggregate, rows: Operator, runs: GroupRuns, grids: Sequence[Grid] | None
    ) -> None:
        self.inputs = (rows, runs)
        self.runs, self.grids = runs, grids
        self.keys = [(name, expressions.compile_expression(key)) for name, key in plan.keys]
        self.columns = runs.columns

    def found(self, inputs: Sequence[pl.DataFrame], moment: Moment) -> pl.DataFrame:
        rows, runs = let_go(inputs[0]), inputs[1]
        names = [name for name, _ in self.keys]
        made = [evaluate(rows).cast(runs.schema[name]).alias(name) for name, evaluate in self.keys]
        keys = signed.grouped(pl.DataFrame(made), names)
        mine, theirs = signed.codes_of([keys if names else rows, runs], names)
        rows = rows.select(VS, VE, LEAST, MAYBE).with_columns(pl.Series(CODE, mine))
        runs = runs.with_columns(pl.Series(CODE, theirs))
        spans = Spans([rows, runs], moment)
        least, maybe = pl.col(LEAST).min().alias(self.runs.stays), pl.col(MAYBE).max().alias(self.runs.open)
        held = spans.cut(rows).group_by(CODE, SPAN).agg(least, maybe)
        periodic = self.grids is not None
        shown = self._reported(runs, spans, moment) if periodic else spans.within(spans.cut(runs))
        return shown.drop(self.runs.stays, self.runs.open).join(held, on=[CODE, SPAN])

    def _reported(self, runs: pl.DataFrame, spans: Spans, moment: Moment) -> pl.DataFrame:
        assert self.grids is not None
        low = np.maximum(runs[VS].to_numpy(), moment.since)
        reported = emission.clipped(low, np.minimum(runs[VE].to_numpy(), moment.until_report))
        row, at = emission.reports_within(self.grids, moment, *reported)
        span = np.searchsorted(spans.starts, at, side="right") - 1
        at_reports = signed.spanning(columns.picked(runs, row), at, at + 1)
        return at_reports.with_columns(pl.Series(SPAN, span, dtype=pl.Int64), pl.Series(self.runs.since, at))
