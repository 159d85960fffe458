"""A join with a RELATION table below a join of streams, where it leaves few rows to join.

The opposite of `pull_up_tables`, which says why NRR tables do not move.

>>> from windrow.algebra.catalog import Stream, Table, TableKind
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan, TableScan, Window
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("a", BIGINT), Field("ts", BIGINT)))
>>> x, y = (Window(Scan(Stream("s", schema, "ts"), alias), RangeWindow(9)) for alias in "xy")
>>> t = TableScan(Table("t", Schema((Field("a", BIGINT),)), TableKind.RELATION), "t")
>>> same = call("=", [y.schema.column("y.a"), t.schema.column("t.a")])
>>> (low,) = push_down_tables(TableJoin(Join((x, y)), t, same))
>>> low == Join((x, TableJoin(y, t, same)))
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.operators import Join, TableJoin
from windrow.algebra.patterns import Pattern
from windrow.optimizer.movability import is_movable
from windrow.optimizer.trees import kept, peeled, variants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.plan import Plan


def push_down_tables(plan: Plan) -> Iterator[Plan]:
    """(A ⋈ B) ⋈ T becomes (A ⋈ T) ⋈ B, if only A is matched with T, by a condition that cannot fail."""
    yield from variants(plan, _push)


def _push(plan: Plan) -> Iterator[Plan]:
    if not (isinstance(plan, TableJoin) and plan.is_retroactive and is_movable(plan.predicate)):
        return
    join = peeled(plan.input)
    if not isinstance(join, Join):
        return
    read = plan.predicate.columns - frozenset(plan.table.schema.names)
    for place, part in enumerate(join.inputs):
        if read and read <= frozenset(part.schema.names) and part.label.pattern is not Pattern.STR:
            inputs = (*join.inputs[:place], replace(plan, input=part), *join.inputs[place + 1 :])
            yield kept(replace(join, inputs=inputs), plan.schema.names)
