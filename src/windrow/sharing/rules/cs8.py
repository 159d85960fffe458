"""CS8: a query that is another one, only less often, takes the other's answers.

In the thesis it is then simply refreshed more often. Windrow answers every window that a query asks for and
no other, so it takes those at its own instants, which must be instants of the other query too. Over joins it
runs as the other does (`moving_on`) and reports at its own instants.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Aggregate, AggregateCall
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> stream = Stream("S", Schema((Field("ts", BIGINT),)), "ts")
>>> def counted(length, slide):
...     rows = Window(Scan(stream, "S"), RangeWindow(length, slide))
...     return Emit(Aggregate(rows, (), (("n", AggregateCall("count", (), BIGINT)),)))
>>> often = counted(10, 2)
>>> may_take(counted(10, 4), often), may_take(counted(10, 5), often), may_take(counted(8, 4), often)
(True, False, False)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.aggregates.base import Size
from windrow.algebra.aggregates.calls import function_of
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.windows.grid import SlideGrid
from windrow.windows.panes import sub_windows_of
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Hashable


def may_take(query: Emit, other: Emit) -> bool:
    """Whether all answers of a query are answers of the other."""
    mine, theirs = grid_of(query), grid_of(other)
    if mine is None or theirs is None or unslid(query) != unslid(other):
        return False
    return mine.is_within(theirs)


def grid_of(query: Emit) -> SlideGrid | None:
    """The instants at which all windows of a query move; None if they are not windows of time over streams
    that move together."""
    plain = all(isinstance(origin, Scan) for leaf in query.leaves for origin in leaf.origins)
    grids = {leaf.spec.grid if isinstance(leaf.spec, RangeWindow) else None for leaf in query.leaves}
    return grids.pop() if plain and len(grids) == 1 else None


def unslid(query: Emit) -> Hashable:
    """What a query asks, but for when: the same for queries that differ in nothing else. Lists of frequent
    items depend on how windows are cut. A query whose windows do not move together is like no other."""
    if grid_of(query) is None:
        return query, object()
    cuts = {sub_windows_of(leaf.spec) for leaf in query.leaves} if _keeps_lists(query) else set()
    return moving_on(query, SlideGrid(1)), frozenset(cuts)


def _keeps_lists(query: Emit) -> bool:
    """Whether an aggregate of a query keeps lists, one for each part that its windows are cut into."""
    calls = [call for node in query.walk() if isinstance(node, Aggregate) for _, call in node.aggregates]
    return any(function_of(call).size is Size.LISTS for call in calls)


def moving_on(query: Emit, grid: SlideGrid) -> Emit:
    """The same query at other instants."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Window) and isinstance(node.spec, RangeWindow):
            return replace(node, spec=replace(node.spec, slide=grid.period, origin=grid.origin))
        return node

    return replace(query, input=query.input.rewrite(change))
