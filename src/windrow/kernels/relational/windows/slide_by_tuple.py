"""Slide-by-tuple windows: every n-th row moves the window, whose length is in the attribute.

Card: moving values
    requirements  all rows below the clock are known, hence all values w that move the window
    time          a binary search for each row of the window, when the window moves
    space         the rows of the window, those not yet final, a count of ranks
    source        WID (Li et al. 2005), 3.3 and 6 (a row is in the extents with t ≤ w < t + RANGE)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, TS, Columns, blank, codes, together
from windrow.kernels.relational.windows.leaf import NUMBER, PENDING, Leaf
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.windows.grid import Ints

INSIDE, ENTERED, RANKED, COUNTS, RANK = "inside", "#entered", "ranked", "counts", "#rank"


class ByTuple(Leaf):
    """[RANGE r RATTR a SLIDE n ROWS SATTR row_num | rank(a) PARTITION BY k], [LANDMARK SLIDE n ROWS]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = dict(self.rows) | {ENTERED: pl.Boolean()}
        keys = {name: self.rows[name] for name in self.keys}
        #: by arrival in partitions, rows are counted as they come; else as they become final
        self.ranks = bool(keys) and not self.spec.by_rank
        self.waiting: Columns = dict(self.rows) | ({RANK: pl.Int64()} if self.ranks else {})
        self.counted: Columns = keys | {"count": pl.Int64()}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        rows = self._held(rows)
        counts = frame_of(state.of(COUNTS), self.counted)
        if self.ranks and rows.height:
            rows, counts = self._ranked(rows, counts, NUMBER)
        waiting = together([frame_of(state.of(PENDING), self.waiting), rows], self.waiting)
        if not waiting.height:
            return state, blank(self.columns)
        final = pl.Series(waiting[TS].to_numpy() < self.known(waiting, step))
        new, pending = waiting.filter(final), waiting.filter(~final)
        ranked = state.meta.get(RANKED, 0)
        meta, chunks = {RANKED: ranked + new.height}, {PENDING: chunks_of(pending)}
        if not new.height:
            chunks |= {COUNTS: chunks_of(counts)} if self.keys else {}
            return State({**chunks, INSIDE: state.of(INSIDE)}, meta), blank(self.columns)
        if self.keys and not self.ranks:
            new, counts = self._ranked(new, counts, TS)
        chunks |= {COUNTS: chunks_of(counts)} if self.keys else {}
        inside = frame_of(state.of(INSIDE), self.inside)
        fresh = new.with_columns(pl.lit(False).alias(ENTERED)).select(list(self.inside))
        moves = self._moving(new, ranked)
        step.slides.append(np.unique(moves[TS].to_numpy()))
        found, stay = self._moved(together([inside, fresh], self.inside), moves)
        return State({**chunks, INSIDE: chunks_of(stay)}, meta), found

    def _held(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows from FROM to UNTIL."""
        first, last = self.spec.start, self.spec.until
        rows = rows if first is None else rows.filter(pl.col(TS) >= first)
        return rows if last is None else rows.filter(pl.col(TS) <= last)

    def _ranked(self, rows: pl.DataFrame, counts: pl.DataFrame, by: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows with their places in their partitions, in an order, and how many there are after them."""
        part = codes(pl.concat([rows.select(self.keys), counts.select(self.keys)]), self.keys)
        base = np.zeros(len(part) + 1, dtype=np.int64)
        base[part[rows.height :]] = counts["count"].to_numpy()
        mine = part[: rows.height]
        order = np.lexsort((rows[by].to_numpy(), mine))
        sorted_ = mine[order]
        starts = np.flatnonzero(np.append(True, sorted_[1:] != sorted_[:-1]))
        place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = base[sorted_] + place + 1
        rows = rows.with_columns(pl.Series(RANK, rank))
        latest = rows.select(*self.keys, pl.col(RANK).alias("count"))
        after = together([counts, latest], self.counted).group_by(self.keys).agg(pl.col("count").max())
        return rows, after.select(list(self.counted))

    def _moving(self, new: pl.DataFrame, ranked: int) -> pl.DataFrame:
        """The attribute values of every n-th row, of each partition in order."""
        every = self.spec.every
        if self.keys:
            moving = new.filter(pl.col(RANK) % every == 0)
        elif self.spec.by_rank:
            moving = new.sort(TS)[every - 1 - ranked % every :: every]
        else:
            moving = new.filter(pl.col(NUMBER) % every == 0)
        return moving.select(*self.keys, TS).unique().sort(TS)

    def _next(self, inside: pl.DataFrame, moves: pl.DataFrame, t: pl.Series) -> Ints:
        """The first value at or after each instant that moves the row's partition; infinity if none does."""
        if not self.keys:
            values = np.append(moves[TS].to_numpy(), FOREVER)
            return np.asarray(values[np.searchsorted(values, t.to_numpy())])
        both = codes(pl.concat([inside.select(self.keys), moves.select(self.keys)]), self.keys)
        asked = pl.DataFrame({"part": both[: inside.height], "t": t}).with_row_index("row").sort("t")
        known = pl.DataFrame({"part": both[inside.height :], "t": moves[TS], "w": moves[TS]})
        found = asked.join_asof(known, on="t", by="part", strategy="forward", check_sortedness=False)
        return found.sort("row")["w"].fill_null(FOREVER).to_numpy()

    def _moved(self, inside: pl.DataFrame, moves: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        t, entered = inside[TS], inside[ENTERED].to_numpy()
        enters = self._next(inside, moves, t)
        if self.spec.range is None:
            here = ~entered & (enters < FOREVER)
            born = self.pieces(inside.filter(pl.Series(here)), enters[here], FOREVER)
            return born, inside.filter(pl.Series(~here))
        leaves = self._next(inside, moves, t + self.spec.range)
        here, over = ~entered & (enters < FOREVER), entered & (leaves < FOREVER)
        born = self.pieces(inside.filter(pl.Series(here)), enters[here], leaves[here])
        ended = self.pieces(inside.filter(pl.Series(over)), leaves[over], FOREVER, -1)
        stay = inside.with_columns(pl.Series(ENTERED, entered | here)).filter(pl.Series(leaves == FOREVER))
        return together([born, ended], self.columns), stay
