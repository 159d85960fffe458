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

from windrow.algebra.plan import Emit, Plan, Window
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Hashable


def may_take(query: Emit, other: Emit) -> bool:
    """Whether all answers of a query are answers of the other."""
    if unslid(query) != unslid(other):
        return False
    mine, theirs = query.leaves[0].spec, other.leaves[0].spec
    assert isinstance(mine, RangeWindow)
    assert isinstance(theirs, RangeWindow)
    if mine.slide is None or theirs.slide is None:
        return False
    return mine.slide % theirs.slide == 0 and (mine.origin - theirs.origin) % theirs.slide == 0


def unslid(query: Emit) -> Hashable:
    """What a query asks, but for when; itself if it is not over a single window of time."""
    if len(query.leaves) != 1 or not isinstance(query.leaves[0].spec, RangeWindow):
        return query, object()

    def change(node: Plan) -> Plan:
        if isinstance(node, Window) and isinstance(node.spec, RangeWindow):
            return replace(node, spec=replace(node.spec, slide=node.spec.range, origin=0))
        return node

    return query.rewrite(change)
