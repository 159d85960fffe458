"""γ over windows that rows move, without the rows of the window: panes counted in rows, and bins by value.

Positions are to [ROWS n SLIDE m ROWS] what instants are to windows of time: an extent is the positions (E-n,
E], and it is complete when position E is reached. So rows are numbered as they become final, their numbers
are cut into panes as instants are, and the kernels of windows that slide in time do the rest, with the number
of rows so far as their clock. What is left here is to say when each extent is reported.

Card: panes of rows
    requirements  aggregates whose states can be combined; one sequence of numbers for all rows
    time          numbering new rows; then that of the kernel (`kernels.panes.subtract_on_evict` and others)
    space         states of the panes of the window, rows that are not final; of FREQUENT k + 1 counts for a
                  pane and group, however many rows the window has
    source        No Pane, No Gain (Li et al. 2005), 3, whose windows may be of rows; Golab's thesis, 6.2
                  (Algorithm 6: sub-windows of a count-based window)

An expression that fails does so for rows of extents that are reported only. Where one can, rows are therefore
lifted when the end of their slide is reached, and wait until then.

Which extents of a slide-by-tuple window a row is in depends on rows to come, but rows with the same value of
the attribute are always in the same ones. So their states are combined when they come into a bin for this
value. A bin enters with the first moving value w ≥ t and leaves with the first w ≥ t + RANGE. By rank, how
many rows have each value is all that must be known to count them once they are final.

Card: bins
    requirements  aggregates whose states can be combined; expressions that cannot fail
    time          new rows, combined; bins of the groups that something happens to, times log of the moves
    space         a state per group and value of the attribute in the window, a count per value not yet final
    source        WID (Li et al. 2005), 6: start and end bins, a value of the attribute for both here
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from windrow.algebra import Aggregate, Emit
from windrow.kernels.aggregates.measures import GROUPS, PLACE, Measures
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.panes import pane_tables, program, query
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.aggregate.group_by import SHOWN, Grouped
from windrow.kernels.relational.expiry_layouts import Choice, Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Stateless, Step, composed, part
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, VE, VS, Columns, together as all_of
from windrow.kernels.relational.windows import rows as row_windows
from windrow.kernels.relational.windows.leaf import NUMBER, Leaf
from windrow.kernels.state import PANE, Delta, State
from windrow.windows import Ints, RowsWindow

#: counts of values that are not final; the number of rows that are; the last value that moved the window
UNFINISHED, RANKED, LAST, BINS = "unfinished", "ranked", "last", "bins."
COUNT, BIN = "count", "#bin"


class Binned(Grouped):
    """γ of a slide-by-tuple window: `leaf` is the window, `between` what looks at single rows above it."""

    name = "γ, bins"

    def __init__(
        self, plan: Aggregate, leaf: row_windows.ByTuple, between: Sequence[Stateless], choice: Choice
    ) -> None:
        super().__init__(plan, (between[-1] if between else leaf), choice)
        self.leaf = leaf
        self.between = tuple(between)
        self.inputs: tuple[Operator, ...] = leaf.inputs
        self.counted: Columns = {TS: INT, COUNT: INT}
        #: of each table of states, its columns
        self.tables: dict[str, Columns] = {
            name: dict(table.schema) for name, table in self._states(signed.blank(leaf.rows)).items()
        }
        #: the states of bins that are looked at in a step, with the bin of each
        self._looked_at: dict[str, pl.DataFrame] = {}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (rows,) = inputs
        moves, unfinished, ranked = self._moves(state, rows, step)
        last = state.meta.get(LAST, -FOREVER)
        tables = self._with(state, rows)
        meta = {RANKED: ranked, LAST: int(moves[-1]) if len(moves) else last}
        chunks = {**state.chunks, UNFINISHED: chunks_of(unfinished)}
        if not len(moves):
            return State(chunks | self._kept(tables, -FOREVER), meta), signed.blank(self.columns)
        step.slides.append(moves)
        bins = self._placed(tables[GROUPS], moves, last)
        here = bins.filter(pl.col(VS) < FOREVER)
        touched = here.filter((pl.col(VS) > -FOREVER) | (pl.col(VE) < FOREVER))
        shown = frame_of(state.of(SHOWN), self.shown)
        same = self._in(shown, touched)
        found, after = self._changed(here.filter(self._in(here, touched)), shown.filter(same), tables, step)
        step.last_end = max(step.last_end, signed.greatest_end(touched))
        chunks[SHOWN] = chunks_of(signed.together([shown.filter(~same), after], self.shown))
        return State(chunks | self._kept(tables, int(moves[-1]) - self.leaf.spec.range), meta), found

    def _moves(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[Ints, pl.DataFrame, int]:
        """The values that move the window now, in order; what is known of those not final; ranks so far."""
        every, known = self.leaf.spec.every, step.clock.now
        ranked = state.meta.get(RANKED, 0)
        if not self.leaf.spec.by_rank:
            rows = rows.filter(pl.col(NUMBER) % every == 0)
        new = rows.select(TS, pl.lit(1, pl.Int64).alias(COUNT))
        unfinished = frame_of(state.of(UNFINISHED), self.counted, new)
        unfinished = unfinished.group_by(TS).agg(pl.col(COUNT).sum()).sort(TS)
        final, later = signed.parted(unfinished, unfinished[TS].to_numpy() < known)
        values, counts = final[TS].to_numpy(), final[COUNT].to_numpy()
        if not self.leaf.spec.by_rank:
            return values, later, ranked
        after = ranked + np.cumsum(counts)
        return values[after // every > (after - counts) // every], later, ranked + int(counts.sum())

    def _states(self, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows as states by value of the attribute and group."""
        frame = _entered(self.leaf, self.between, rows)
        return self.measures.tables(frame.with_columns(pl.col(TS).alias("#pane"), pl.col(TS).alias("#t")))

    def _with(self, state: State, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """All states, those of new rows combined with those that are there."""
        old = {name: frame_of(state.of(BINS + name), columns) for name, columns in self.tables.items()}
        if not rows.height:
            return old
        found = {}
        for name, table in self._states(rows).items():
            layout = self.measures.layouts[name]
            both = signed.together([old[name], table], self.tables[name])
            found[name] = layout.merge(both, [PANE, *layout.keys])
        return found

    def _kept(self, tables: dict[str, pl.DataFrame], over: int) -> dict[str, Chunks]:
        """States of the values that can still be in an extent."""
        return {
            BINS + name: chunks_of(table.filter(pl.col(PANE) > over).select(list(self.tables[name])))
            for name, table in tables.items()
        }

    def _placed(self, table: pl.DataFrame, moves: Ints, last: int) -> pl.DataFrame:
        """Bins with when they enter and leave; those that were inside have no beginning."""
        t = table[PANE].to_numpy()
        ends = np.append(moves, FOREVER)
        enters = np.where(t <= last, -FOREVER, ends[np.searchsorted(moves, t)])
        leaves = ends[np.searchsorted(moves, t + self.leaf.spec.range)]
        keys = [pl.col(a).alias(b) for a, b in zip(self.measures.keys, self.keys, strict=True)]
        return signed.spanning(table.with_columns(keys), enters, leaves)

    def _changed(
        self, bins: pl.DataFrame, shown: pl.DataFrame, tables: dict[str, pl.DataFrame], step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What the values of groups become with each move, and what they are in the end."""
        for name, table in tables.items():
            _, code = signed.codes_of([bins, table], [PANE, *self.measures.keys])
            self._looked_at[name] = table.with_columns(pl.Series(BIN, code)).filter(pl.col(BIN) < bins.height)
        found = self._replaced(bins, shown, step)
        self._looked_at = {}
        return found

    def _stop(self, frame: pl.DataFrame, step: Step) -> Ints | int:
        return FOREVER  # bins end only when the window has moved

    def _lifted(self, rows: pl.DataFrame, row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
        """States of bins, combined by pane."""
        spread = pl.DataFrame({BIN: row, "#pane": pane}, schema={BIN: INT, "#pane": INT})
        found = {}
        for name, table in self._looked_at.items():
            layout = self.measures.layouts[name]
            each = spread.join(table, on=BIN, how="inner").with_columns(pl.col("#pane").alias(PANE))
            found[name] = layout.merge(each.select(list(self.tables[name])), [PANE, *layout.keys])
        return found


def _entered(leaf: Leaf, between: Sequence[Stateless], rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a window as they come to γ, each at its own instant."""
    frame = leaf.pieces(rows, rows[TS], rows[TS] + 1)
    for operator in between:
        frame = operator.apply([frame])
    return frame


#: parts of the state: rows that wait, panes, and what is shown
ROWS, PANES, REPORTED = "rows", "panes", "reported"
END = "#end"


@dataclass(frozen=True)
class RowsQuery(query.SlidingQuery):
    """A γ over counted rows as kernels of time see it: the row at position p has the instant p-1."""

    def __post_init__(self) -> None:
        """What these kernels refuse is below them."""

    @cached_property
    def cut(self) -> query.Cut:
        spec = self.window.spec
        assert isinstance(spec, RowsWindow)
        assert spec.slide_rows is not None
        return query.Cut(spec.rows, spec.slide_rows)


class RowPanes(Operator):
    """γ of counted rows: `leaf` is the window, `between` what looks at single rows above it.

    `careful` says that some expression may fail.
    """

    name = "γ, panes of rows"

    def __init__(
        self, plan: Aggregate, leaf: row_windows.Numbering, between: Sequence[Stateless], *, careful: bool
    ) -> None:
        self.plan = plan
        self.leaf = leaf
        leaf.passes_on = False
        self.between = tuple(between)
        self.careful = careful
        self.inputs = leaf.inputs
        self.reports = isinstance(leaf, row_windows.ReportedRows)
        self.measures = Measures(plan)
        window = leaf.window
        query = RowsQuery(Emit(plan), (), plan, (), window, (), window.origins[0])
        self.cut = query.cut
        self.kernel = program.kernel_of(pane_tables.PaneAnswers(query, self.measures))
        self.columns = signed.columns_of(plan.schema)
        self.shown: Columns = signed.columns_of(plan.schema, {})
        self.found: Columns = {END: INT} | self.shown

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        kept = part(state, ROWS)
        new, counts, rows = self.leaf.numbered_rows(kept, inputs[0], step)
        before = int(counts["count"][0]) if counts.height else 0
        ends = ExtentEnds(self.cut.slide, before, new)
        held = frame_of(kept.of(row_windows.INSIDE), self.leaf.numbered, new)
        ready, waiting = self._ready(held, ends.count)
        panes, found = self._windows(part(state, PANES), ready, PaneClock(before, ends.count))
        told = self._one_by_one if self.reports else self._replaced
        own, pieces = told(part(state, REPORTED), found, ends, step)
        rows[row_windows.INSIDE] = chunks_of(waiting)
        return composed({ROWS: State(rows), PANES: panes, REPORTED: own}), pieces

    def _ready(self, rows: pl.DataFrame, count: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows to lift now, all of which are in some extent, and those that wait for its end."""
        places = rows[row_windows.POSITION].to_numpy()
        rows = rows.filter(pl.Series(self.cut.holds(places - 1), dtype=pl.Boolean))
        if not self.careful:
            return rows, signed.blank(self.leaf.numbered)
        done = rows[row_windows.POSITION] <= count // self.cut.slide * self.cut.slide
        return signed.parted(rows, done)

    def _windows(self, state: State, rows: pl.DataFrame, clock: PaneClock) -> tuple[State, pl.DataFrame]:
        """The groups of the extents whose ends are reached, each with that end."""
        tables = {}
        if rows.height:
            frame = _entered(self.leaf, self.between, rows)
            panes = self.cut.panes_of(frame[PLACE].to_numpy() - 1)
            frame = frame.with_columns(pl.col(TS).alias("#t"), pl.Series("#pane", panes))
            tables = self.measures.tables(frame)
        delta = Delta({name: table.to_arrow() for name, table in tables.items()})
        state, answers = self.kernel.advance(state, delta, clock)
        found = [to_frame(table).rename({"#at": END}) for table in answers]
        return state, all_of(found, self.found)

    def _one_by_one(
        self, state: State, found: pl.DataFrame, ends: ExtentEnds, step: Step
    ) -> tuple[State, pl.DataFrame]:
        """Each extent is a report of its own, whose number stands for the instant."""
        first = state.meta.get(row_windows.NUMBER_OF_REPORTS, 0)
        reached = ends.reached
        bounds = {"at": ends.moments(reached), "start": reached - self.leaf.spec.rows, "end": reached}
        row_windows.begin_reports(step, first, pl.DataFrame(bounds, schema=dict.fromkeys(bounds, pl.Int64)))
        number = np.searchsorted(reached, found[END].to_numpy()) + first
        pieces = signed.pieces(found, self.columns, number, number + 1)
        return State({}, {row_windows.NUMBER_OF_REPORTS: first + len(reached)}), pieces

    def _replaced(
        self, state: State, found: pl.DataFrame, ends: ExtentEnds, step: Step
    ) -> tuple[State, pl.DataFrame]:
        """What an extent shows goes when the next one comes; what does not change cancels out."""
        step.slides.append(np.unique(ends.moments(ends.entered)))
        reached = ends.reached
        if not len(reached):
            return state, signed.blank(self.columns)
        moments = ends.moments(reached)
        step.last_end = max(step.last_end, int(moments[-1]))
        shown = frame_of(state.of(SHOWN), self.shown)
        place = np.searchsorted(reached, found[END].to_numpy())
        last = place == len(reached) - 1
        stay, leave = signed.parted(found, last)
        new = [
            signed.pieces(found, self.columns, moments[place]),
            signed.pieces(leave, self.columns, moments[place[~last] + 1], n=-1),
            signed.pieces(shown, self.columns, int(moments[0]), n=-1),
        ]
        after = {SHOWN: chunks_of(stay.select(list(self.shown)))}
        return State(after), signed.consolidated(all_of(new, self.columns))


class ExtentEnds:
    """The ends of extents that new rows reach, and when.

    >>> new = pl.DataFrame({row_windows.POSITION: [4, 5, 6], row_windows.MOMENT: [10, 20, 20]})
    >>> ends = ExtentEnds(2, before=3, new=new)
    >>> ends.reached.tolist(), ends.moments(ends.reached).tolist()
    ([4, 6], [10, 20])
    """

    def __init__(self, slide: int, before: int, new: pl.DataFrame) -> None:
        self.slide = slide
        self.places, self.times = new[row_windows.POSITION].to_numpy(), new[row_windows.MOMENT].to_numpy()
        self.before = before
        self.count = int(self.places.max()) if len(self.places) else before

    @property
    def reached(self) -> Ints:
        """All of them, in order."""
        return np.arange(self.before // self.slide + 1, self.count // self.slide + 1) * self.slide

    @property
    def entered(self) -> Ints:
        """Those with which rows enter: numbers may have gaps where rows of the stream were left out."""
        places = np.append(self.places, self.before) if self.before % self.slide else self.places
        return np.intersect1d(-(-places // self.slide) * self.slide, self.reached)

    def moments(self, ends: Ints) -> Ints:
        """When each end was reached."""
        if not len(ends):
            return ends
        alone, asked = np.zeros(len(self.places), dtype=np.int64), np.zeros(len(ends), dtype=np.int64)
        return row_windows.ReachedPositions(alone, self.places, self.times).moment(asked, ends)
