"""Pane tables: rows become one state per pane and group; tables of states merge into one.

>>> from windrow.kernels.state import TableLayout
>>> layout = TableLayout(("k0",))
>>> one = pl.DataFrame({"pane": [0, 1], "k0": ["a", "a"], "rows.0": [2, 1]})
>>> two = pl.DataFrame({"pane": [1], "k0": ["a"], "rows.0": [5]})
>>> merge_panes([one, two], layout).sort("pane").rows()
[(0, 'a', 2), (1, 'a', 6)]

A state of panes while an epoch changes it: chunks by table and kind, until they are a state again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.panes.query import SlidingQuery, run_stages
from windrow.kernels.state import PANE, Chunk, State, TableLayout, gathered

if TYPE_CHECKING:
    from windrow.kernels.aggregates.measures import Measures
    from windrow.kernels.panes.answers import PaneAnswers


@dataclass
class Changing:
    """What kernels that move their panes from kind to kind have in common."""

    answers: PaneAnswers
    chunks: dict[str, tuple[Chunk, ...]]
    meta: dict[str, int]

    def __post_init__(self) -> None:
        self.cut = self.answers.query.cut
        self.layouts = self.answers.measures.layouts

    @property
    def state(self) -> State:
        """What is to be kept."""
        return State({name: chunks for name, chunks in self.chunks.items() if chunks}, self.meta)

    def of(self, table: str, kind: str) -> tuple[Chunk, ...]:
        """The chunks of one kind, such as open panes."""
        return self.chunks.get(table + kind, ())


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


def merge_panes(tables: Sequence[pl.DataFrame], layout: TableLayout) -> pl.DataFrame:
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
