"""An aggregate of one column over sliding windows, by its kernel alone: pane after pane, without Spark.

Times are those of lifting the rows of a pane, of moving the window on, and of its answer: seconds of the
processor, all threads together, which other work on the machine does not lengthen. State is what is kept
after the last pane.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from windrow.algebra.plan import Emit
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.state import Delta, State
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query, declare_stream
from windrow.windows.domain import INFINITY

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PaneRun:
    """What a run came to: the answer is that of the last window."""

    seconds: float
    state_bytes: int
    state_rows: int
    answer: Any


def query(aggregate: str, panes: int) -> Emit:
    """An aggregate of `x` over windows of so many panes of one instant each."""
    catalog = Catalog()
    catalog.add(declare_stream("s", "x BIGINT, ts BIGINT"))
    return compile_query(f"SELECT {aggregate} AS answer FROM s [RANGE {panes} SLIDE 1]", catalog)


def run_panes(emit: Emit, panes: Sequence[Ints]) -> PaneRun:
    """All panes in turn, one instant each; every window is answered.

    >>> found = run_panes(query("COUNT(DISTINCT x)", 2), [np.array([1, 1, 2]), np.array([2, 3])])
    >>> found.answer, found.state_rows  # counts of two panes; of the group also their sum
    (3, 7)
    """
    program = PaneProgram(emit)
    level, state = program.bottom, State()
    answers: list[pl.DataFrame] = []
    began = time.process_time()
    for number, values in enumerate(panes):
        clock = PaneClock(number if number else -INFINITY, number + 1)
        rows = level.scanned(_accepted(values, number))
        tables = {name: frame.to_arrow() for name, frame in level.tables(rows).items()}
        state, found = level.kernel.advance(state, Delta(tables, level.latest(rows, clock)), clock)
        answers = [to_frame(table) for table in found]
    seconds = time.process_time() - began
    tables_kept = [chunk.table for chunks in state.chunks.values() for chunk in chunks]
    answer = pl.concat(answers)["answer"][-1]
    return PaneRun(
        seconds,
        sum(table.nbytes for table in tables_kept),
        sum(table.num_rows for table in tables_kept),
        answer.to_list() if isinstance(answer, pl.Series) else answer,
    )


def _accepted(values: Ints, instant: int) -> pl.DataFrame:
    places = np.arange(len(values))
    moments = pl.Series([instant]).new_from_index(0, len(values))
    return pl.DataFrame(
        [
            pl.Series("x", values),
            moments.alias("ts"),
            pl.Series("#row_num", places),
            moments.alias("#arrival_ts"),
        ]
    )
