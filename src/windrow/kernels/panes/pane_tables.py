"""Pane tables: rows become one state per pane and group; tables of states merge into one.

>>> from windrow.kernels.layouts import Layout
>>> layout = Layout(("k0",))
>>> one = pl.DataFrame({"pane": [0, 1], "k0": ["a", "a"], "rows.0": [2, 1]})
>>> two = pl.DataFrame({"pane": [1], "k0": ["a"], "rows.0": [5]})
>>> merge_panes([one, two], layout).sort("pane").rows()
[(0, 'a', 2), (1, 'a', 6)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.layouts import PANE, Layout, gathered
from windrow.kernels.panes.query import SlidingQuery, run_stages

if TYPE_CHECKING:
    from windrow.kernels.aggregates.measures import Measures


def assign_panes(frame: pl.DataFrame, query: SlidingQuery) -> pl.DataFrame:
    """The rows that lie in some extent, with the pane of each as `#pane`; `#t` is their instant."""
    instants = frame["#t"].to_numpy()
    inside = query.cut.holds(instants)
    frame = frame.with_columns(pl.Series("#pane", query.cut.panes_of(instants)))
    return frame if inside.all() else frame.filter(pl.Series(inside))


def pane_table(frame: pl.DataFrame, query: SlidingQuery, measures: Measures) -> dict[str, pl.DataFrame]:
    """Rows with panes, as the tables of states the query keeps: WHERE, projections, then γ by pane."""
    _, between, _ = query.stages
    return measures.tables(run_stages(between, frame))


def merge_panes(tables: Sequence[pl.DataFrame], layout: Layout) -> pl.DataFrame:
    """One row for each pane and group of all tables, each of which has that; of none, an empty frame.

    Only panes that occur in several tables are combined: most occur in one.
    """
    rows = gathered(tables)
    if rows is None:
        return pl.DataFrame()
    panes = pl.concat([table.select(PANE).unique() for table in tables if table.height])
    several = panes.group_by(PANE).len().filter(pl.col("len") > 1)[PANE]
    if several.is_empty():
        return rows
    shared = rows[PANE].is_in(several.implode())
    return pl.concat([rows.filter(~shared), layout.merge(rows.filter(shared), [PANE, *layout.keys])])
