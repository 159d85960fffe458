"""Parts of plans that several queries have in common: what one query has computed, the others read.

Queries of a team see the same rows and the same clock. Where the lower part of their plans is the same, down
to its windows, its pieces are the same in each step: the first query that comes to it runs it, and whoever
comes later takes what it found, with all that its windows told. A part has a name, under which its state is
kept for all of them.

A join over longer windows has all results of one over shorter windows: where every window is longer by the
same time, and slides alike, each result only stays longer by that time. So a query takes the pieces of such a
join, and has them end *sooner*. What queries aggregate of a part, they have computed once, too
(`windrow.kernels.general.lifts`).

Card: parts in common
    requirements  the same windows over the same streams, the same clock, rows routed alike; a part has all
                  windows of its query below it
    time          one run of the part for all queries that have it
    space         one state
    source        Golab's thesis, 8.3.3: equal sub-plans of different queries
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.general.lifts import Lifts, ending
from windrow.kernels.general.pieces import FOREVER, greatest_end

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from windrow.kernels.general.operator import Step
    from windrow.kernels.state import State


@dataclass(frozen=True)
class Part:
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

    @classmethod
    def of(cls, pieces: pl.DataFrame, states: Mapping[str, State], seconds: float, step: Step) -> Part:
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

    def ending(self, sooner: int) -> Part:
        """The same over windows that are shorter by so many ticks."""
        if not sooner:
            return self
        entered = tuple(ending(frame, sooner) for frame in self.entered)
        last = max(map(greatest_end, entered), default=-FOREVER)
        pieces, lifts = ending(self.pieces, sooner), self.lifts.ending(sooner)
        return replace(self, pieces=pieces, lifts=lifts, entered=entered, last_end=last)


@dataclass(frozen=True)
class Parts:
    """The parts of one query: their names by their places, and those that have run in this step; and how much
    sooner than theirs its own pieces end."""

    names: Mapping[str, str] = field(default_factory=dict)
    done: dict[str, Part] = field(default_factory=dict)
    sooner: Mapping[str, int] = field(default_factory=dict)

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
