"""Operators over runs, where results outlive INTERNAL windows: how long a result stays, besides when it is.

σ, π, ∪ and ⋈ are those of all plans: they pass hidden columns on, and a result stays as long as the first of
its parts lets it. The operators here choose among rows or put them together, so they look at each span
between neighbouring endpoints: a row that EXISTS stays as with any one of its matches, a value of γ until the
first of its rows is let go of.

Card: by spans
    requirements  runs; all that is asked for lies between `since` and the clock
    time          rows × the spans they are in
    space         none
    source        Golab's thesis, 3.3.2

INTERNAL windows: results need their parts to meet, but outlive them.

Below, everything is as with external windows; only the final results stay, until the first of their external
windows lets go of them, or for ever. Hidden columns tell which rows a result is made of (`#id.`) and when its
external parts end (`#stays.`).

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

from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit
from windrow.kernels.columnar.columns import picked
from windrow.kernels.columnar.expressions import compile_expression
from windrow.kernels.relational import emission
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.distinct import Counts
from windrow.kernels.relational.expiry_layouts import Hashed, chunks_of, frame_of
from windrow.kernels.relational.internal.runs import OPEN, GroupRuns, place_name
from windrow.kernels.relational.operator import Operator, Stateless, Step
from windrow.kernels.relational.signed_rows import FOREVER, ID, INT, SIGNED, STAYS, TS, TURN, VE, VS, N
from windrow.kernels.state import State
from windrow.windows.spec import Grid, covered

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
        self.hidden = [n for n in below.columns if n.startswith((ID, STAYS))]
        self.values = signed.values_of(below.columns)
        self.columns = signed.without(below.columns, TURN, *self.hidden)
        self.made = self.values | SIGNED
        self.counts = Counts(self.values, self.values | {N: INT, VE: INT}, buckets)
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
            seen = frame_of(state.of(SEEN), self.values)
            born = born.filter(~signed.found_in(born, seen, names)) if seen.height else born
            born = born.sort(VS).unique(names, keep="first", maintain_order=True)
            state = State({**state.chunks, SEEN: (*state.of(SEEN), *chunks_of(born.select(names)))})
        return state, self._stay(born)

    def _stay(self, born: pl.DataFrame) -> pl.DataFrame:
        ends = [name for name in self.hidden if name.startswith(STAYS)]
        last = pl.min_horizontal(ends) if ends else pl.lit(FOREVER, pl.Int64)
        found = born.with_columns(last.cast(pl.Int64).alias(VE)).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))

    def _rising(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The results of which there are more copies than before."""
        after, rows, swept = self.counts.advance(state, new, step.slice.stop)
        more = swept.change()
        rises = (swept.at > signed.START) & (more > 0)
        born = signed.pieces(picked(rows, swept.code[rises]), self.made, swept.at[rises], n=more[rises])
        return State({**state.chunks, **after.chunks}), born

    def _each_extent(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """Every value at every reporting instant is a result of its own."""
        alive = signed.without(self.made, VS)
        old = signed.begun(frame_of(state.of(ALIVE), alive))
        runs = signed.positive(signed.together([old, new], self.made))
        kept = Hashed().alive(state.of(ALIVE), new, step.slice.floor, alive)
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, emission.last_report(self.grids, step) + 1)
        low = np.maximum(runs[VS].to_numpy(), step.slice.start)
        span = emission.clipped(low, np.minimum(runs[VE].to_numpy(), stop))
        row, at = emission.reports_within(self.grids, step, *span)
        born = picked(runs, row).with_columns(pl.Series(VS, at, dtype=pl.Int64))
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
    ends = [name for name in frame.columns if name.startswith(STAYS)]
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
        return picked(frame, row).with_columns(pl.Series(SPAN, span, dtype=pl.Int64))

    def within(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Cut rows, each valid in its span."""
        span = frame[SPAN].to_numpy()
        return frame.with_columns(pl.Series(VS, self.starts[span]), pl.Series(VE, self.stops[span]))


class Branch(Stateless):
    """An input of ∪ that tells which one it is."""

    name = "∪"

    def __init__(self, below: Operator, number: int, branch: int) -> None:
        self.inputs = (below,)
        self.id = f"{ID}{place_name(number)}"
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
        place = f"{ID}{place_name(number)}"
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
        self.stays, self.open = f"{STAYS}{place}", f"{OPEN}{place}"
        own = {n: d for n, d in below.columns.items() if not n.startswith((STAYS, OPEN))}
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
        rows = spans.within(picked(cut, best[CODE].to_numpy()))
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
        free = ~np.isin(mine, theirs)
        kept = rows.filter(pl.Series(free, dtype=pl.Boolean))
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
        self.keys = [(name, compile_expression(key)) for name, key in plan.keys]
        self.columns = runs.columns

    def found(self, inputs: Sequence[pl.DataFrame], moment: Moment) -> pl.DataFrame:
        rows, runs = let_go(inputs[0]), inputs[1]
        names = [name for name, _ in self.keys]
        made = [evaluate(rows).cast(runs.schema[name]).alias(name) for name, evaluate in self.keys]
        keys = signed.grouped(pl.DataFrame(made), names)
        codes = signed.codes_of([keys if names else rows, runs], names)
        rows = rows.select(VS, VE, LEAST, MAYBE).with_columns(pl.Series(CODE, codes[0]))
        runs = runs.with_columns(pl.Series(CODE, codes[1]))
        spans = Spans([rows, runs], moment)
        held = (
            spans.cut(rows)
            .group_by(CODE, SPAN)
            .agg(pl.col(LEAST).min().alias(self.runs.stays), pl.col(MAYBE).max().alias(self.runs.open))
        )
        shown = (
            self._reported(runs, spans, moment) if self.grids is not None else spans.within(spans.cut(runs))
        )
        return shown.drop(self.runs.stays, self.runs.open).join(held, on=[CODE, SPAN])

    def _reported(self, runs: pl.DataFrame, spans: Spans, moment: Moment) -> pl.DataFrame:
        assert self.grids is not None
        low = np.maximum(runs[VS].to_numpy(), moment.since)
        reported = emission.clipped(low, np.minimum(runs[VE].to_numpy(), moment.until_report))
        row, at = emission.reports_within(self.grids, moment, *reported)
        span = np.searchsorted(spans.starts, at, side="right") - 1
        return picked(runs, row).with_columns(
            pl.Series(SPAN, span, dtype=pl.Int64),
            pl.Series(VS, at, dtype=pl.Int64),
            pl.Series(VE, at + 1, dtype=pl.Int64),
            pl.Series(self.runs.since, at, dtype=pl.Int64),
        )
