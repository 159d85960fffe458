"""Operators: each is a pure function from its state and what is new to its next state and its output.

    advance(state, inputs, step) -> (state', pieces)

State is Arrow tables in named chunks, and a few numbers (`windrow.kernels.state.State`): it can be written to
files after any step and read back before the next. An operator that is made of others keeps their states
under longer names.

Those without state are here, σ, π and ∪ ALL: they look at one row at a time, and leave its interval and its
sign alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.expressions import ColumnRef
from windrow.kernels.clock import Clock, Slice
from windrow.kernels.columnar.columns import hidden, polars_type
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.signed_rows import BOUNDS, FOREVER, Columns, blank, columns_of, without
from windrow.kernels.state import Chunk, State
from windrow.windows.domain import Ints

if TYPE_CHECKING:
    from windrow.algebra.operators import Filter, Project, Union, Unnest
    from windrow.kernels.relational.aggregate.by_expiry import Lifts
    from windrow.windows.spec import Grid


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
    slides: list[Ints] = field(default_factory=list)
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

    def stops(self, frame: pl.DataFrame, places: Mapping[str, str]) -> Ints | int:
        """Up to where each row is answered; by its source, if `places` names the column that holds it."""
        column = places.get(self.clock.column or "")
        if column is None:
            return self.slice.stop
        _, now = self.clock.of(frame[column])
        return np.where(now < FOREVER, now + self.slice.stop - self.slice.now, now)


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


def _hidden(below: Operator) -> Columns:
    """The columns that travel with rows."""
    return {n: d for n, d in below.columns.items() if n.startswith("#") and n not in BOUNDS}


class Filtered(Stateless):
    """σ."""

    name = "σ"

    def __init__(self, plan: Filter, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = without(below.columns, *BOUNDS)
        self.predicate = compile_expression(plan.predicate)

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        (frame,) = inputs
        passed = frame.filter(holds(self.predicate, frame)) if frame.height else frame
        return passed.select(list(self.columns))


class Projected(Stateless):
    """π, duplicates kept."""

    name = "π"

    def __init__(self, plan: Project, below: Operator) -> None:
        self.inputs = (below,)
        self.outputs = [(name, compile_expression(e), polars_type(e.type)) for name, e in plan.outputs]
        self.columns = {name: dtype for name, _, dtype in self.outputs} | _hidden(below)
        #: whether its columns are some of those below, and mean the same
        self.only_drops = all(isinstance(e, ColumnRef) and e.name == name for name, e in plan.outputs)

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        (frame,) = inputs
        if not frame.height:
            return blank(self.columns)
        columns = [evaluate(frame).cast(dtype).alias(name) for name, evaluate, dtype in self.outputs]
        return pl.DataFrame([*columns, *(frame[name] for name in hidden(frame))]).select(list(self.columns))


class Unnested(Stateless):
    """UNNEST: rows as often as their arrays have elements."""

    name = "unnest"

    def __init__(self, plan: Unnest, below: Operator) -> None:
        self.inputs = (below,)
        self.array = compile_expression(plan.array)
        self.plan = plan
        self.columns = columns_of(plan.schema, _hidden(below))

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        (frame,) = inputs
        if not frame.height:
            return blank(self.columns)
        plan = self.plan
        kind = polars_type(plan.array.type)
        arrays = self.array(frame).cast(kind)
        some = (arrays.list.len() > 0).fill_null(False)
        nothing = pl.Series([[None]], dtype=kind).new_from_index(0, frame.height)
        known = frame.with_columns(arrays.zip_with(some, nothing).alias("#array"), some.alias("#some"))
        known = known if plan.outer else known.filter(some)
        places = pl.int_ranges(pl.col("#array").list.len()).cast(pl.List(pl.Int32)).alias("#place")
        spread = known.with_columns(places).explode("#array", "#place")
        place = pl.when("#some").then("#place").alias("#place")
        spread = spread.with_columns(place)
        element = spread["#array"]
        names = [name for name, _ in plan.array.type.element.fields]
        parts = [element.struct.field(name) for name in names] if plan.spreads else [element]
        found = [part.alias(name) for name, part in zip(plan.names, parts, strict=True)]
        found += [spread["#place"].alias(plan.position)] if plan.position else []
        return spread.drop("#array", "#place", "#some").with_columns(found).select(list(self.columns))


class United(Stateless):
    """∪ ALL: columns are matched by place and take the first input's names."""

    name = "∪"

    def __init__(self, plan: Union, below: Sequence[Operator]) -> None:
        self.inputs = tuple(below)
        self.names = [part.schema.names for part in plan.inputs]
        self.columns = columns_of(plan.schema, {})
        for part in below:
            self.columns |= {name: dtype for name, dtype in part.columns.items() if name.startswith("#")}

    def apply(self, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame:
        first = self.names[0]
        frames = []
        for names, frame in zip(self.names, inputs, strict=True):
            if frame.height:
                columns = [frame[a].cast(self.columns[b]).alias(b) for a, b in zip(names, first, strict=True)]
                frames.append(self._with_hidden(pl.DataFrame([*columns, *(frame[h] for h in hidden(frame))])))
        return signed.together(frames, self.columns)

    def _with_hidden(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A row of an input that counts no arrivals has no turn, one of another branch no such part."""
        missing = {name: FOREVER if name.startswith(signed.STAYS) else 0 for name in self.columns}
        return frame.with_columns(
            pl.lit(value).cast(self.columns[name]).alias(name)
            for name, value in missing.items()
            if name not in frame.columns
        )
