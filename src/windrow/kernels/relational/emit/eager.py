"""Eager evaluation of periodic queries: results are found as rows come, and held until they begin.

A window with a SLIDE lets a row in at the end of its extent. Evaluated lazily, the join then meets all rows
of a period at once; eagerly, rows are joined when they arrive, so that a report is there when it falls due.

Card: results held
    requirements  rows whose intervals are known when they come
    time          new results, and those that begin
    space         the results of the reports to come
    source        Golab's thesis, 5.2 (Algorithm 2 for a query that is answered periodically)
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.kernels.relational.expiry_layouts import Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import VS, together
from windrow.kernels.state import Chunk, State

HELD = "held"
#: chunks are put together before there are more of them
MOST_CHUNKS = 32


class Held(Operator):
    """Pieces from the step on in which they begin."""

    name = "results held"

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = below.columns

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        begun = pl.col(VS) < stop
        found, kept = [inputs[0].filter(begun)], list[Chunk]()
        for chunk in state.of(HELD):
            if chunk.first >= stop:
                kept.append(chunk)
                continue
            frame = frame_of([chunk], self.columns)
            found.append(frame.filter(begun))
            kept += _by_beginning(frame.filter(~begun))
        if len(kept) >= MOST_CHUNKS:
            kept = list(_by_beginning(frame_of(kept, self.columns)))
        kept += _by_beginning(inputs[0].filter(~begun))
        return State({HELD: tuple(kept)}), together(found, self.columns)


def _by_beginning(frame: pl.DataFrame) -> Chunks:
    """One chunk that knows when the first of its rows begins."""
    return tuple(
        Chunk(int(frame[VS].min()), int(frame[VS].max()), chunk.table)  # type: ignore[arg-type]
        for chunk in chunks_of(frame)
    )
