"""γ over slide-by-tuple windows without their rows: one state per group and value of the attribute.

Which extents a row is in depends on rows to come, but rows with the same value of the attribute are always
in the same ones. So their states are combined when they come, in whatever order, into a bin for this value. A
bin enters with the first moving value w ≥ t and leaves with the first w ≥ t + RANGE. By rank, how many rows
have each value is all that must be known to count them once they are final.

Card: bins
    requirements  aggregates whose states can be combined; expressions that cannot fail
    time          new rows, combined; bins of the groups that something happens to, times log of the moves
    space         a state per group and value of the attribute in the window, a count per value not yet final
    source        WID (Li et al. 2005), 6: start and end bins, a value of the attribute for both here
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.aggregate.group_by import SHOWN, Grouped
from windrow.kernels.relational.expiry_layouts import Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Stateless, Step
from windrow.kernels.relational.signed_rows import FOREVER, TS, VE, VS, Columns, N
from windrow.kernels.relational.windows.leaf import NUMBER
from windrow.kernels.state import PANE, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.operators import Aggregate
    from windrow.kernels.relational.options import Choice
    from windrow.kernels.relational.windows.slide_by_tuple import ByTuple

    Ints = npt.NDArray[np.int64]

#: counts of values that are not final; the number of rows that are; the last value that moved the window
UNFINISHED, RANKED, LAST, BINS = "unfinished", "ranked", "last", "bins."
COUNT, BIN = "count", "#bin"


class Binned(Grouped):
    """γ of a slide-by-tuple window: `leaf` is the window, `between` what looks at single rows above it."""

    name = "γ, bins"

    def __init__(self, plan: Aggregate, leaf: ByTuple, between: Sequence[Stateless], choice: Choice) -> None:
        super().__init__(plan, (between[-1] if between else leaf), choice)
        self.leaf = leaf
        self.between = tuple(between)
        self.inputs: tuple[Operator, ...] = leaf.inputs
        self.counted: Columns = {TS: pl.Int64(), COUNT: pl.Int64()}
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
        found, after = self._changed(here.filter(self._in(here, touched)), shown.filter(same), tables)
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
        unfinished = signed.together([frame_of(state.of(UNFINISHED), self.counted), new], self.counted)
        unfinished = unfinished.group_by(TS).agg(pl.col(COUNT).sum()).sort(TS)
        final, later = unfinished.filter(pl.col(TS) < known), unfinished.filter(pl.col(TS) >= known)
        values, counts = final[TS].to_numpy(), final[COUNT].to_numpy()
        if not self.leaf.spec.by_rank:
            return values, later, ranked
        after = ranked + np.cumsum(counts)
        return values[after // every > (after - counts) // every], later, ranked + int(counts.sum())

    def _states(self, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows as states by value of the attribute and group."""
        frame = self.leaf.pieces(rows, rows[TS], rows[TS] + 1)
        for operator in self.between:
            frame = operator.apply([frame])
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
        return table.with_columns(
            *keys, pl.Series(VS, enters), pl.Series(VE, leaves), pl.lit(1, pl.Int64).alias(N)
        )

    def _changed(
        self, bins: pl.DataFrame, shown: pl.DataFrame, tables: dict[str, pl.DataFrame]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What the values of groups become with each move, and what they are in the end."""
        self._looked_at = {name: self._of_bins(bins, name, table) for name, table in tables.items()}
        both = pl.concat([shown.select(self.keys), bins.select(self.keys)]) if self.keys else pl.DataFrame()
        size = shown.height + bins.height
        group = signed.codes(both, self.keys) if self.keys else np.zeros(size, dtype=np.int64)
        cells, values = self._cells(bins, group[shown.height :], FOREVER)
        found = self._changes(shown, group[: shown.height], bins, cells, values)
        self._looked_at = {}
        return found

    def _of_bins(self, bins: pl.DataFrame, name: str, table: pl.DataFrame) -> pl.DataFrame:
        """A table of states with the place of the bin each belongs to."""
        names = [PANE, *self.measures.keys]
        code = signed.codes(pl.concat([bins.select(names), table.select(names)]), names)[bins.height :]
        return table.with_columns(pl.Series(BIN, code)).filter(pl.col(BIN) < bins.height)

    def _lifted(self, rows: pl.DataFrame, row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
        """States of bins, combined by pane."""
        spread = pl.DataFrame({BIN: row, "#pane": pane}, schema={BIN: pl.Int64(), "#pane": pl.Int64()})
        found = {}
        for name, table in self._looked_at.items():
            layout = self.measures.layouts[name]
            each = spread.join(table, on=BIN, how="inner").with_columns(pl.col("#pane").alias(PANE))
            found[name] = layout.merge(each.select(list(self.tables[name])), [PANE, *layout.keys])
        return found
