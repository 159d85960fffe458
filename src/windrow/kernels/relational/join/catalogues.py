"""⋈ over count-based windows by catalogues: the row that leaves a window names the results that go with it.

Which part of a result leaves first cannot be told, since the windows count by themselves. So a result carries
the number of each of its rows: every window has a catalogue of results by the numbers of its rows, in whose
order these expire. A row that leaves looks up its results there, instead of finding its partners anew.

Card: catalogues of results
    requirements  inputs are windows, through σ and π at most; each row that expires unpredictably is numbered
    time          new rows as in ⋈; expired rows: a search by number in the results
    space         the pieces of each input, and the results alive
    source        Patroumpas and Sellis 2011, 4.2 (joins over physical windows); Golab's thesis, 5.2.2 (a row
                  that is taken away gets its end, and is dropped after the step)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.relational.expiry_layouts import Chunks, Fifo, chunks_of, frame_of
from windrow.kernels.relational.join.multiway import Joined, order_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, ID, VE, VS, Columns, N, blank, negated, together
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.kernels.relational.options import Choice

RESULTS, END = "results", "#end"


class Catalogued(Joined):
    """⋈ whose results are kept until a row of theirs leaves."""

    name = "⋈, catalogued"

    def __init__(
        self, below: Sequence[Operator], predicate: Expression, names: Sequence[Sequence[str]], choice: Choice
    ) -> None:
        super().__init__(below, predicate, names, choice)
        #: the column that numbers the rows of each input; None if they say when they leave
        self.ids = [next((n for n in part.columns if n.startswith(ID)), None) for part in below]
        self.layouts = [
            layout if id_ is None else Fifo() for layout, id_ in zip(self.layouts, self.ids, strict=True)
        ]
        self.columns = {n: d for n, d in self.made.items() if n not in self.ids}
        self.kept: Columns = {n: d for n, d in self.made.items() if n != VS}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        came, left = zip(*(self._split(i, frame) for i, frame in enumerate(inputs)), strict=True)
        old = [
            self._closed(i, frame_of(state.of(str(i)), side), left[i]) for i, side in enumerate(self.sides)
        ]
        found = self.found(came, old, order_of(state.meta, len(old)))
        results, over = self._looked_up(state.of(RESULTS), left)
        floor = step.slice.floor
        lasting = found.filter(pl.col(VE) > floor).select(list(self.kept))
        chunks = {RESULTS: Fifo().add(Fifo().forget(results, floor), lasting)}
        for i, (layout, side) in enumerate(zip(self.layouts, self.sides, strict=True)):
            kept = state.of(str(i))
            if left[i].height:
                kept = chunks_of(old[i].filter(pl.col(VE) > floor))
            kept = self.expiry.left(layout, kept, state.meta, floor, side)
            chunks[str(i)] = layout.add(kept, came[i].select(list(side)).filter(pl.col(VE) > floor))
        meta = {**self.expiry.after(state.meta, floor), **self.watched(state, came, old, step)}
        return State(chunks, meta), together([found, over], self.columns)

    def _split(self, place: int, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """New rows, and the numbers of those that leave, with when they do."""
        id_ = self.ids[place]
        if id_ is None:
            return frame, pl.DataFrame()
        gone = frame[N] < 0
        return frame.filter(~gone), frame.filter(gone).select(id_, pl.col(VS).alias(END))

    def _closed(self, place: int, old: pl.DataFrame, left: pl.DataFrame) -> pl.DataFrame:
        """The rows of an input as they are in this step: those that leave have an end."""
        id_ = self.ids[place]
        if id_ is None or not left.height or not old.height:
            return old
        return self._ending(old, id_, left).with_columns(pl.min_horizontal(VE, END).alias(VE)).drop(END)

    @staticmethod
    def _ending(rows: pl.DataFrame, id_: str, left: pl.DataFrame) -> pl.DataFrame:
        return rows.join(left, on=id_, how="left", maintain_order="left").with_columns(
            pl.col(END).fill_null(FOREVER)
        )

    def _looked_up(self, chunks: Chunks, left: Sequence[pl.DataFrame]) -> tuple[Chunks, pl.DataFrame]:
        """The results that stay, and negative rows for those of which a part leaves."""
        leaving = {id_: gone for id_, gone in zip(self.ids, left, strict=True) if id_ and gone.height}
        if not leaving:
            return chunks, blank(self.made)
        spans = [pl.col(id_).is_between(gone[id_].min(), gone[id_].max()) for id_, gone in leaving.items()]
        stay: list[Chunks] = []
        over: list[pl.DataFrame] = []
        for chunk in chunks:
            frame = to_frame(chunk.table)
            near = frame.select(pl.any_horizontal(spans)).to_series()
            if not near.any():
                stay.append((chunk,))
                continue
            ended = self._first_end(frame.filter(near), leaving)
            touched = ended[END] < ended[VE]
            over.append(ended.filter(touched).with_columns(pl.col(END).alias(VS)))
            rest = pl.concat([frame.filter(~near), ended.filter(~touched).select(frame.columns)])
            stay.append(chunks_of(rest))
        return tuple(chunk for part in stay for chunk in part), negated(together(over, self.made))

    def _first_end(self, frame: pl.DataFrame, leaving: dict[str, pl.DataFrame]) -> pl.DataFrame:
        """Results with the instant at which the first of their parts leaves."""
        ends = [
            self._ending(frame.select(id_), id_, gone)[END].alias(f"{END}{place}")
            for place, (id_, gone) in enumerate(leaving.items())
        ]
        found = frame.with_columns(ends)
        names = [column.name for column in ends]
        return found.with_columns(pl.min_horizontal(names).alias(END)).drop(names)
