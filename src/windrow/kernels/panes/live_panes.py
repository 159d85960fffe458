"""Simple kernels. Live panes: those of windows that are not answered yet are kept, and all read when one is.

Card: live panes
    requirements  associative combine
    time          per epoch: rows of all live panes, plus the answers
    space         one state per live pane and group
    source        panes: Li et al. 2005, "No Pane, No Gain"; windows by `windrow.kernels.panes.pane_tables`

Running totals, for landmark windows: one state per group, since nothing ever leaves.

Card: running total
    requirements  associative combine
    time          per epoch: rows of the new panes, plus the answers
    space         one state per group, and the panes that are not due
    source        Gehrke, Korn and Srivastava 2001 (landmark windows)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar import columns, combiners, numbering
from windrow.kernels.panes import pane_tables, query
from windrow.kernels.state import PANE, Chunk, Delta, State, TableLayout, chunked, joined
from windrow.windows import INFINITY, Instant, Ints, refuse_too_many


@dataclass(frozen=True)
class LivePanes(pane_tables.Kernel):
    """Sliding windows from their live panes."""

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        cut, layouts = self.answers.query.cut, self.answers.measures.layouts
        new = State({name: chunked([columns.to_frame(table)]) for name, table in delta.tables.items()})
        chunks = {name: found for name, found in joined([state, new]).items() if found}
        ranges = due_windows(chunks.get(GROUPS, ()), cut, clock.least[0], clock.greatest[1])
        if not ranges:
            return State(chunks), iter(())
        tables = {
            name: pane_tables.merge_panes([c.frame for c in chunks[name]], layouts[name]) for name in chunks
        }
        tables = {name: _closed(frame, layouts[name], cut, clock) for name, frame in tables.items()}
        alive = {name: _alive(frame, cut, clock) for name, frame in tables.items()}
        after = State({name: kept for name, kept in alive.items() if kept})
        return after, self.answers.of_panes(tables, ranges, clock)


def due_windows(
    chunks: Sequence[Chunk], cut: query.Cut, before: Instant, now: Instant
) -> list[tuple[int, int]]:
    """The windows that end after `before` and by `now` and are not empty, as ranges.

    Stretches of time without rows are left out, however long they are.
    """
    if not chunks or now == -INFINITY:
        return []
    panes = np.unique(np.concatenate([chunk.table.column(PANE).to_numpy() for chunk in chunks]))
    first, last = panes // cut.per_slide, (panes + cut.per_window) // cut.per_slide - 1
    if before != -INFINITY:
        first = np.maximum(first, int(cut.due(before)) + 1)
    if now != INFINITY:
        last = np.minimum(last, int(cut.due(now)))
    some = first <= last
    first, last = first[some], last[some]
    breaks = np.flatnonzero(first[1:] > last[:-1] + 1)
    begins, ends = np.append(first[:1], first[breaks + 1]), np.append(last[breaks], last[-1:])
    return [(int(begin), int(end) + 1) for begin, end in zip(begins, ends, strict=True)]


def _closed(frame: pl.DataFrame, layout: TableLayout, cut: query.Cut, clock: PaneClock) -> pl.DataFrame:
    """Panes that are over, as little as is kept of them, and the others as they are."""
    if layout.close is None:
        return frame
    over = frame[PANE] < (clock.windows(frame, cut)["last"] + 1) * cut.per_slide
    return pl.concat([layout.closed(frame.filter(over)), frame.filter(~over)])


def _alive(frame: pl.DataFrame, cut: query.Cut, clock: PaneClock) -> tuple[Chunk, ...]:
    """The panes that windows after the clock still need."""
    if clock.least[1] == INFINITY:
        return ()
    next_w = clock.windows(frame, cut)["last"] + 1
    return chunked([frame.filter(frame[PANE] >= (next_w + 1) * cut.per_slide - cut.per_window)])


RUNNING = ".running"


@dataclass(frozen=True)
class RunningTotals(pane_tables.Kernel):
    """Landmark windows: window w holds the panes up to w."""

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        """A late row counts from its group's next window on."""
        latest = max((w for w in (state.meta.get("latest"), delta.latest) if w is not None), default=None)
        epoch = pane_tables.Changing(
            self.answers, dict(state.chunks), {} if latest is None else {"latest": latest}
        )
        for name, table in delta.tables.items():
            frame = columns.to_frame(table)
            next_w = clock.windows(frame, epoch.cut)["first"]
            later = pl.DataFrame([frame[PANE], next_w]).select(pl.max_horizontal(pl.all()))
            epoch.add(name, pane_tables.OPEN, [frame.with_columns(later.to_series().alias(PANE))])
        if latest is None or clock.greatest[1] == -INFINITY:
            return epoch.state, iter(())
        output = self._answer(epoch, clock, latest)
        return epoch.state, output

    def united(self, states: Sequence[State]) -> State:
        """The last window is the last of any."""
        known = [state.meta["latest"] for state in states if "latest" in state.meta]
        return State(joined(states), {"latest": max(known)} if known else {})

    def _answer(self, epoch: pane_tables.Changing, clock: PaneClock, latest: int) -> Iterator[pa.Table]:
        measures, cut = self.answers.measures, epoch.cut
        before, now = cut.due(clock.least[0]), cut.due(clock.greatest[1])
        last = int(min(now, latest)) if now == INFINITY else int(now)
        known = (chunk.first for chunks in epoch.chunks.values() for chunk in chunks)
        first = min(known, default=last + 1)
        first = first if before == -INFINITY else max(first, int(before) + 1)
        if first > last:
            return iter(())
        tables: dict[str, pl.DataFrame] = {}
        for name, layout in epoch.layouts.items():
            due = epoch.take_before(name, pane_tables.OPEN, last + 1)
            if clock.key is not None:
                passed = [frame[PANE] <= clock.windows(frame, cut)["last"] for frame in due]
                epoch.add(
                    name, pane_tables.OPEN, (f.filter(~mine) for f, mine in zip(due, passed, strict=True))
                )
                due = [frame.filter(mine) for frame, mine in zip(due, passed, strict=True)]
            closed = layout.closed(pane_tables.merge_panes(due, layout))
            tables[name] = pane_tables.merge_panes([*epoch.frames(name, RUNNING), closed], layout)
        if not tables[GROUPS].height:
            return iter(())
        groups, numbered = numbering.number_all(tables, epoch.layouts, measures.keys)
        totals = {name: Totals(table) for name, table in numbered.items()}
        refuse_too_many((last + 1 - first) * groups.height)
        reached = clock.windows(groups, cut)["last"].clip(upper_bound=last).to_numpy()
        for name, each in totals.items():
            epoch.chunks[name + RUNNING] = chunked([each.latest(groups, reached)])
        return self.answers.blocks(groups, totals, (first, last + 1), clock)


