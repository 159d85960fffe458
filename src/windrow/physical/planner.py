"""The planner: from a query to the plan that runs, the only place where that is decided.

The rules make one form of it; alternatives are tried as long as one is cheaper by the cost model. Of all that
were costed the cheapest runs that kernels can run.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Distinct
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
>>> plan = plan_query(Emit(Distinct(Window(Scan(stream, "s"), RangeWindow(60)))))
>>> [(operator.place, operator.kind) for operator in plan.walk()][:2]
[('0', 'changes.1'), ('0.0', 'distinct-told.1')]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.explain import Alternative
from windrow.algebra.plan import Scan
from windrow.errors import QueryError
from windrow.kernels.panes.query import SlidingQuery
from windrow.optimizer.cost.statistics import Statistics
from windrow.optimizer.optimizer import Candidate, by_preference, candidates
from windrow.physical.plan import PhysicalPlan

if TYPE_CHECKING:
    from collections.abc import Collection

    from windrow.algebra.plan import Emit


def plan_query(
    plan: Emit,
    statistics: Statistics | None = None,
    *,
    by_group: bool | None = None,
    disabled: Collection[str] = (),
) -> PhysicalPlan:
    """How a query runs; a QueryError if no kernel runs it. What is `disabled` is not tried."""
    streams = (node.stream for node in plan.walk() if isinstance(node, Scan))
    known = (statistics or Statistics()).with_declared(streams)
    found = candidates(plan, known, disabled, _is_settled)
    for each in by_preference(found):
        try:
            return _built(plan, each, found, known, by_group)
        except QueryError:
            continue
    return _built(plan, Candidate("as written", plan, 0.0), [], known, by_group)


def _is_settled(plan: Emit) -> bool:
    """Whether there is nothing to choose: an aggregate whose kernel has panes built in does each row once."""
    try:
        SlidingQuery.of(plan)
    except QueryError:
        return False
    return True


def _built(
    plan: Emit, chosen: Candidate, found: list[Candidate], known: Statistics, by_group: bool | None
) -> PhysicalPlan:
    considered = [Alternative(each.name, each.cost, each is chosen) for each in found] if found[1:] else []
    built = PhysicalPlan(plan, chosen.plan, chosen.fired, tuple(considered), known, by_group=by_group)
    assert built.unit is not None  # a QueryError if no kernel runs it
    return built
