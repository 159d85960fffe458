"""n-way ⋈: new rows of each input meet the rows of all others; no intermediate result is kept.

Card: semi-naive join
    requirements  pieces; any predicate, equalities are hashed
    time          for each input with news: its new rows probe the others' states, in an order where each is
                  linked to what is there by an equality, if there is one
    space         the pieces of each input that are alive
    source        Golab's thesis, 5.2 (Algorithms 2 and 3: eager multi-way join); pairs of intervals intersect

With Δ for what is new, the step adds Δ1 ⋈ R2 ⋈ … ∪ (R1 + Δ1) ⋈ Δ2 ⋈ R3 … ∪ …: every combination with
something new, once. What is kept has no beginning: it lies before everything new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.general.layouts import Layout, frame_of
from windrow.kernels.general.matching import Condition, keyed, meet, satisfying
from windrow.kernels.general.operator import Operator, Step
from windrow.kernels.general.pieces import (
    FOREVER,
    SIGNED,
    TURN,
    VE,
    VS,
    Columns,
    blank,
    together,
)
from windrow.kernels.state import State

if TYPE_CHECKING:
    from windrow.kernels.general.strategies import Choice


class Joined(Operator):
    """⋈ of any number of inputs."""

    name = "⋈"

    def __init__(
        self, below: Sequence[Operator], predicate: Expression, names: Sequence[Sequence[str]], choice: Choice
    ) -> None:
        self.inputs = tuple(below)
        self.layouts: list[Layout] = [choice.layout(part) for part in below]
        self.condition = Condition(predicate, names)
        self.sides: list[Columns] = [
            {n: d for n, d in part.columns.items() if n not in (VS, TURN)} for part in below
        ]
        values = {n: d for part in below for n, d in part.columns.items() if n not in (*SIGNED, TURN)}
        self.columns = values | dict(SIGNED)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        old = [frame_of(state.of(str(i)), side) for i, side in enumerate(self.sides)]
        found = [self._probed(i, inputs, old) for i, new in enumerate(inputs) if new.height]
        chunks = {}
        for i, (layout, side) in enumerate(zip(self.layouts, self.sides, strict=True)):
            kept = layout.forget(state.of(str(i)), step.slice.floor)
            new = inputs[i].select(list(side)).filter(pl.col(VE) > step.slice.floor)
            chunks[str(i)] = layout.add(kept, new)
        return State(chunks), together(found, self.columns)

    def _probed(
        self, origin: int, inputs: Sequence[pl.DataFrame], old: Sequence[pl.DataFrame]
    ) -> pl.DataFrame:
        """Results with new rows of one input: with all rows of those before it, old ones of those after."""
        found = _without_turn(inputs[origin])
        done = {origin}
        found = self._tested(found, done, set())
        while len(done) < len(inputs):
            place = self._next(done)
            other = _begun(old[place])
            if place < origin and inputs[place].height:
                new = _without_turn(inputs[place])
                other = together([other, new.select(other.columns)], _typed(other))
            if not found.height or not other.height:
                return blank(self.columns)
            found = self._paired(found, other, done, place)
            tested = set(done)
            done.add(place)
            found = self._tested(found, done, tested)
        if self.condition.late is not None:
            found = satisfying(found, self.condition.late)
        return found.select(list(self.columns))

    def _next(self, done: set[int]) -> int:
        """The first input that an equality links to what is there; else the first one."""
        left = [place for place in range(len(self.inputs)) if place not in done]
        linked = [place for place in left if self._links(done, place)]
        return (linked or left)[0]

    def _links(self, done: set[int], place: int) -> list[tuple[Expression, Expression]]:
        """(what is there, the input's) of each equality between the two."""
        found = []
        for equality in self.condition.equalities:
            a, b = equality.homes
            if place in (a, b) and (a if b == place else b) in done:
                found.append((equality.side(a if b == place else b), equality.side(place)))
        return found

    def _paired(self, found: pl.DataFrame, other: pl.DataFrame, done: set[int], place: int) -> pl.DataFrame:
        links = self._links(done, place)
        keys = [f"#key{i}" for i in range(len(links))]
        left = keyed(found, [mine for mine, _ in links])
        right = keyed(other, [theirs for _, theirs in links])
        return meet(left, right, keys).drop(keys)

    def _tested(self, frame: pl.DataFrame, done: set[int], before: set[int]) -> pl.DataFrame:
        """Without the rows that fail a test which could not be made before and cannot raise an error."""
        for test in self.condition.early:
            homes = self.condition.homes(test)
            if homes <= done and (not homes <= before or not before):
                frame = satisfying(frame, test)
        return frame


def _without_turn(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(TURN) if TURN in frame.columns else frame


def _begun(frame: pl.DataFrame) -> pl.DataFrame:
    """What was there before the step."""
    return frame.with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))


def _typed(frame: pl.DataFrame) -> Columns:
    return dict(frame.schema)
