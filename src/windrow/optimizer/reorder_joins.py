"""The inputs of an n-way join in the cheapest order: the order is the plan.

Each arrival looks through the other inputs in this order, so it decides how many partial results there are.
Of few inputs all orders are costed; of more it is that of the thesis' heuristic (5.3.2), which is for joins
on one common attribute. An order is offered only for those; a π on top restores the order of columns, which
ties of FIRST, LAST and LIMIT depend on.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("k", BIGINT), Field("ts", BIGINT)))
>>> windows = [Window(Scan(Stream(name, schema, "ts"), name), RangeWindow(90)) for name in "abc"]
>>> first, *others = [window.schema.column(f"{name}.k") for name, window in zip("abc", windows)]
>>> same = call("and", [call("=", [first, other]) for other in others])
>>> rates = flows.Statistics(rates={"a": 10, "b": 1, "c": 5}, default_distinct=9)
>>> (better,) = reorder_joins(Join(tuple(windows), same), rates)
>>> [part.origins[0].alias for part in better.input.inputs]
['b', 'c', 'a']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import permutations

from windrow.algebra import Join, Plan
from windrow.kernels.relational.join.order import WindowStats, augmented_order
from windrow.optimizer import costs, flows, trees

_FEWEST = 3
#: of so many inputs all orders are costed
_MOST_ORDERED = 4
_LEAST = 1e-9


def reorder_joins(plan: Plan, statistics: flows.Statistics | None = None) -> Iterator[Plan]:
    """Each join of three or more inputs on one attribute, in its cheapest order."""
    yield from trees.variants(plan, partial(_reordered, statistics=statistics or flows.Statistics()))


def _reordered(plan: Plan, statistics: flows.Statistics) -> Iterator[Plan]:
    if not isinstance(plan, Join) or len(plan.inputs) < _FEWEST or trees.can_fail(plan.predicate):
        return
    common = _common_attribute(plan)
    if common is None:
        return
    if len(plan.inputs) <= _MOST_ORDERED:
        order = _cheapest(plan, statistics)
    else:
        windows = [_stats(part, name, statistics) for part, name in zip(plan.inputs, common, strict=True)]
        order = [common.index(window.name) for window in augmented_order(windows)]
    if order != sorted(order):
        yield trees.kept(
            replace(plan, inputs=tuple(plan.inputs[place] for place in order)), plan.schema.names
        )


def _cheapest(plan: Join, statistics: flows.Statistics) -> list[int]:
    """The order that costs least; as it is, unless another one is cheaper."""

    def cost(order: Iterable[int]) -> float:
        return costs.estimate(replace(plan, inputs=tuple(plan.inputs[n] for n in order)), statistics)[()].cost

    return list(min(permutations(range(len(plan.inputs))), key=cost))


def _common_attribute(plan: Join) -> list[str] | None:
    """One column of each input, all set equal to one another."""
    for same in flows.equal_columns(plan.predicate):
        chosen = [next((name for name in part.schema.names if name in same), None) for part in plan.inputs]
        if None not in chosen:
            return [name for name in chosen if name]
    return None


def _stats(part: Plan, name: str, statistics: flows.Statistics) -> WindowStats:
    flow = costs.estimate(part, statistics)[()]
    rate = max(flow.rate, _LEAST)
    return WindowStats(name, rate, max(flow.rows, _LEAST) / rate, max(1.0, flow.values[name]))
