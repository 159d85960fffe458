"""Drop duplicates before a join instead of after it (thesis, 3.5.3: duplicate elimination push-down).

At every instant δ(A ⋈ B) = δ(A) ⋈ δ(B): a pair of rows is in the join as often as its left part is in A
times its right part in B, so once iff both are there once. The identity needs all columns of A and B in
the result, and a condition that cannot tell apart what δ takes for equal. Where a π above the join drops
columns, the outer δ has to stay: δπ(A ⋈ B) = δπ(δ(A) ⋈ δ(B)).

δ does not go below a window: paper 001's δ(W(S)) = W(δ(S)) is about a δ that keeps the youngest duplicate,
which no stream of insertions can express. It also takes a row's WATTR, so FIRST, LAST and NRR tables
refuse to stand above it.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("a", BIGINT), Field("ts", BIGINT)))
>>> x, y = (Window(Scan(Stream("s", schema, "ts"), alias), RangeWindow(9)) for alias in "xy")
>>> list(push_distinct(Distinct(Join((x, y))))) == [Join((Distinct(x), Distinct(y)))]
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from windrow.algebra import Distinct, Expression, Filter, Join, Plan, Project
from windrow.optimizer.trees import respects_grouping, variants


def push_distinct(plan: Plan) -> Iterator[Plan]:
    """δ moved into, or repeated in, the inputs of a join below it."""
    yield from variants(plan, _push)


def _push(plan: Plan) -> Iterator[Plan]:
    if not isinstance(plan, Distinct):
        return
    if isinstance(plan.input, Join):
        if (inside := _without_duplicates(plan.input)) is not None:
            yield inside
        return
    below = _repeated(plan.input)
    if below is not None:
        yield Distinct(below)


def _repeated(plan: Plan) -> Plan | None:
    """The first join below conditions and projections, with its inputs' duplicates dropped."""
    if isinstance(plan, Join):
        return _without_duplicates(plan)
    if isinstance(plan, Filter | Project) and all(map(respects_grouping, _looks_at(plan))):
        below = _repeated(plan.input)
        return None if below is None else replace(plan, input=below)
    return None


def _looks_at(plan: Filter | Project) -> list[Expression]:
    if isinstance(plan, Filter):
        return [plan.predicate]
    return [value for _, value in plan.outputs if value.children]


def _without_duplicates(join: Join) -> Join | None:
    if not respects_grouping(join.predicate) or all(isinstance(part, Distinct) for part in join.inputs):
        return None
    return replace(join, inputs=tuple(p if isinstance(p, Distinct) else Distinct(p) for p in join.inputs))
