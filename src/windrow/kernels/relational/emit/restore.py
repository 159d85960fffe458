"""Restore: periodic refreshes that lose nothing which came and went between two of them.

Results are put together again from signed pieces: a negative row ends the youngest result of its values that
was to end when it would have. So each result has its own birth and end, and is reported at the first refresh
after its birth, and with RSTREAM_RESTORE at every refresh that finds it alive.

Card: results put together
    requirements  negative rows end with the row they take back
    time          rows of the results that are open, and new ones, sorted
    space         results that are alive or not yet reported
    source        Golab's thesis, 3.3.4 (restore semantics), 5.3 (Algorithms 4 and 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.plan import Emit, StreamWord
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.emit.emission import Emission
from windrow.kernels.relational.expiry_layouts import Calendar, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import (
    FOREVER,
    SIGNED,
    TS,
    VE,
    VS,
    Columns,
    N,
    codes,
    consolidated,
    together,
)
from windrow.kernels.relational.windows.leaf import first_after
from windrow.kernels.state import State

RESULTS, END = "results", "#end"
ENDS = "ends"


class ByCount(Operator):
    """Rows told apart by nothing but their values: the i-th copy of a row is one as long as there are i.

    So a result of γ, δ or − begins when there are more copies of its values, and ends when there are less.
    """

    name = "results by count"

    def __init__(self, below: Operator, buckets: int) -> None:
        self.inputs = (below,)
        values = {n: d for n, d in below.columns.items() if not n.startswith("#")}
        self.values = list(values)
        self.calendar = Calendar(buckets)
        self.ending: Columns = dict(values) | {VE: pl.Int64(), N: pl.Int64()}
        self.moves: Columns = dict(values) | {VS: pl.Int64(), N: pl.Int64()}
        self.columns = dict(values) | dict(SIGNED)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (new,) = inputs
        ending = new.filter(pl.col(VE) < FOREVER).select(list(self.ending))
        over, later = self.calendar.due(
            self.calendar.add(state.of(ENDS), ending), step.slice.stop, self.ending
        )
        ended = over.select(*self.values, pl.col(VE).alias(VS), -pl.col(N))
        moves = consolidated(together([new.select(list(self.moves)), ended], self.moves))
        found = moves.with_columns(pl.lit(FOREVER, pl.Int64).alias(VE), pl.lit(-FOREVER, pl.Int64).alias(TS))
        return State({ENDS: later}), found.select(list(self.columns))


class Restored(Emission):
    """ISTREAM_RESTORE and RSTREAM_RESTORE."""

    name = "restore"

    def __init__(self, emit: Emit, below: Operator) -> None:
        super().__init__(emit, below)
        self.results: Columns = dict(self.pieces) | {END: pl.Int64()}

    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        fresh = consolidated(new).with_columns(pl.col(VE).alias(END))
        open_ = frame_of(state.of(RESULTS), self.results)
        rows = ended(together([open_, fresh], self.results), list(self.values))
        row, at = self._refreshes(rows, step)
        found = picked(rows, row)
        grid: Any = self.grids[0]
        over = (rows[END].to_numpy() <= step.slice.now) & (
            first_after(grid, rows[VS].to_numpy()) <= step.slice.now
        )
        answers = self.copies(found, np.ones(found.height, dtype=np.int64), at, ["+"] * found.height)
        return State({RESULTS: chunks_of(rows.filter(pl.Series(~over)))}), answers

    def _refreshes(self, rows: pl.DataFrame, step: Step) -> tuple[Any, Any]:
        """(row, E) for each refresh E of the step that reports the row."""
        grid: Any = self.grids[0]
        vs, end = rows[VS].to_numpy(), rows[END].to_numpy()
        born = first_after(grid, vs)
        missed = born > end
        last = np.where(missed | (self.emit.word is StreamWord.ISTREAM_RESTORE), born, end)
        low = np.maximum(born, first_after(grid, np.full(len(vs), step.slice.before)))
        stop = step.slice.now
        if step.slice.ended:  # results that stay are told once more after the last endpoint
            stop = max(grid.first_after(step.last_end), step.clock.reached)
            last = np.where(last < FOREVER, np.maximum(last, born), stop)
        row, at = grid.within(low, np.minimum(last, step.slice.now) + 1)
        return row, at


def ended(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Results one by one, each with its end, from signed pieces that may take some of them back.

    >>> signed = {"k": [1, 1], VS: [3, 5], VE: [9, 9], N: [1, -1], END: [9, 9]}
    >>> ended(pl.DataFrame(signed), ["k"]).select("k", VS, END).rows()
    [(1, 3, 5)]
    """
    counts = rows[N].to_numpy()
    if (np.abs(counts) > 1).any():
        rows = picked(rows, np.repeat(np.arange(rows.height), np.abs(counts)))
        rows = rows.with_columns(pl.col(N).sign())
    if not (rows[N].to_numpy() < 0).any():
        return rows
    closed = (rows[END] < rows[VE]).to_numpy()
    done, rows = rows.filter(pl.Series(closed)), rows.filter(pl.Series(~closed))
    code = codes(rows, [*names, VE])
    order = np.lexsort((rows[VS].to_numpy(), code))
    rows, code = picked(rows, order), code[order]
    n = rows[N].to_numpy()
    depth = pl.DataFrame({"code": code, "n": n}).select(pl.col("n").cum_sum().over("code"))["n"].to_numpy()
    level = np.where(n > 0, depth, depth + 1)
    pair = np.lexsort((np.arange(len(n)), level, code))
    same = np.append((code[pair][1:] == code[pair][:-1]) & (level[pair][1:] == level[pair][:-1]), False)
    following = np.append(rows[VS].to_numpy()[pair][1:], 0)
    end = rows[END].to_numpy().copy()
    end[pair] = np.where(same & (n[pair] > 0), following, end[pair])
    found = rows.with_columns(pl.Series(END, end)).filter(pl.Series(n > 0))
    return pl.concat([done, found])
