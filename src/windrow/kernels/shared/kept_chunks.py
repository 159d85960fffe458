"""What a sheet keeps between epochs: closed chunks, oldest first, and the intervals that are still open.

Closed chunks are only read; an interval that is over gets no more rows. A chunk goes when no window after the
clock needs any of its intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.layouts import PANE
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.state import Chunk, State, chunked, split_at
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.kernels.clock import Clock
    from windrow.kernels.shared.request import Asker
    from windrow.kernels.shared.shared_state import Sheet

CLOSED, OPEN = ".closed", ".open"
#: more chunks of a sheet than these are put together
MOST_CHUNKS = 24
_BEFORE_ALL, _AFTER_ALL = -(1 << 62), 1 << 62


@dataclass(frozen=True)
class Moved:
    """A sheet whose clock has moved: what was closed before and closes now, and what is still open."""

    sheet: Sheet
    keys: tuple[str, ...]
    closed: tuple[Chunk, ...]
    open: tuple[Chunk, ...]

    @classmethod
    def of(
        cls, sheet: Sheet, keys: tuple[str, ...], state: State, new: pl.DataFrame | None, clock: Clock
    ) -> Moved:
        """What a sheet has when its clock has moved and new rows are in it."""
        layout, now = sheet.layout(len(keys)), clock.now
        waiting = (*state.of(sheet.name + OPEN), *chunked([] if new is None else [new]))
        closed = state.of(sheet.name + CLOSED)
        stop = _BEFORE_ALL if now == -INFINITY else _AFTER_ALL if now == INFINITY else sheet.index(int(now))
        closing, rest = split_at(waiting, stop)
        if closing:
            fitted = [sheet.fitted(frame, keys) for frame in closing]
            closed = (*closed, *chunked([layout.closed(merge_panes(fitted, layout))]))
        if len(rest) > MOST_CHUNKS:
            fitted = [sheet.fitted(chunk.frame, keys) for chunk in rest]
            rest = list(chunked([merge_panes(fitted, layout)]))
        return cls(sheet, keys, closed, tuple(rest))

    def frames(self, lowest: int) -> list[pl.DataFrame]:
        """What is closed, from an interval on; each interval and group once."""
        found = []
        for chunk in self.closed:
            if chunk.last >= lowest:
                frame = self.sheet.fitted(chunk.frame, self.keys)
                found.append(frame.filter(pl.col(PANE) >= lowest) if chunk.first < lowest else frame)
        return found

    def kept(self, clock: Clock) -> dict[str, tuple[Chunk, ...]]:
        """What windows after the clock need; after the end, what the last windows were made of."""
        name = self.sheet.name
        closed = self.closed
        if clock.now != -INFINITY:
            last = max((chunk.last for chunk in closed), default=0)
            now = last + 1 if clock.now == INFINITY else self.sheet.index(int(clock.now))
            first = now - self.sheet.length
            closed = tuple(chunk for chunk in closed if chunk.last >= first)
            if len(closed) > MOST_CHUNKS:
                closed = chunked(self.sheet.parts(pl.concat(self.frames(first))))
        return {name + CLOSED: closed, name + OPEN: self.open}


def lowest(due: Sequence[Asker], sheet: Sheet, clock: Clock) -> int:
    """The first interval that any window needs."""
    if clock.before == -INFINITY or not due:
        return _BEFORE_ALL
    return sheet.index(int(clock.before) - max(asker.range for asker in due))
