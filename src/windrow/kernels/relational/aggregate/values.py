"""Aggregate values of cells: a cell is a group while none of its rows comes or goes."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from windrow.kernels.aggregates.frequencies import of_counts, of_nothing
from windrow.kernels.aggregates.lowering import lower
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.layouts import PANE

CELL = "#cell"


def lowered(measures: Measures, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`#cell`, then the value of each aggregate, one row per cell; states come in as tables by `pane`."""
    states = tables[GROUPS]
    columns = [_value(measure, states, tables.get(measure.table)) for measure in measures.measures]
    return pl.DataFrame([states[PANE].alias(CELL), *columns])


def _value(measure: Measure, states: pl.DataFrame, counts: pl.DataFrame | None) -> pl.Series:
    dtype = polars_type(measure.kind)
    if measure.partial is not None:
        return lower(measure.aggregate, measure.partial, states).cast(dtype).alias(measure.name)
    nothing = pl.Series([of_nothing(measure.aggregate)], dtype=dtype).new_from_index(0, states.height)
    if counts is None or not counts.height:
        return nothing.alias(measure.name)
    keyless = counts.select(
        pl.col(PANE).alias("w"), pl.lit(0, pl.Int64).alias("g"), pl.exclude(PANE, "^k[0-9]+$")
    )
    found = of_counts(measure.aggregate, keyless).with_columns(pl.lit(True).alias("known"))
    joined = states.select(pl.col(PANE).alias("w")).join(found, on="w", how="left", maintain_order="left")
    value = joined["value"].cast(dtype).zip_with(joined["known"].fill_null(False), nothing)
    return value.alias(measure.name)
