"""The kernel for counts of values: a window is the one before it, with the new panes and without the old.

A holistic aggregate keeps a count for each value, so its panes are large, and adding all of them up for every
window costs as many times their size as a window has panes. Counts can be subtracted exactly, whatever is
counted: pseudo-differential, in the words of the panes paper. So the sum of the closed panes is kept beside
them; a pane is added when it closes, and subtracted when it leaves.

Card: running differences
    requirements  every table of cells is counts that can be subtracted; one clock for all groups
    time          per window: rows of the panes that close and that leave, plus the window's distinct values
    space         one state per live pane, group and value, and one per group and value
    source        No Pane, No Gain (Li et al. 2005), 3.2.2 and 3.3.2; Golab's thesis, Algorithm 6 (global
                  counters)

Where values hardly recur, as most measurements do, the sum is as large as all panes together, and is of no
use. How often they do is seen whenever the sum is there: the distinct values of a window against the cells of
its panes. If nearly all are distinct, the panes are a buffer of values and no sum is kept; after the time of
a window, both are looked at again. The answers are the same either way.

Card: buffered values
    requirements  as above
    time          per window: the cells of its panes
    space         one state per live pane, group and value
    source        No Pane, No Gain, 3.2.2: values of panes when counts are no smaller

What cannot be subtracted has its place in the table of groups, such as MAX or a sum of doubles: that one is
small, and is added up from its panes. Many windows at once, as after a long gap between epochs, are answered
from all panes together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates import lowering, measures
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar import columns, numbering
from windrow.kernels.panes.live_panes import due_windows
from windrow.kernels.panes.pane_tables import OPEN, PANES, Changing, Kernel, Range, merge_panes
from windrow.kernels.state import PANE, Chunk, Delta, State, TableLayout, chunked, joined
from windrow.windows.domain import INFINITY

Frames = dict[str, pl.DataFrame]

TOTAL = ".total"
#: of a table: the next window with a look at its values, and what was seen at the last one
LOOK, DISTINCT, CELLS = "look.", "distinct.", "cells."
#: with so many distinct values per cell, the panes of a table are a buffer
HARDLY_RECUR = 0.75
#: more windows than these in one epoch are answered from all panes together
FEW = 8
#: closed panes are kept in about so many chunks, so that few are opened that do not leave
CHUNKS = 32


@dataclass(frozen=True)
class Differences(Kernel):
    """Sliding windows by adding and subtracting panes."""

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        if clock.key is not None:
            raise ValueError("running differences have one clock for all groups")
        epoch = _Epoch(self.answers, dict(state.chunks), dict(state.meta))
        epoch.take(delta)
        ranges = due_windows(epoch.of(measures.GROUPS, PANES, OPEN), epoch.cut, clock.before, clock.now)
        if not ranges:
            return epoch.state, iter(())
        few = sum(stop - first for first, stop in ranges) <= FEW
        output = epoch.one_by_one(ranges) if few else epoch.all_at_once(ranges, clock)
        return State() if clock.now == INFINITY else epoch.state, output

    def united(self, states: Sequence[State]) -> State:
        """All panes as open ones: the next window adds them up once more."""
        found: dict[str, tuple[Chunk, ...]] = {}
        for name, chunks in joined(states).items():
            table, _, kind = name.rpartition(".")
            if f".{kind}" != TOTAL:
                found[table + OPEN] = (*found.get(table + OPEN, ()), *chunks)
        return State(found)


@dataclass
class _Epoch(Changing):
    """A state while an epoch changes it. Panes before `closed` are over; of these, those from `begin` on can
    still be in a window. The total of a table is the sum of its panes that are kept."""

    def take(self, delta: Delta) -> None:
        """What came: panes that are still open, and late rows of closed ones that are still in a window."""
        closed, begin = self.meta.get("closed"), self.meta.get("begin", 0)
        for name, table in delta.tables.items():
            frame = columns.to_frame(table)
            if closed is not None:
                self._keep(name, frame.filter((pl.col(PANE) < closed) & (pl.col(PANE) >= begin)))
                frame = frame.filter(pl.col(PANE) >= closed)
            self.add(name, OPEN, [frame])

    def one_by_one(self, ranges: list[Range]) -> Iterator[pa.Table]:
        """Each window from the one before it."""
        found = [(w, *self._window(w)) for first, stop in ranges for w in range(first, stop)]
        return (
            self.answers.table(groups, frames)
            for w, groups, frames in found
            if groups is not None and not self.answers.is_left_out(w)
        )

    def _window(self, w: int) -> tuple[pl.DataFrame | None, Frames]:
        """The groups of a window and their states. Panes that leave go with the window that is without them,
        in one sum with those that close; if it has none in common with this one, all go now."""
        keys = self.answers.measures.keys
        states: Frames = {}
        for name in self.layouts:
            self._move_to(name, w)
            states[name] = self._answered(name, w)
            if self.cut.first_pane(w + 1) >= self.cut.end_pane(w):
                self.chunks |= {name + PANES: (), name + TOTAL: ()}
        self.meta |= {"closed": self.cut.end_pane(w), "begin": self.cut.first_pane(w + 1)}
        if not states[measures.GROUPS].height:
            return None, {}
        groups = numbering.number_groups([states[measures.GROUPS]], keys)
        shown = {name: frame for name, frame in states.items() if frame.height}
        return groups, {
            name: numbering.with_groups(frame.drop(PANE), groups, keys).with_columns(
                pl.lit(w, pl.Int64).alias("w")
            )
            for name, frame in shown.items()
        }

    def _move_to(self, name: str, w: int) -> None:
        """The panes of a window are there, and no others."""
        first = self.cut.first_pane(w)
        leaving = self.take_before(name, PANES, first)
        closed = self.close(name, self.cut.end_pane(w))
        new = closed.filter(pl.col(PANE) >= first) if closed.height else closed
        self._keep(name, new, leaving)

    def _keep(self, name: str, frame: pl.DataFrame, leaving: Sequence[pl.DataFrame] = ()) -> None:
        """Closed panes, or what belongs to them, as others leave."""
        gone = [each for each in leaving if each.height]
        if (frame.height or gone) and self._sums(name):
            layout, new = self.layouts[name], [frame] if frame.height else []
            less = (negative(each, layout) for each in gone)
            total = summed([*self.frames(name, TOTAL), *new, *less], layout)
            self.chunks[name + TOTAL] = chunked([total.filter(pl.col("rows.0") != 0)])
        if frame.height:
            width = -(-self.cut.per_window // CHUNKS)
            parts = frame.group_by(pl.col(PANE) // width, maintain_order=True)
            self.add(name, PANES, (part for _, part in parts))

    def _answered(self, name: str, w: int) -> pl.DataFrame:
        """The states of the window whose panes are there, as one pane."""
        layout, panes = self.layouts[name], self.frames(name, PANES)
        if self._sums(name):
            found = next(iter(self.frames(name, TOTAL)), pl.DataFrame())
            self._look(name, w, found.height)
            return found
        is_due = is_buffered(self.meta, name) and self.meta[f"{LOOK}{name}"] <= w
        if panes and not is_due and self._takes_repeats(name):
            return pl.concat(panes)
        found = summed(panes, layout)
        if is_due:
            self._look(name, w, found.height)
            self.chunks[name + TOTAL] = chunked([found]) if self._sums(name) else ()
        return found

    def _look(self, name: str, w: int, distinct: int) -> None:
        """How many different values a window has, against the cells of its panes; once in a window's time.
        The first windows of a stream have few panes, and tell little."""
        panes = self.of(name, PANES)
        if name == measures.GROUPS or not panes or self.meta.get(f"{LOOK}{name}", w) > w:
            return
        span = max(chunk.last for chunk in panes) - min(chunk.first for chunk in panes)
        if 2 * span < self.cut.per_window:
            return
        cells = sum(chunk.table.num_rows for chunk in panes)
        self.meta |= {
            f"{LOOK}{name}": w + -(-self.cut.per_window // self.cut.per_slide),
            f"{DISTINCT}{name}": distinct,
            f"{CELLS}{name}": cells,
        }
        if not self._sums(name):
            self.chunks[name + TOTAL] = ()

    def _sums(self, name: str) -> bool:
        """Whether the sum of the panes of a table is kept beside them."""
        if self.cut.per_window <= self.cut.per_slide:
            return False
        if name == measures.GROUPS:
            return self.layouts[name].subtracts
        return not is_buffered(self.meta, name)

    def _takes_repeats(self, name: str) -> bool:
        readers = [each.aggregate for each in self.answers.measures.measures if each.table == name]
        return name != measures.GROUPS and all(
            isinstance(aggregate, lowering.TAKES_REPEATS) for aggregate in readers
        )

    def all_at_once(self, ranges: list[Range], clock: PaneClock) -> Iterator[pa.Table]:
        """Many windows from all their panes."""
        last = ranges[-1][1] - 1
        end, begin = self.cut.end_pane(last), self.cut.first_pane(last + 1)
        tables: Frames = {}
        for name, layout in self.layouts.items():
            tables[name] = merge_panes([*self.frames(name, PANES), self.close(name, end)], layout)
            self.chunks |= {name + PANES: (), name + TOTAL: ()}
            if tables[name].height:
                self._keep(name, tables[name].filter(pl.col(PANE) >= begin))
        self.meta |= {"closed": end, "begin": begin}
        return self.answers.of_panes(tables, ranges, clock)


def is_buffered(meta: Mapping[str, int], table: str) -> bool:
    """Whether the values of a table hardly recur, by what was seen of them.

    >>> is_buffered({"distinct.values0": 990, "cells.values0": 1000}, "values0")
    True
    >>> is_buffered({"distinct.values0": 100, "cells.values0": 1000}, "values0"), is_buffered({}, "values0")
    (False, False)
    """
    distinct, cells = meta.get(f"{DISTINCT}{table}", 0), meta.get(f"{CELLS}{table}", 0)
    return cells > 0 and distinct >= HARDLY_RECUR * cells


def summed(frames: list[pl.DataFrame], layout: TableLayout) -> pl.DataFrame:
    """All rows of some panes as one pane."""
    if not frames:
        return pl.DataFrame()
    rows = pl.concat(frames).with_columns(pl.lit(0, pl.Int64).alias(PANE))
    return layout.merge(rows, [PANE, *layout.keys])


def negative(frame: pl.DataFrame, layout: TableLayout) -> pl.DataFrame:
    states = [name for name in frame.columns if name not in (PANE, *layout.keys)]
    return frame.with_columns(-pl.col(name) for name in states)
