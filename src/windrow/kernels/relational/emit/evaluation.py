"""Eager evaluation of periodic queries: results are found as rows come, and held until they begin.

A window with a SLIDE lets a row in at the end of its extent. Evaluated lazily, the join then meets all rows
of a period at once; eagerly, rows are joined when they arrive, so that a report is there when it falls due.

Card: results held
    requirements  rows whose intervals are known when they come
    time          new results, and those that begin
    space         the results of the reports to come
    source        Golab's thesis, 5.2 (Algorithm 2 for a query that is answered periodically)

Lazy evaluation: rows of a periodic query wait until a report is due, and are then looked at all at once.

Answers do not depend on the cut into micro-batches, so nothing is lost or gained by making one step of many;
with RESTORE, results that come and go between two refreshes are found in it as well.

Card: rows waiting
    requirements  every window slides along the attribute; what a step brings says itself how late it is
    time          an arrival is put away; each re-evaluation is one step
    space         the rows since the last report
    source        Golab's thesis, 5.2.2 (Algorithms 4 and 5: lazy multi-way join, new rows taken in groups)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.operators import TableJoin
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.relational.expiry_layouts import Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.options import Evaluation, Options
from windrow.kernels.relational.signed_rows import FOREVER, VS, together
from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.clock import Clock
    from windrow.windows.grid import Grid


HELD = "held"
#: chunks are put together before there are more of them
MOST_CHUNKS = 32


class HeldRows(Operator):
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


#: where the rows are, besides the states of operators
WAITING = "waiting"
#: how far answers were computed
RAN = "ran"


def why_not_lazy(emit: Emit, options: Options, sources: Mapping[str, Sequence[str]]) -> str | None:
    """Why a query is evaluated step by step; None if it waits for its reports."""
    if options.evaluation is Evaluation.EAGER:
        return "as asked for"
    if not emit.is_periodic:
        return "every instant is answered"
    if any(leaf.spec.grid is None for leaf in emit.leaves):
        return "rows move a window, so each may be due to report"
    if any(isinstance(node, TableJoin) for node in emit.walk()):
        return "tables change between reports"
    if any(leaf.keeps_late_rows for leaf in emit.leaves):
        return "late rows show between reports"
    return "groups become final one by one" if any(sources.values()) else None


def is_due(grids: Sequence[Grid], state: State, clock: Clock) -> bool:
    """Whether a report lies between what was computed and what is known."""
    if clock.now >= FOREVER or clock.now <= -FOREVER:
        return clock.now >= FOREVER
    before = state.meta.get(RAN, -FOREVER)
    if before <= -FOREVER:
        return True
    return any(grid.first_after(before) <= clock.now for grid in grids)


def put_away(state: State, rows: Mapping[str, pl.DataFrame]) -> State:
    """With the rows of a step."""
    chunks = dict(state.chunks)
    for name, frame in rows.items():
        if frame.height:
            chunks[name] = (*chunks.get(name, ()), Chunk(0, 0, frame.to_arrow()))
    return State(chunks, state.meta)


def taken(state: State, rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """All rows that waited, and those of the step."""
    found = {name: [to_frame(chunk.table) for chunk in chunks] for name, chunks in state.chunks.items()}
    for name, frame in rows.items():
        found.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in found.items()}


def since(clock: Clock, state: State) -> Clock:
    """The clock as it moves from the last re-evaluation on."""
    return replace(clock, before=state.meta.get(RAN, clock.before))
