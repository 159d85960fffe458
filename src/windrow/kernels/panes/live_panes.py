"""The simple kernel: keeps the panes of windows that are not answered yet, and reads all of them when one is.

Card: live panes
    requirements  associative combine
    time          per epoch: rows of all live panes, plus the answers
    space         one state per live pane and group
    source        panes: Li et al. 2005, "No Pane, No Gain"; windows by `windrow.kernels.panes.slide`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.numbering import number_all
from windrow.kernels.panes.answers import PaneAnswers, neighbours
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.panes.slide import PaneWindows
from windrow.kernels.state import PANE, Chunk, Delta, State, TableLayout, chunked, joined
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.kernels.clock import PaneClock
    from windrow.kernels.panes.cuts import Cut


@dataclass(frozen=True)
class LivePanes:
    """Sliding windows from their live panes."""

    answers: PaneAnswers

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        cut, measures = self.answers.query.cut, self.answers.measures
        chunks = with_delta(state, delta)
        ranges = due_windows(chunks.get(GROUPS, ()), cut, clock.least[0], clock.greatest[1])
        if not ranges:
            return State(chunks), iter(())
        layouts = measures.layouts
        tables = {name: merge_panes([c.frame for c in chunks[name]], layouts[name]) for name in chunks}
        tables = {name: _closed(frame, layouts[name], cut, clock) for name, frame in tables.items()}
        groups, numbered = number_all(tables, layouts, measures.keys)
        windows = {name: PaneWindows(table, cut) for name, table in numbered.items()}
        spans = clock.windows(groups, cut) if clock.key else None
        parts = neighbours(ranges, groups.height)
        output = chain.from_iterable(self.answers.blocks(groups, windows, part, spans) for part in parts)
        alive = {name: _alive(frame, cut, clock) for name, frame in tables.items()}
        return State({name: kept for name, kept in alive.items() if kept}), output

    def united(self, states: Sequence[State]) -> State:
        """All panes."""
        return State(joined(states))


def with_delta(state: State, delta: Delta) -> dict[str, tuple[Chunk, ...]]:
    """The chunks of a state and of what an epoch brings."""
    new = {name: chunked([to_frame(table)]) for name, table in delta.tables.items()}
    names = {*state.chunks, *new}
    merged = {name: (*state.of(name), *new.get(name, ())) for name in sorted(names)}
    return {name: chunks for name, chunks in merged.items() if chunks}


def due_windows(chunks: Sequence[Chunk], cut: Cut, before: Instant, now: Instant) -> list[tuple[int, int]]:
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


def _closed(frame: pl.DataFrame, layout: TableLayout, cut: Cut, clock: PaneClock) -> pl.DataFrame:
    """Panes that are over, as little as is kept of them, and the others as they are."""
    if layout.close is None:
        return frame
    over = frame[PANE] < (clock.windows(frame, cut)["last"] + 1) * cut.per_slide
    return pl.concat([layout.closed(frame.filter(over)), frame.filter(~over)])


def _alive(frame: pl.DataFrame, cut: Cut, clock: PaneClock) -> tuple[Chunk, ...]:
    """The panes that windows after the clock still need."""
    if clock.least[1] == INFINITY:
        return ()
    next_w = clock.windows(frame, cut)["last"] + 1
    return chunked([frame.filter(frame[PANE] >= (next_w + 1) * cut.per_slide - cut.per_window)])
