"""Parts of plans that several queries have in common: what one query has computed, the others read.

Queries of a query group see the same rows and the same clock. Where the lower part of their plans is the
same, down to its windows, its pieces are the same in each step: the first query that comes to it runs it, and
whoever comes later takes what it found, with all that its windows told. A part has a name, under which its
state is kept for all of them.

A join over longer windows that slide alike has all results of one over shorter windows; they only stay
longer. So a query takes the pieces of such a join, and has them end *sooner*: where every window is longer by
the same time, by that time; else at the first end of their rows, whose instants the join then carries. What
queries aggregate of a part, they have computed once, too (`windrow.kernels.relational.aggregate.lifts`).

A query that asks less often has a join run at the slide of another one, and sees its results only at its own
instants; if it asks the same as the other, it has all in common with it, and only reports at its own.

Card: parts in common
    requirements  the same windows over the same streams, the same clock, rows routed alike; a part has all
                  windows of its query below it
    time          one run of the part for all queries that have it
    space         one state
    source        Golab's thesis, 8.3.3: equal sub-plans of different queries; 8.3.2, the generalised synopsis
                  of joins whose windows are not equally long
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.relational.aggregate.lifts import Lifts, ending
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, greatest_end
from windrow.kernels.relational.windows.leaf import Intervals

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.relational.operator import Operator, Step
    from windrow.kernels.state import State
    from windrow.windows.grid import SlideGrid


@dataclass(frozen=True)
class SubplanView:
    """How a query sees a part whose windows are longer, or move more often, than its own."""

    #: its rows end so many ticks sooner: all alike, or by those of each window of the join
    sooner: tuple[int, ...] = ()
    #: nothing changes for it but at these instants
    instants: tuple[SlideGrid, ...] = ()


@dataclass(frozen=True)
class SubplanStep:
    """What a part did in a step."""

    pieces: pl.DataFrame
    #: the states of the pieces, for whoever aggregates them
    lifts: Lifts
    #: the next states of its operators, by their places below its own
    states: Mapping[str, State]
    seconds: float
    slides: tuple[npt.NDArray[np.int64], ...]
    entered: tuple[pl.DataFrame, ...]
    last_end: int
    reports: pl.DataFrame | None
    first_report: int
    #: the same as queries see it, as far as it was asked for
    seen: dict[SubplanView, SubplanStep] = field(default_factory=dict)

    @classmethod
    def of(cls, pieces: pl.DataFrame, states: Mapping[str, State], seconds: float, step: Step) -> SubplanStep:
        """What was found in a step of its own."""
        told = tuple(step.slides), tuple(step.entered), step.last_end, step.reports, step.first_report
        return cls(pieces, Lifts(pieces), states, seconds, *told)

    def tell(self, step: Step) -> None:
        """Tell the root of another query what the windows of the part told."""
        step.slides += self.slides
        step.entered += self.entered
        step.last_end = max(step.last_end, self.last_end)
        step.reports, step.first_report = self.reports, self.first_report
        step.lifts = self.lifts

    def as_seen(self, view: SubplanView, join: Operator) -> SubplanStep:
        """The same as a query sees it."""
        if view == SubplanView():
            return self
        if view not in self.seen:
            self.seen[view] = self._ending(view.sooner, join)._sampled(view.instants)
        return self.seen[view]

    def _ending(self, sooner: tuple[int, ...], join: Operator) -> SubplanStep:
        if not sooner:
            return self
        by = sooner if len(sooner) > 1 else sooner * len(self.entered)
        entered = tuple(ending(frame, each) for frame, each in zip(self.entered, by, strict=True))
        last = max(map(greatest_end, entered), default=-FOREVER)
        if len(sooner) == 1:
            pieces, lifts = ending(self.pieces, *sooner), self.lifts.ending(*sooner)
        else:
            pieces = _ending_with_the_first(self.pieces, join, sooner)
            lifts = Lifts(pieces)
        return replace(self, pieces=pieces, lifts=lifts, entered=entered, last_end=last, seen={})

    def _sampled(self, instants: tuple[SlideGrid, ...]) -> SubplanStep:
        if not instants:
            return self
        pieces, entered = sampled(self.pieces, instants), tuple(sampled(e, instants) for e in self.entered)
        last = max(map(greatest_end, entered), default=-FOREVER)
        return replace(self, pieces=pieces, lifts=Lifts(pieces), entered=entered, last_end=last, seen={})


def sampled(pieces: pl.DataFrame, instants: tuple[SlideGrid, ...]) -> pl.DataFrame:
    """Pieces as they are for someone who looks at certain instants only, and sees nothing change between.

    >>> from windrow.windows.grid import SlideGrid
    >>> sampled(pl.DataFrame({VS: [2, 4, 5, 8], VE: [6, 6, 7, 9]}), (SlideGrid(4),)).rows()
    [(4, 8), (4, 8), (8, 12)]
    """
    for grid in instants:
        pieces = pieces.with_columns(_next(grid, pieces[VS]), _next(grid, pieces[VE]))
        pieces = pieces.filter(pl.col(VS) < pl.col(VE))
    return pieces


def _next(grid: SlideGrid, column: pl.Series) -> pl.Series:
    """The first instant of a grid at or after each moment."""
    moments = column.to_numpy()
    later = grid.origin - (grid.origin - moments) // grid.period * grid.period
    return pl.Series(column.name, np.where(np.abs(moments) < FOREVER, later, moments))


def _ending_with_the_first(pieces: pl.DataFrame, join: Operator, sooner: tuple[int, ...]) -> pl.DataFrame:
    """Results that end with the first of their rows, each of which ends so much sooner than in the join."""
    while len(join.inputs) == 1:
        (join,) = join.inputs
    ends = pieces[VE].to_numpy()
    for below, by in zip(join.inputs, sooner, strict=True):
        leaf = _leaf(below)
        instants = pieces[leaf.window.instants].cast(pl.Int64).to_numpy()
        ends = np.minimum(ends, leaf.spec.spans(instants)[1] - by)
    return pieces.with_columns(pl.Series(VE, ends)).filter(pl.col(VS) < pl.col(VE))


def _leaf(operator: Operator) -> Intervals:
    while not isinstance(operator, Intervals):
        (operator,) = operator.inputs
    return operator


@dataclass(frozen=True)
class Parts:
    """The parts of one query: their names by their places, and those that have run in this step; how it sees
    some of them; and when it reports, if that is not whenever its windows move."""

    names: Mapping[str, str] = field(default_factory=dict)
    done: dict[str, SubplanStep] = field(default_factory=dict)
    views: Mapping[str, SubplanView] = field(default_factory=dict)
    reports: tuple[SlideGrid, ...] = ()

    def part_of(self, path: str) -> str | None:
        """The place of the smallest part that an operator is in.

        >>> parts = Parts({"0.0": "γ", "0.0.0": "⋈"})
        >>> [parts.part_of(path) for path in ("0", "0.0", "0.0.0", "0.0.0.1")]
        [None, '0.0', '0.0.0', '0.0.0']
        """
        around = (place for place in self.names if f"{path}.".startswith(f"{place}."))
        return max(around, key=len, default=None)

    def states(self, path: str, after: Mapping[str, State]) -> dict[str, State]:
        """Of some states, those of the part at a place, without those of parts within it."""
        return {
            place.removeprefix(path): state for place, state in after.items() if self.part_of(place) == path
        }
