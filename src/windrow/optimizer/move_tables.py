"""A join with a RELATION table above or below a join of streams.

A RELATION table makes the pattern of what is above it STR (thesis, 3.5.1, rule 4), so pulling it up
simplifies the patterns of everything it passes; it cannot pass above what is STR itself, which the nodes
refuse. Pushing it down is for tables that leave few rows. A join with an NRR table reads the table as of the
latest row of each result, so below a join it means something else, and it stays where it is.

>>> from windrow.algebra.catalog import Stream, Table, TableKind
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan, TableScan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("a", BIGINT), Field("ts", BIGINT)))
>>> x, y = (Window(Scan(Stream("s", schema, "ts"), alias), RangeWindow(9)) for alias in "xy")
>>> t = TableScan(Table("t", Schema((Field("a", BIGINT),)), TableKind.RELATION), "t")
>>> low = Join((TableJoin(x, t), y))
>>> list(pull_up_tables(low)) == [kept(TableJoin(Join((x, y)), t), low.schema.names)]
True
>>> same = call("=", [y.schema.column("y.a"), t.schema.column("t.a")])
>>> list(push_down_tables(TableJoin(Join((x, y)), t, same))) == [Join((x, TableJoin(y, t, same)))]
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.algebra import Join, Plan, TableJoin
from windrow.algebra.expressions import conjunction, conjuncts
from windrow.optimizer.trees import can_fail, is_movable, kept, peeled, variants
from windrow.windows.patterns import Pattern


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
