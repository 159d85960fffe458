"""Running sums of a tally: what its intervals add up to over windows of each length that is asked for.

Queries of one length have one sum, which goes with the clock: an interval that closes is added, one that
leaves is subtracted, so that a window costs no more than these and its distinct values, however many
intervals it has. As with a state of its own (`windrow.kernels.panes.subtract_on_evict`), no sum is kept where
values are seen to recur hardly ever, and many windows at once are answered from the intervals.

Card: shared sums
    requirements  cells that are counts which can be subtracted
    time          per length: cells of the intervals that close and that leave, and the distinct values
    space         for each length one state per group and value
    source        No Pane, No Gain (Li et al. 2005), 3.2.2; Golab's thesis, Algorithm 6 (global counters)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.layouts import PANE, Layout
from windrow.kernels.panes.subtract_on_evict import (
    CELLS,
    DISTINCT,
    FEW,
    LOOK,
    TOTAL,
    is_buffered,
    negative,
    summed,
)
from windrow.kernels.state import Chunk, State, chunked
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.kernels.clock import Clock
    from windrow.kernels.shared.value_counts import Tally

#: up to which interval a sum goes
END = "end."


@dataclass
class Sums:
    """The sums of a tally while an epoch moves them; `closed` are its intervals that are over."""

    tally: Tally
    layout: Layout
    closed: tuple[Chunk, ...]
    before: State
    chunks: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: dict[str, int] = field(default_factory=dict)

    def moved(self, length: int, ends: Collection[int], clock: Clock) -> dict[int, pl.DataFrame] | None:
        """The sums over windows of so many intervals, by their ends; None if these are to be taken from the
        intervals. Then the sum goes on to where the clock is."""
        if not self.tally.cells.subtracts or clock.now == -INFINITY:
            return None
        name, known = f"{self.tally.name}/{length}", self.before.meta
        self.meta |= {key: known[key] for key in (what + name for what in _SEEN) if key in known}
        now = None if clock.now == INFINITY else self.tally.index(int(clock.now))
        rests = is_buffered(known, name) and (now is None or known[LOOK + name] > now)
        found: dict[int, pl.DataFrame] = {}
        total, end = next((each.frame for each in self.before.of(name + TOTAL)), None), known.get(END + name)
        if end is not None and min(ends, default=end) < end:
            end = None
        if not rests and len(ends) <= FEW:
            for each in sorted(ends):
                total, end = self._at(total, end, each, length), each
                found[each] = total
        if now is not None and not rests:
            total = self._at(total, end, now, length)
            self._look(name, total.height, now, length)
            if not is_buffered(self.meta, name):
                self.chunks[name + TOTAL] = chunked([total])
                self.meta[END + name] = now
        return None if rests or len(ends) > FEW else found

    def _at(self, total: pl.DataFrame | None, end: int | None, to: int, length: int) -> pl.DataFrame:
        """A sum moved on; afresh where nothing of it stays."""
        if end is None or to - length >= end:
            return summed(list(self._between(to - length, to)), self.layout)
        more = list(self._between(end, to))
        gone = [negative(each, self.layout) for each in self._between(end - length, to - length)]
        if not more and not gone:
            return pl.DataFrame() if total is None else total
        frames = [*([total] if total is not None and total.height else []), *more, *gone]
        return summed(frames, self.layout).filter(pl.col("rows.0") != 0)

    def _between(self, first: int, stop: int) -> Iterable[pl.DataFrame]:
        """The cells of some intervals; chunks of others are not opened."""
        for chunk in self.closed:
            if chunk.first < stop and chunk.last >= first:
                frame = to_frame(chunk.table)
                if chunk.first < first or chunk.last >= stop:
                    frame = frame.filter((pl.col(PANE) >= first) & (pl.col(PANE) < stop))
                if frame.height:
                    yield frame

    def _look(self, name: str, distinct: int, now: int, length: int) -> None:
        """How many values a window has against the cells of its intervals, once in a window's time. The first
        windows of a stream have few intervals, and tell little."""
        if self.meta.get(LOOK + name, now) > now or length < 2:
            return
        panes = [chunk.table.column(PANE).to_numpy() for chunk in self.closed if chunk.last >= now - length]
        mine = [each[(each >= now - length) & (each < now)] for each in panes]
        known = np.concatenate([np.zeros(0, dtype=np.int64), *mine])
        if len(known) and 2 * int(known.max() - known.min()) >= length:
            self.meta |= {LOOK + name: now + length, DISTINCT + name: distinct, CELLS + name: len(known)}


#: what is remembered of a sum that is not kept
_SEEN = (LOOK, DISTINCT, CELLS)


def seen_of(meta: Mapping[str, int], tally: str, length: int, table: str) -> dict[str, int]:
    """What was seen of the values of a tally over windows of a length, under the name of a query's table."""
    name = f"{tally}/{length}"
    return {what + table: meta[what + name] for what in _SEEN if what + name in meta}
