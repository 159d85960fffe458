"""What an operator is: a pure function from its state and what is new to its next state and its output.

    advance(state, inputs, step) -> (state', pieces)

State is Arrow tables in named chunks, and a few numbers (`windrow.kernels.state.State`): it can be written to
files after any step and read back before the next. An operator that is made of others keeps their states
under longer names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.clock import Clock, Slice
from windrow.kernels.relational.signed_rows import FOREVER, Columns
from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.relational.aggregate.lifts import Lifts
    from windrow.windows.grid import Grid


@dataclass
class Step:
    """What all operators of a query know of a step, and what windows tell the root.

    `rows` are the accepted rows of each stream, `changes` those of each table. `slides` are the instants at
    which rows moved a window, `last_end` is the greatest finite endpoint of any interval.
    """

    clock: Clock
    slice: Slice
    rows: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    changes: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    slides: list[npt.NDArray[np.int64]] = field(default_factory=list)
    last_end: int = -FOREVER
    #: after the end of input: up to where bounds of extents are asked for
    until: int = -FOREVER
    #: `at`, `start` and `end` of the reports of this step, in order, where extents are reported by themselves
    reports: pl.DataFrame | None = None
    first_report: int = 0
    #: when rows come into the windows of the query, and leave them
    entered: list[pl.DataFrame] = field(default_factory=list)
    #: the instants at which the root reports, where these are not all at which windows move
    grids: tuple[Grid, ...] = ()
    #: the states of the pieces that the operator which is run is given, where queries have them in common
    lifts: Lifts | None = None


class Operator(ABC):
    """A node of a physical plan. `columns` are those of its output."""

    columns: Columns
    inputs: tuple[Operator, ...] = ()
    #: what people call it
    name: str = ""

    @abstractmethod
    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        """The next state, and the pieces that the step adds to the operator's result."""


class Stateless(Operator):
    """An operator that looks at each row by itself."""

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        return state, self.apply(inputs)

    @abstractmethod
    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The pieces made of the inputs' new pieces."""


def part(state: State, name: str) -> State:
    """The state of one part of a composed operator."""
    prefix = f"{name}/"
    return State(
        {key.removeprefix(prefix): chunks for key, chunks in state.chunks.items() if key.startswith(prefix)},
        {key.removeprefix(prefix): value for key, value in state.meta.items() if key.startswith(prefix)},
    )


def composed(parts: Mapping[str, State]) -> State:
    """The states of the parts as one.

    >>> part(composed({"left": State({}, {"count": 3})}), "left").meta
    {'count': 3}
    """
    chunks: dict[str, tuple[Chunk, ...]] = {}
    meta: dict[str, int] = {}
    for name, state in parts.items():
        chunks |= {f"{name}/{key}": value for key, value in state.chunks.items()}
        meta |= {f"{name}/{key}": value for key, value in state.meta.items()}
    return State(chunks, meta)
