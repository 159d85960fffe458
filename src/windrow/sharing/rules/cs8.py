"""CS8: a query that is another one, only less often, takes the other's answers.

In the thesis it is then simply refreshed more often. Windrow answers every window that a query asks for and
no other, so it takes those at its own instants, which must be instants of the other query too.

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

from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.windows.grid import SlideGrid
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Hashable


def may_take(query: Emit, other: Emit) -> bool:
    """Whether all answers of a query are answers of the other."""
    mine, theirs = grid_of(query), grid_of(other)
    if mine is None or theirs is None or unslid(query) != unslid(other):
        return False
    return mine.period % theirs.period == 0 and (mine.origin - theirs.origin) % theirs.period == 0


def grid_of(query: Emit) -> SlideGrid | None:
    """The instants at which all windows of a query move; None if they are not windows of time over streams
    that move together."""
    plain = all(isinstance(origin, Scan) for leaf in query.leaves for origin in leaf.origins)
    grids = {leaf.spec.grid if isinstance(leaf.spec, RangeWindow) else None for leaf in query.leaves}
    return grids.pop() if plain and len(grids) == 1 else None


def unslid(query: Emit) -> Hashable:
    """What a query asks, but for when; itself if its windows do not move together."""
    return (query, object()) if grid_of(query) is None else moving_on(query, SlideGrid(1))


def moving_on(query: Emit, grid: SlideGrid) -> Emit:
    """The same query at other instants."""

    def change(node: Plan) -> Plan:
        if isinstance(node, Window) and isinstance(node.spec, RangeWindow):
            return replace(node, spec=replace(node.spec, slide=grid.period, origin=grid.origin))
        return node

    return replace(query, input=query.input.rewrite(change))