class Totals:
    """The states of a table's groups, each with all before it."""

    def __init__(self, table: numbering.Numbered) -> None:
        self.table, self.lanes = table, table.scanned(table.runs)

    def block(self, groups: tuple[int, int], windows: tuple[int, int]) -> pl.DataFrame:
        """Each row's state stands in all windows until its group's next row."""
        _, _, rows = self.table.of_groups(groups)
        ids, panes = self.table.ids[rows], self.table.panes[rows]
        until = np.full(len(ids), windows[1])
        again = np.flatnonzero(ids[1:] == ids[:-1])
        until[again] = np.minimum(panes[again + 1], windows[1])
        begins = np.maximum(panes, windows[0])
        places, since = combiners.spread_out(np.maximum(until - begins, 0))
        lanes = numbering.cut_lanes(numbering.cut_lanes(self.lanes, rows), places)
        return self.table.framed(begins[places] + since, ids[places], lanes)

    def latest(self, groups: pl.DataFrame, reached: Ints) -> pl.DataFrame:
        """The last state of each group, as a table; `reached` is the last window answered of each."""
        ends = combiners.run_ends(self.table.runs, len(self.table.ids))
        panes = reached[self.table.catalog["g"].to_numpy()[self.table.ids[ends]]]
        return self.table.stored(groups, panes, self.table.ids[ends], numbering.cut_lanes(self.lanes, ends))
