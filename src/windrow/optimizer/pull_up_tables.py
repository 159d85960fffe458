"""A join with a RELATION table above a join of streams, so that the latter meets no negative rows.

A RELATION table makes the pattern of what is above it STR (thesis, 3.5.1, rule 4), so pulling it up
simplifies the patterns of everything it passes; it cannot pass above what is STR itself, which the nodes
refuse. `push_down_tables` is the opposite, for tables that leave few rows. A join with an NRR table
reads the table as of the latest row of each result, so below a join it means something else, and it
stays where it is.

>>> from windrow.algebra.catalog import Stream, Table, TableKind
>>> from windrow.algebra.plan import Scan, TableScan, Window
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("a", BIGINT), Field("ts", BIGINT)))
>>> x, y = (Window(Scan(Stream("s", schema, "ts"), alias), RangeWindow(9)) for alias in "xy")
>>> t = TableScan(Table("t", Schema((Field("a", BIGINT),)), TableKind.RELATION), "t")
>>> low = Join((TableJoin(x, t), y))
>>> (high,) = pull_up_tables(low)
>>> high == kept(TableJoin(Join((x, y)), t), low.schema.names)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import conjunction, conjuncts
from windrow.algebra.operators import Join, TableJoin
from windrow.algebra.patterns import Pattern
from windrow.optimizer.movability import can_fail
from windrow.optimizer.trees import kept, peeled, variants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.plan import Plan


def pull_up_tables(plan: Plan) -> Iterator[Plan]:
    """(A ⋈ T) ⋈ B becomes (A ⋈ B) ⋈ T; conditions on T go with it."""
    yield from variants(plan, _pull)


def _pull(plan: Plan) -> Iterator[Plan]:
    if not isinstance(plan, Join) or can_fail(plan.predicate):
        return
    for place, part in enumerate(map(peeled, plan.inputs)):
        if isinstance(part, TableJoin) and part.is_retroactive and not can_fail(part.predicate):
            yield from _pulled(plan, place, part)


def _pulled(plan: Join, place: int, part: TableJoin) -> Iterator[Plan]:
    inputs = (*plan.inputs[:place], part.input, *plan.inputs[place + 1 :])
    parts = conjuncts(plan.predicate)
    of_table = frozenset(part.table.schema.names)
    below = Join(inputs, conjunction(tuple(p for p in parts if not p.columns & of_table)))
    if below.label.pattern is Pattern.STR:
        return
    above = tuple(p for p in parts if p.columns & of_table)
    joined = TableJoin(below, part.table, conjunction((*conjuncts(part.predicate), *above)))
    yield kept(joined, plan.schema.names)
