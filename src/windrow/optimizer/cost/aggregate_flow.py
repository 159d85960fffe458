"""What γ costs: per row, or per extent (see `windrow.optimizer.cost.pane_cost`).

Extents that do not overlap take each row once. Overlapping ones of a single window do so too, on the kernels
there are: these have panes built in, so that a plan rewritten to panes only does the same work twice. By
paper 002, section 3.3, which `Model.PAPERS` asks for, overlapping extents are computed from the extent
before, if all aggregates are full-differential (rows that came, rows that went), else from all their rows;
extents above joins are costed that way in any case.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from windrow.algebra.aggregates import Differential, make
from windrow.algebra.operators import Filter, Project
from windrow.algebra.plan import Window
from windrow.optimizer.cost.flows import Estimate, Flow, arrivals, combinations, distinct_of
from windrow.optimizer.cost.pane_cost import SlidingWork
from windrow.optimizer.cost.statistics import Model
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from windrow.algebra.operators import Aggregate
    from windrow.optimizer.cost.selectivity import Values
    from windrow.optimizer.cost.statistics import Statistics


def aggregate_work(plan: Aggregate, flow: Flow, statistics: Statistics) -> tuple[Estimate, Values]:
    """The estimate of a γ over this input."""
    keys = {name: combinations(key.columns, flow.values) for name, key in plan.keys}
    groups = distinct_of(flow.rows, prod(keys.values(), start=1.0)) if keys else min(1.0, flow.rows)
    values = keys | {name: groups for name, _ in plan.aggregates}
    spec = _extents(plan)
    if spec is None or spec.slide is None:
        return _per_row(plan, flow, groups), values
    slide = statistics.units(spec.slide, plan.leaves[0].domain)
    if spec.slide >= spec.range:
        return Estimate(groups / slide, groups, groups, flow.rows / slide), values
    if statistics.model is Model.KERNELS and _is_of_one_window(plan):
        panes = Panes.of(spec)
        cost = SlidingWork(panes, flow.rows, groups).built_in() / slide
        return Estimate(groups / slide, groups, min(flow.rows, groups * panes.per_window), cost), values
    if is_differential(plan):
        cost = 2 * flow.rows * spec.slide / spec.range / slide
        return Estimate(groups / slide, groups, flow.rows + groups, cost), values
    return Estimate(groups / slide, groups, flow.rows, flow.rows / slide), values


def is_differential(plan: Aggregate) -> bool:
    """Whether the values of a window follow from those of the window before it, in constant space."""
    made = (make(call.function, call.params, distinct=call.distinct) for _, call in plan.aggregates)
    return all(aggregate.differential is Differential.FULL for aggregate in made)


def _is_of_one_window(plan: Aggregate) -> bool:
    """Whether only σ and π lie between γ and its window."""
    below = plan.input
    while isinstance(below, Filter | Project):
        below = below.input
    return isinstance(below, Window)


def _extents(plan: Aggregate) -> RangeWindow | None:
    """The window whose extents are aggregated, if all windows below have the same ones."""
    spec = plan.leaves[0].spec
    same = len({leaf.spec.period for leaf in plan.leaves}) == 1
    return spec if same and isinstance(spec, RangeWindow) else None


def _per_row(plan: Aggregate, flow: Flow, groups: float) -> Estimate:
    """Each row changes its group when it comes and when it goes, which may mean to look at all its rows."""
    differential = is_differential(plan)
    going = 1.0 if differential else flow.rows / max(groups, 1.0)
    cost = arrivals(plan.input, flow) + flow.rate * going
    return Estimate(2 * flow.rate, groups, flow.rows + groups if differential else flow.rows, cost)
