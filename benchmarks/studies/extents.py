"""Sliding aggregates straight on kernels, three ways: panes, no panes, and a buffer of rows.

`Paned` runs the kernels of sliding aggregates batch by batch. `Buffered` is what a program without any idea
of sharing does: it keeps the rows of the window, and looks through all of them for every extent that ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.contestant import Outcome
from benchmarks.studies.steps import Batch
from windrow.engine.explain import declared
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.state import Delta, State
from windrow.language.compile import compile_query
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit

#: the most rows of state that were kept after a batch
STATE_ROWS = "state rows"
_ANSWER: dict[str, pl.DataType] = {
    "at": pl.Int64(),
    "k": pl.Int64(),
    "m": pl.Float64(),
    "t": pl.Float64(),
    "n": pl.Int64(),
}


@dataclass(frozen=True)
class Paned:
    """A sliding aggregate of one stream, on the kernels for it."""

    emit: Emit
    stacked: bool | None = None

    def run(self, batches: Sequence[Batch]) -> Outcome:
        """All batches; seconds are those of the processor in the kernels, answers are by instant and key."""
        program = PaneProgram(self.emit, stacked=self.stacked, by_group=False)
        level = program.bottom
        state, clock = State(), PaneClock(-INFINITY, -INFINITY)
        tables: list[pl.DataFrame] = []
        seconds, kept = 0.0, 0
        for batch in batches:
            ((_, rows),) = batch.rows.items()
            stamped = rows.with_columns(
                pl.lit(0, pl.Int64).alias("#row_num"), pl.lit(0, pl.Int64).alias("#arrival_ts")
            )
            began = time.process_time()
            clock = PaneClock(clock.now, batch.clock)
            entered = level.scanned(stamped)
            panes = {name: frame.to_arrow() for name, frame in level.tables(entered).items()}
            state, answers = level.kernel.advance(state, Delta(panes, level.latest(entered, clock)), clock)
            found = [to_frame(table) for table in answers]
            seconds += time.process_time() - began
            tables += found
            kept = max(kept, sum(c.table.num_rows for each in state.chunks.values() for c in each))
        return Outcome(seconds, answered(tables), {STATE_ROWS: float(kept)})


@dataclass(frozen=True)
class Buffered:
    """The greatest `v` by `k` in each extent of [RANGE range SLIDE slide], from the rows themselves."""

    range: int
    slide: int

    def run(self, batches: Sequence[Batch]) -> Outcome:
        """All batches."""
        kept: pl.DataFrame | None = None
        next_end: int | None = None
        tables: list[pl.DataFrame] = []
        most, began = 0, time.process_time()
        for batch in batches:
            ((_, rows),) = batch.rows.items()
            kept = rows if kept is None else pl.concat([kept, rows], rechunk=True)
            times = kept["ts"].to_numpy()
            if next_end is None:
                next_end = (int(times[0]) // self.slide + 1) * self.slide
            ends = np.arange(next_end, batch.clock + 1, self.slide)
            firsts, lasts = np.searchsorted(times, ends - self.range), np.searchsorted(times, ends)
            for end, first, last in zip(ends.tolist(), firsts.tolist(), lasts.tolist(), strict=True):
                extent = kept.slice(first, last - first).group_by("k").agg(pl.col("v").max().alias("m"))
                tables.append(extent.with_columns(pl.lit(end).alias("#at")))
            next_end = int(ends[-1]) + self.slide if len(ends) else next_end
            kept = kept.slice(int(np.searchsorted(times, next_end - self.range)))
            most = max(most, kept.height)
        return Outcome(time.process_time() - began, answered(tables), {STATE_ROWS: float(most)})


def scanned(batches: Sequence[Batch]) -> Outcome:
    """Nothing but reading: the sum of the values."""
    began = time.process_time()
    for batch in batches:
        for rows in batch.rows.values():
            rows["v"].sum()
    return Outcome(time.process_time() - began)


def answered(tables: Sequence[pl.DataFrame]) -> pl.LazyFrame:
    """Answers of one value per extent and key, in the columns that are compared."""
    columns = [
        pl.col("#at").alias("at"),
        pl.col("k"),
        pl.col("m"),
        pl.lit(0.0).alias("t"),
        pl.lit(1).alias("n"),
    ]
    empty = pl.DataFrame(schema=_ANSWER)
    found = [table.select(columns).cast(pl.Schema(_ANSWER)) for table in tables if table.height]
    return pl.concat([empty, *found]).lazy()


def readings(rows: int, keys: int, seed: int = 1) -> pl.DataFrame:
    """One row at each instant from 0 on, with random `k` and `v`."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "k": random.integers(0, keys, rows),
            "v": random.integers(0, 1_000_000_000, rows),
            "ts": np.arange(rows, dtype=np.int64),
        }
    )


def batches_of(rows: pl.DataFrame, size: int) -> list[Batch]:
    """The rows of a stream `s` with the instants 0, 1, … in batches of one size."""
    return [Batch({"s": rows.slice(n, size)}, n + size) for n in range(0, rows.height, size)]


def greatest_by_key(window: str) -> Emit:
    """The query that all of them answer."""
    text = f"SELECT RSTREAM(k, MAX(v) AS m) FROM s [{window}] GROUP BY k"
    return compile_query(text, declared({"s": "k BIGINT, v BIGINT, ts BIGINT"}, {}))
