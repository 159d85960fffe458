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

What cannot be subtracted has its place in the table of groups, such as MAX or a sum of doubles: that one is
small, and is added up from its panes. Many windows at once, as after a long gap between epochs, are answered
from all panes together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.changing import Changing
from windrow.kernels.columns import to_frame
from windrow.kernels.layout import PANE, Layout
from windrow.kernels.live_panes import due_windows
from windrow.kernels.measures import GROUPS
from windrow.kernels.numbering import number_all, number_groups, with_groups
from windrow.kernels.panes import merge_panes
from windrow.kernels.slide import PaneWindows
from windrow.kernels.state import Delta, State, chunked, split_at
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.kernels.answers import Answers
    from windrow.kernels.clocks import Clock

    Frames = dict[str, pl.DataFrame]

OPEN, PANES, TOTAL = ".open", ".panes", ".total"
#: more windows than these in one epoch are answered from all panes together
FEW = 8
#: closed panes are kept in about so many chunks, so that few are opened that do not leave
CHUNKS = 32


@dataclass(frozen=True)
class Differences:
    """Sliding windows by adding and subtracting panes."""

    answers: Answers

    def advance(self, state: State, delta: Delta, clock: Clock) -> tuple[State, Iterator[pa.Table]]:
        if clock.key is not None:
            raise ValueError("running differences have one clock for all groups")
        epoch = _Epoch(self.answers, dict(state.chunks), dict(state.meta))
        epoch.take(delta)
        live = (*epoch.of(GROUPS, PANES), *epoch.of(GROUPS, OPEN))
        ranges = due_windows(live, epoch.cut, clock.before, clock.now)
        if not ranges:
            return epoch.state, iter(())
        few = sum(stop - first for first, stop in ranges) <= FEW
        output = epoch.one_by_one(ranges) if few else epoch.all_at_once(ranges)
        return State() if clock.now == INFINITY else epoch.state, output


@dataclass
class _Epoch(Changing):
    """A state while an epoch changes it. Panes before `closed` are over; of these, those from `begin` on are
    kept, and the total of each table that subtracts is their sum."""

    def take(self, delta: Delta) -> None:
        """What came: panes that are still open, and late rows of closed ones that are still in a window."""
        closed, begin = self.meta.get("closed"), self.meta.get("begin", 0)
        for name, table in delta.tables.items():
            frame = to_frame(table)
            if closed is not None:
                late = frame.filter((pl.col(PANE) < closed) & (pl.col(PANE) >= begin))
                frame = frame.filter(pl.col(PANE) >= closed)
                self._keep(name, late)
            self.chunks[name + OPEN] = (*self.of(name, OPEN), *chunked([frame]))

    def one_by_one(self, ranges: list[tuple[int, int]]) -> Iterator[pa.Table]:
        """Each window from the one before it."""
        found = [(w, *self._window(w)) for first, stop in ranges for w in range(first, stop)]
        return (
            self.answers.table(groups, frames)
            for w, groups, frames in found
            if groups is not None and not self.answers.is_left_out(w)
        )

    def _window(self, w: int) -> tuple[pl.DataFrame | None, Frames]:
        """The groups of a window and their states; then its oldest panes go."""
        keys = self.answers.measures.keys
        totals: Frames = {}
        for name, layout in self.layouts.items():
            self._leave(name, self.cut.first_pane(w))
            closing, rest = split_at(self.of(name, OPEN), self.cut.end_pane(w))
            self.chunks[name + OPEN] = tuple(rest)
            closed = layout.closed(merge_panes(closing, layout))
            self._keep(
                name, closed.filter(pl.col(PANE) >= self.cut.first_pane(w)) if closed.height else closed
            )
            totals[name] = self._total(name)
            self._leave(name, self.cut.first_pane(w + 1))
        self.meta |= {"closed": self.cut.end_pane(w), "begin": self.cut.first_pane(w + 1)}
        if not totals[GROUPS].height:
            return None, {}
        groups = number_groups([totals[GROUPS]], keys)
        shown = {name: total for name, total in totals.items() if total.height}
        return groups, {
            name: with_groups(total.drop(PANE), groups, keys).with_columns(pl.lit(w, pl.Int64).alias("w"))
            for name, total in shown.items()
        }

    def _keep(self, name: str, frame: pl.DataFrame) -> None:
        """Closed panes, or what belongs to them."""
        if not frame.height:
            return
        if self._subtracts(name):
            self._change(name, [frame])
        width = -(-self.cut.per_window // CHUNKS)
        parts = frame.group_by(pl.col(PANE) // width, maintain_order=True)
        self.chunks[name + PANES] = (*self.of(name, PANES), *chunked(part for _, part in parts))

    def _leave(self, name: str, pane: int) -> None:
        """The panes before one go."""
        leaving, kept = split_at(self.of(name, PANES), pane)
        gone = [frame for frame in leaving if frame.height]
        if not gone:
            return
        self.chunks[name + PANES] = tuple(kept)
        if self._subtracts(name):
            self._change(name, [_negative(frame, self.layouts[name]) for frame in gone])

    def _change(self, name: str, frames: list[pl.DataFrame]) -> None:
        before = [chunk.frame for chunk in self.of(name, TOTAL)]
        total = _summed([*before, *frames], self.layouts[name])
        self.chunks[name + TOTAL] = chunked([total.filter(pl.col("rows.0") != 0)])

    def _total(self, name: str) -> pl.DataFrame:
        """The sum of the panes that are kept."""
        if self._subtracts(name):
            return next((chunk.frame for chunk in self.of(name, TOTAL)), pl.DataFrame())
        return _summed([chunk.frame for chunk in self.of(name, PANES)], self.layouts[name])

    def _subtracts(self, name: str) -> bool:
        return name != GROUPS or subtracts(self.layouts[name])

    def all_at_once(self, ranges: list[tuple[int, int]]) -> Iterator[pa.Table]:
        """Many windows from all their panes."""
        last = ranges[-1][1] - 1
        end, begin = self.cut.end_pane(last), self.cut.first_pane(last + 1)
        tables: Frames = {}
        for name, layout in self.layouts.items():
            closing, rest = split_at(self.of(name, OPEN), end)
            stored = [chunk.frame for chunk in self.of(name, PANES)]
            tables[name] = merge_panes([*stored, layout.closed(merge_panes(closing, layout))], layout)
            self.chunks |= {name + OPEN: tuple(rest), name + PANES: (), name + TOTAL: ()}
            if tables[name].height:
                self._keep(name, tables[name].filter(pl.col(PANE) >= begin))
        self.meta |= {"closed": end, "begin": begin}
        groups, numbered = number_all(tables, self.layouts, self.answers.measures.keys)
        windows = {name: PaneWindows(table, self.cut) for name, table in numbered.items()}
        return chain.from_iterable(self.answers.blocks(groups, windows, part) for part in ranges)


def subtracts(layout: Layout) -> bool:
    """Whether all that a table keeps can be subtracted exactly."""
    return all(combiner.invertible for combiner in layout.combiners)


def _summed(frames: list[pl.DataFrame], layout: Layout) -> pl.DataFrame:
    """All rows of some panes as one pane."""
    if not frames:
        return pl.DataFrame()
    rows = pl.concat(frames).with_columns(pl.lit(0, pl.Int64).alias(PANE))
    return layout.merge(rows, [PANE, *layout.keys])


def _negative(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    states = [name for name in frame.columns if name not in (PANE, *layout.keys)]
    return frame.with_columns(-pl.col(name) for name in states)
