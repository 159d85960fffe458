"""Measures: where each aggregate of a γ finds its state, and the tables of states a query keeps.

Equal states are kept once: SUM(v), AVG(v) and their FILTERs share a partial if argument and condition are the
same; MEDIAN(v), MODE(v) and COUNT(DISTINCT v) share one table of values and counts, quantiles of one error
one table of buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra import TRUE, DataType, Expression, aggregates as agg
from windrow.algebra.aggregates import approx_count, user
from windrow.algebra.operators import Aggregate, AggregateCall
from windrow.errors import QueryError
from windrow.kernels.aggregates import partials, value_tables
from windrow.kernels.columnar import columns, expressions
from windrow.kernels.columnar.combiners import TOTAL
from windrow.kernels.columnar.functions.base import Compiled
from windrow.kernels.state import PANE, ROWS, TableLayout
from windrow.windows import Ints, sub_windows_of


def marks(last: Ints, gone: Ints, most: int) -> tuple[Ints, Ints]:
    """The greatest mark up to `gone`, and the least mark after it (or `last` + 1 if there is none).

    Of the multiples of each power of two up to `last`, the greatest `most` are marked, and unit 1. Up to
    `gone` it is a multiple of 2^l for the least l whose marks reach back that far; after it, one of those or
    the first mark of 2^(l−1).

    >>> [found.tolist() for found in marks(np.array([20, 20, 20, 4]), np.array([3, 17, 20, 0]), 4)]
    [[1, 17, 20, 0], [8, 18, 21, 1]]
    """
    level = np.zeros(len(last), dtype=np.int64)
    low, high = np.empty_like(last), np.full(len(last), np.iinfo(np.int64).max)
    open_ = np.arange(len(last))
    while len(open_):
        bits = level[open_]
        first = ((last[open_] >> bits) - most + 1) << bits
        reached = first <= gone[open_]
        done = open_[reached]
        low[done] = (gone[done] >> level[done]) << level[done]
        high[done] = np.minimum(high[done], low[done] + (np.int64(1) << level[done]))
        open_ = open_[~reached]
        high[open_] = first[~reached]
        level[open_] += 1
    return np.where(gone > 0, np.maximum(low, 1), 0), np.where(
        (gone == 0) & (last > 0), 1, np.minimum(high, last + 1)
    )


@dataclass(frozen=True)
class WavePartial(partials.Partial):
    """A count or sum that is estimated (`windrow.algebra.aggregates.approx_count`): of each row whether it
    counts, and its units."""

    most: int
    counts: bool

    #: of the two columns of single rows; rows are kept, not combined
    combiners = (TOTAL, TOTAL)

    def lift(self, rows: partials.LiftedRows) -> list[pl.Series]:
        counted = rows.counted
        units = counted.cast(pl.Int64)
        if not self.counts:
            values = rows.args[0].cast(pl.Int64).fill_null(0)
            units = units * values
            if len(units) and int(units.min()) < 0:  # type: ignore[arg-type]
                raise approx_count.refuse_negative(int(units.min()))  # type: ignore[arg-type]
        return [counted.cast(pl.Int64).alias(self._name(0)), units.alias(self._name(1))]


def partial_of(aggregate: agg.AggregateFunction, label: str) -> partials.Partial:
    """The partial of an aggregate that is bound to its types: by the class that declares its state, so AVG
    has SUM's, and ANY_VALUE has MIN's.

    >>> from windrow.algebra.aggregates import make
    >>> from windrow.algebra.types import BIGINT, DOUBLE
    >>> [type(partial_of(make("avg", types=(t,)), "p")).__name__ for t in (BIGINT, DOUBLE)]
    ['ExactTotal', 'FloatTotal']
    """
    match aggregate:
        case approx_count.Waved():
            return WavePartial(label, aggregate.marks, isinstance(aggregate, agg.ApproxCount))
        case agg.Count():
            return partials.CountPartial(label)
        case agg.Sum() | agg.VarPop() if aggregate.invertible:
            squared = isinstance(aggregate, agg.VarPop)
            return partials.ExactTotal(label, value_tables.only_type(aggregate), squared)
        case agg.Sum():
            return partials.FloatTotal(label)
        case agg.VarPop():
            return partials.FloatMoments(label)
        case agg.CovarPop():
            return partials.Paired(label)
        case agg.Min():
            return partials.Extreme(label, isinstance(aggregate, agg.Max))
        case agg.MinBy():
            return partials.Chosen(label, isinstance(aggregate, agg.MaxBy))
        case agg.First():
            return partials.Edge(label, isinstance(aggregate, agg.Last))
        case agg.BitOr():
            return partials.Bits(label, aggregate.name)
        case user.MergedAggregate():
            return partials.UserState(label, aggregate.definition, aggregate.types or ())
    raise QueryError(f"{aggregate!r} has no form on columns", code="unsupported")


GROUPS = "groups"
#: where a row is in its window, if that is not its instant
PLACE = "#where"


@dataclass(frozen=True)
class Argument:
    """The argument values of an aggregate, for the rows its FILTER lets through."""

    args: tuple[Expression, ...]
    where: Expression

    def rows(
        self, frame: pl.DataFrame, order: pl.DataFrame, sub_windows: pl.Series | None = None
    ) -> partials.LiftedRows:
        """Its values for a frame; rows that are not chosen are not computed where that could fail."""
        everyone = pl.Series([True]).new_from_index(0, frame.height)
        chosen = (
            everyone
            if self.where == TRUE
            else expressions.holds(expressions.compile_expression(self.where), frame)
        )
        args = tuple(
            Compiled(expressions.compile_expression(arg), expressions.can_fail(arg)).within(frame, chosen)
            for arg in self.args
        )
        return partials.LiftedRows(args, chosen, order, sub_windows)


@dataclass(frozen=True)
class Measure:
    """One aggregate: its algebra, the table its state is in, and its partial there, if it has one."""

    name: str
    aggregate: agg.AggregateFunction
    table: str
    partial: partials.Partial | None
    kind: DataType


class Measures:
    """All aggregates of a γ, and the tables of states they need."""

    def __init__(self, plan: Aggregate) -> None:
        self.plan = plan
        self.keys = tuple(f"k{place}" for place in range(len(self.plan.keys)))
        self._partials: dict[Any, partials.Partial] = {}
        self._sources: dict[str, Argument] = {}
        self._cells: dict[tuple[Argument, value_tables.Cells], str] = {}
        self.measures = [self._measure(name, call) for name, call in self.plan.aggregates]
        groups = TableLayout(self.keys, (ROWS, *self._partials.values()))
        self.layouts = {GROUPS: groups}
        for (source, cells), name in self._cells.items():
            order = 1 + len(self.plan.input.schema) if isinstance(cells, value_tables.OrderedRows) else 0
            self.layouts[name] = value_tables.layout_of(cells, self.keys, len(source.args) + order)

    def _measure(self, name: str, call: AggregateCall) -> Measure:
        types = tuple(arg.type for arg in call.args)
        aggregate = agg.make(call.function, call.params, distinct=call.distinct, types=types)
        source = Argument(call.args, call.where)
        cells = value_tables.cells_of(aggregate)
        if cells is not None:
            table = self._cells.setdefault((source, cells), f"values{len(self._cells)}")
            return Measure(name, aggregate, table, None, call.data_type)
        shape = partial_of(aggregate, "")
        label = f"p{len(self._partials)}"
        partial = self._partials.setdefault((shape, source), partial_of(aggregate, label))
        self._sources.setdefault(partial.label, source)
        return Measure(name, aggregate, GROUPS, partial, call.data_type)

    def _sub_windows(self, frame: pl.DataFrame) -> pl.Series | None:
        """The sub-windows of rows, where they matter: by their places, else by their instants."""
        if not any(isinstance(cells, value_tables.Listed) for _, cells in self._cells):
            return None
        cut = sub_windows_of(self.plan.leaves[0].spec)
        assert cut is not None
        places = frame[PLACE if PLACE in frame.columns else "#t"].to_numpy()
        return pl.Series(cut.number(places))

    @property
    def counts_values(self) -> bool:
        """Whether there are tables of cells, all of them of counts that can be subtracted."""
        cells = [cells for _, cells in self._cells]
        return bool(cells) and all(each.subtracts for each in cells)

    def argument_of(self, partial: partials.Partial) -> tuple[tuple[Expression, ...], Expression]:
        """The arguments that a partial is lifted from, and the condition on rows to count."""
        source = self._sources[partial.label]
        return source.args, source.where

    def cells_in(self, table: str) -> tuple[value_tables.Cells, tuple[Expression, ...], Expression]:
        """The cells of a table, their arguments, and the condition on rows to count."""
        source, cells = next(key for key, name in self._cells.items() if name == table)
        return cells, source.args, source.where

    def tables(self, frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows, each with its pane, as tables of states: one row per pane and group (and value)."""
        order = frame.select(pl.col("#t"), *map(pl.col, self.plan.input.schema.names))
        keys = [
            columns.without_negative_zero(expressions.compile_expression(key)(frame)).alias(name)
            for name, (_, key) in zip(self.keys, self.plan.keys, strict=True)
        ]
        known = [frame["#pane"].alias(PANE), *keys]
        groups = [*known, pl.Series("rows.0", [1]).new_from_index(0, frame.height)]
        for partial in self._partials.values():
            groups += partial.lift(self._sources[partial.label].rows(frame, order))
        tables = {GROUPS: self.layouts[GROUPS].merge(pl.DataFrame(groups), [PANE, *self.keys])}
        sub_windows = self._sub_windows(frame)
        for (source, cells), table in self._cells.items():
            rows = source.rows(frame, order, sub_windows)
            tables[table] = value_tables.merged_cells(cells, self.layouts[table], known, rows)
        return tables
