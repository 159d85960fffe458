"""NOT EXISTS above or below a join: the left and the right plan of the thesis' Figure 3.5.

Above it, only what is above that has to process negative rows (3.5.3). Below it, rows are retracted early,
and every operator above sees the negative rows. Which is cheaper depends on how many rows the negation
drops, so both are alternatives. EXISTS moves in the same way.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> s = Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts")
>>> x, y, z = (Window(Scan(s, alias), RangeWindow(9)) for alias in "xyz")
>>> p = call("=", [x.schema.column("x.a"), y.schema.column("y.a")])
>>> q = call("=", [x.schema.column("x.a"), z.schema.column("z.a")])
>>> above = Exists(Join((x, y), p), z, q, negated=True)
>>> below = Join((Exists(x, z, q, negated=True), y), p)
>>> list(pull_up_negation(below)) == [above], list(push_down_negation(above)) == [below]
(True, True)
>>> str(above.left.label.pattern)
'WK'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.algebra import Exists, Join, Plan
from windrow.optimizer.trees import can_fail, is_movable, kept, peeled, variants


def pull_up_negation(plan: Plan) -> Iterator[Plan]:
    """(A without matches in R) ⋈ B becomes (A ⋈ B) without matches in R.

    The join then tests rows of A that have matches, so its condition must not fail.
    """
    yield from variants(plan, _pull)


def _pull(plan: Plan) -> Iterator[Plan]:
    if not isinstance(plan, Join) or plan.is_internal or can_fail(plan.predicate):
        return
    for place, part in enumerate(map(peeled, plan.inputs)):
        if isinstance(part, Exists):
            inputs = (*plan.inputs[:place], part.left, *plan.inputs[place + 1 :])
            yield kept(replace(part, left=replace(plan, inputs=inputs)), plan.schema.names)


def push_down_negation(plan: Plan) -> Iterator[Plan]:
    """(A ⋈ B) without matches in R becomes (A without matches in R) ⋈ B, if only A is matched with R.

    The condition is then tested on rows of A that join nothing, so it must not fail. Results of INTERNAL
    windows outlive their matches, and the order of join and EXISTS shows.
    """
    yield from variants(plan, _push)


def _push(plan: Plan) -> Iterator[Plan]:
    if not isinstance(plan, Exists) or plan.is_internal or not is_movable(plan.predicate):
        return
    join = peeled(plan.left)
    if not isinstance(join, Join):
        return
    read = plan.predicate.columns - frozenset(plan.right.schema.names)
    for place, part in enumerate(join.inputs):
        if read <= frozenset(part.schema.names):
            inputs = (*join.inputs[:place], replace(plan, left=part), *join.inputs[place + 1 :])
            yield kept(replace(join, inputs=inputs), plan.schema.names)
