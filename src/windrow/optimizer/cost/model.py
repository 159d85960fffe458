"""What a plan costs per unit of time, and what it keeps: the numbers of EXPLAIN and of every choice.

The unit is one row touched. Three things cost (thesis, 3.5.3): processing what arrives, twice where the
input's pattern is STR, because every row comes again as a negative one (2.3.3); keeping state, by the
pattern of what is kept, since it decides how an expired row is found; and reporting. Joins are costed as
kernels do them, by hash tables where columns are equated, aggregates over sliding extents by panes; or, if
`Model.PAPERS` is asked for, as nested loops (5.3.1), and on demand as in paper 002 (`pane_cost`).

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> s = Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), "s")
>>> found = estimate(Emit(Window(s, RangeWindow(60))), Statistics(rates={"s": 5}))
>>> found[()].rate, found[(0,)].rows, found[(0, 0)].rate
(10.0, 300, 5)
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from windrow.optimizer.cost.estimator import Estimator
from windrow.optimizer.cost.flows import Estimate, Flow, Path
from windrow.optimizer.cost.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windrow.algebra.plan import Plan

__all__ = ["Estimate", "Path", "Statistics", "estimate", "flow_of", "total_cost"]


def estimate(plan: Plan, statistics: Statistics | None = None) -> Mapping[Path, Estimate]:
    """The estimate of every node, by its place: () is the root, (0, 1) the second child of its first."""
    estimator = Estimator(statistics or Statistics())
    estimator.flow(plan)
    return estimator.found


def total_cost(plan: Plan, statistics: Statistics | None = None) -> float:
    """What the whole plan costs per unit of time."""
    return fsum(each.cost for each in estimate(plan, statistics).values())


def flow_of(plan: Plan, statistics: Statistics) -> Flow:
    """The estimate of the plan's result, with the distinct values of its columns."""
    return Estimator(statistics).flow(plan)
