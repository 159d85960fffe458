"""Sweeps: how often each row is there, from event to event, for many rows at once.

Card: sweep
    requirements  events (row, instant, change of a count); counts before the first event are events at -∞
    time          O(e log e) for e events, no loop
    space         one cell per event
    source        interval algebra of windows: counts are constant between neighbouring endpoints
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, N

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: before every instant
START = -FOREVER - 1


@dataclass(frozen=True)
class Swept:
    """Per code and instant, in order, the counts from then on; `first` marks the first event of a code."""

    code: Ints
    at: Ints
    totals: list[Ints]
    first: npt.NDArray[np.bool_]

    def before(self, lane: int = 0) -> Ints:
        """The counts before each event."""
        total = self.totals[lane]
        moved = np.concatenate([[0], total[:-1]]) if len(total) else total
        return np.asarray(np.where(self.first, 0, moved))

    def until(self) -> Ints:
        """When the next event of the same code is."""
        if not len(self.at):
            return self.at
        following = np.append(self.at[1:], FOREVER)
        last = np.append(self.first[1:], True)
        return np.asarray(np.where(last, FOREVER, following))


def sweep(code: Ints, at: Ints, lanes: Sequence[Ints]) -> Swept:
    """Events of one code and instant added up, then summed over time.

    >>> found = sweep(np.array([7, 7, 7]), np.array([5, 1, 5]), [np.array([1, 1, -2])])
    >>> found.at.tolist(), found.totals[0].tolist(), found.before().tolist()
    ([1, 5], [1, 0], [0, 1])
    """
    if not len(code):
        return Swept(code, at, list(lanes), np.zeros(0, dtype=bool))
    order = np.lexsort((at, code))
    code, at = code[order], at[order]
    new = np.append(True, (code[1:] != code[:-1]) | (at[1:] != at[:-1]))
    starts = np.flatnonzero(new)
    code, at = code[starts], at[starts]
    first = np.append(True, code[1:] != code[:-1])
    heads = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    totals = []
    for lane in lanes:
        running = np.cumsum(np.add.reduceat(lane[order], starts))
        base = np.append(0, running)[heads]
        totals.append(np.asarray(running - base[group]))
    return Swept(code, at, totals, first)


def codes(frame: pl.DataFrame, names: Sequence[str]) -> Ints:
    """For each row the place of the first row with the same values, NULL and NaN included.

    >>> codes(pl.DataFrame({"k": [None, 3, None]}), ["k"]).tolist()
    [0, 1, 0]
    """
    if not names:
        return np.zeros(frame.height, dtype=np.int64)
    if frame.height < 2:
        return np.arange(frame.height)
    numbered = frame.select(names).with_row_index("#place")
    place = pl.col("#place").first().over([pl.col(name) for name in names]).cast(pl.Int64)
    return numbered.select(place.alias("#place"))["#place"].to_numpy()


def endpoints(frame: pl.DataFrame, code: Ints) -> tuple[Ints, Ints, Ints]:
    """The events of pieces: (code, at, change), ends at infinity included."""
    n = frame[N].to_numpy()
    at = np.concatenate([frame[VS].to_numpy(), frame[VE].to_numpy()])
    return np.concatenate([code, code]), at, np.concatenate([n, -n])


def positive(frame: pl.DataFrame) -> pl.DataFrame:
    """Signed pieces as pieces of positive counts that do not overlap: what is there, and when.

    >>> row = {"k": [1, 1, 1], VS: [0, 4, 2], VE: [FOREVER, FOREVER, 3], N: [1, -1, 1]}
    >>> positive(pl.DataFrame(row)).rows()
    [(1, 0, 2, 1), (1, 2, 3, 2), (1, 3, 4, 1)]
    """
    if not frame.height:
        return frame
    names = [name for name in frame.columns if name not in (VS, VE, N)]
    swept = sweep_pieces(frame, codes(frame, names))
    keep = (swept.totals[0] > 0) & (swept.at < FOREVER)
    rows = picked(frame.select(names), swept.code[keep])
    ends = pl.Series(VE, swept.until()[keep])
    counts = pl.Series(N, swept.totals[0][keep])
    return rows.with_columns(pl.Series(VS, swept.at[keep]), ends, counts).select(frame.columns)


def sweep_pieces(frame: pl.DataFrame, code: Ints) -> Swept:
    """The counts of pieces over time."""
    code, at, n = endpoints(frame, code)
    return sweep(code, at, [n])
