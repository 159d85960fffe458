"""Measures: where each aggregate of a γ finds its state, and the tables of states a query keeps.

Equal states are kept once: SUM(v), AVG(v) and their FILTERs share a partial if argument and condition are
the same; MEDIAN(v), MODE(v) and COUNT(DISTINCT v) share one table of values and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.algebra.aggregates import Size, make
from windrow.algebra.expressions import TRUE, Expression
from windrow.kernels.columns import without_negative_zero
from windrow.kernels.expressions import can_fail, compile_expression, holds
from windrow.kernels.functions.base import Compiled
from windrow.kernels.layout import PANE, ROWS, Layout
from windrow.kernels.partials import Partial, Rows
from windrow.kernels.registry import partial_of

if TYPE_CHECKING:
    from windrow.algebra.aggregates import Aggregate as Algebra
    from windrow.algebra.operators import Aggregate, AggregateCall
    from windrow.algebra.types import DataType

GROUPS = "groups"


@dataclass(frozen=True)
class Argument:
    """The argument values of an aggregate, for the rows its FILTER lets through."""

    args: tuple[Expression, ...]
    where: Expression

    def rows(self, frame: pl.DataFrame, order: pl.DataFrame) -> Rows:
        """Its values for a frame; rows that are not chosen are not computed where that could fail."""
        everyone = pl.Series([True]).new_from_index(0, frame.height)
        chosen = everyone if self.where == TRUE else holds(compile_expression(self.where), frame)
        args = tuple(
            Compiled(compile_expression(arg), can_fail(arg)).within(frame, chosen) for arg in self.args
        )
        return Rows(args, chosen, order)


@dataclass(frozen=True)
class Measure:
    """One aggregate: its algebra, the table its state is in, and its partial there, if it has one."""

    name: str
    aggregate: Algebra
    table: str
    partial: Partial | None
    kind: DataType


@dataclass
class Measures:
    """All aggregates of a γ, and the tables of states they need."""

    plan: Aggregate
    measures: list[Measure] = field(default_factory=list)
    layouts: dict[str, Layout] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = tuple(f"k{place}" for place in range(len(self.plan.keys)))
        self._partials: dict[Any, Partial] = {}
        self._sources: dict[str, Argument] = {}
        for name, call in self.plan.aggregates:
            self.measures.append(self._measure(name, call))
        groups = Layout(self.keys, (ROWS, *self._partials.values()))
        self.layouts = {GROUPS: groups} | {name: self._counting(name) for name in self._value_tables}

    def _measure(self, name: str, call: AggregateCall) -> Measure:
        types = tuple(arg.type for arg in call.args)
        aggregate = make(call.function, call.params, distinct=call.distinct, types=types)
        source = Argument(call.args, call.where)
        if aggregate.size is Size.HOLISTIC:
            return Measure(name, aggregate, self._values(source), None, call.data_type)
        shape = partial_of(aggregate, "")
        label = f"p{len(self._partials)}"
        partial = self._partials.setdefault((shape, source), partial_of(aggregate, label))
        self._sources.setdefault(partial.label, source)
        return Measure(name, aggregate, GROUPS, partial, call.data_type)

    def _values(self, source: Argument) -> str:
        for name, known in self._sources.items():
            if known == source and name.startswith("values"):
                return name
        name = f"values{len(self._value_tables)}"
        self._sources[name] = source
        return name

    @property
    def _value_tables(self) -> list[str]:
        return [name for name in self._sources if name.startswith("values")]

    def _counting(self, table: str) -> Layout:
        values = tuple(f"v{place}" for place in range(len(self._sources[table].args)))
        return Layout(self.keys + values)

    def tables(self, frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows, each with its pane, as tables of states: one row per pane and group (and value)."""
        order = frame.select(pl.col("#t"), *map(pl.col, self.plan.input.schema.names))
        keys = [
            without_negative_zero(compile_expression(key)(frame)).alias(name)
            for name, (_, key) in zip(self.keys, self.plan.keys, strict=True)
        ]
        known = [frame["#pane"].alias(PANE), *keys, pl.Series("rows.0", [1]).new_from_index(0, frame.height)]
        groups = [*known]
        tables: dict[str, pl.DataFrame] = {}
        for partial in self._partials.values():
            groups += partial.lift(self._sources[partial.label].rows(frame, order))
        for table in self._value_tables:
            tables[table] = self._value_rows(table, frame, order, known)
        tables = {GROUPS: pl.DataFrame(groups)} | tables
        return {
            name: layout.merge(tables[name], [PANE, *layout.keys]) for name, layout in self.layouts.items()
        }

    def _value_rows(
        self, table: str, frame: pl.DataFrame, order: pl.DataFrame, known: list[pl.Series]
    ) -> pl.DataFrame:
        rows = self._sources[table].rows(frame, order)
        values = [without_negative_zero(arg).alias(f"v{place}") for place, arg in enumerate(rows.args)]
        return pl.DataFrame([*known[:-1], *values, known[-1]]).filter(rows.counted)
