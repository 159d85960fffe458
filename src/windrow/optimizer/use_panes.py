"""γ over [RANGE r SLIDE s] as γ over panes of width gcd(r, s): each row is aggregated once (paper 002, 3.1).

The pane-level query aggregates disjoint panes; its rows carry E-1, the last instant of their pane, so a
pane is in an extent as a whole or not at all. The window-level query combines the panes of each extent.
Which aggregates combine is said in `pane_parts`; whether it pays, by `pane_cost`.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import AggregateCall
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> most = AggregateCall("max", (s.schema.column("s.a"),), BIGINT)
>>> (paned,) = use_panes(Emit(Aggregate(Window(s, RangeWindow(6, 4)), (), (("most", most),))))
>>> windows = [node.spec for node in paned.walk() if isinstance(node, Window)]
>>> windows == [RangeWindow(6, 4), RangeWindow(2, 2)]
True

Not for RESTORE, where SLIDE is only the period of refreshing; not for INTERNAL windows; and not where late
rows are kept, since a late row of a closed pane would be lost for the extents still to come.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column
from windrow.algebra.operators import Aggregate, AggregateCall, Filter, Project
from windrow.algebra.plan import Emit, Plan, StreamWord, Subquery, Window
from windrow.optimizer.pane_parts import PaneParts, decomposed, result_type
from windrow.optimizer.trees import expressions_of, fresh_alias, reads_bounds, variants
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.algebra.expressions import Expression

Parts = list[tuple[str, PaneParts]]


def use_panes(plan: Plan) -> Iterator[Plan]:
    """Each γ over overlapping extents, one at a time, as a query over its panes; nested queries included."""
    alias = fresh_alias(plan, "panes")

    def in_query(node: Plan) -> Iterator[Plan]:
        if isinstance(node, Emit) and not node.word.restores:
            changed = variants(node.input, partial(_paned, alias=alias), nested=False)
            yield from (replace(node, input=below) for below in changed)

    yield from variants(plan, in_query)


def _paned(plan: Plan, alias: str) -> Iterator[Plan]:
    if not isinstance(plan, Aggregate):
        return
    window = _window_below(plan)
    parts = [(name, found) for name, call in plan.aggregates if (found := decomposed(call))]
    if window is None or not _has_panes(window) or len(parts) < len(plan.aggregates):
        return
    panes = Subquery(Emit(_pane_level(plan, window, parts), StreamWord.RSTREAM), alias)
    yield _window_level(plan, Window(panes, replace(window.spec, wattr=None)), parts)


def _window_below(plan: Aggregate) -> Window | None:
    """The window of which every row is aggregated by itself: nothing but σ and π in between."""
    if any(map(reads_bounds, expressions_of(plan))):
        return None
    below = plan.input
    while isinstance(below, Filter | Project):
        if any(map(reads_bounds, expressions_of(below))):
            return None
        below = below.input
    return below if isinstance(below, Window) else None


def _has_panes(window: Window) -> bool:
    """Extents of several panes, of a stream that is not itself reported once per pane."""
    spec = window.spec
    if not isinstance(spec, RangeWindow) or spec.slide is None or spec.internal or window.keeps_late_rows:
        return False
    panes = Panes.of(spec)
    return panes.per_window > 1 and not all(_reports_panes(origin, panes.width) for origin in window.origins)


def _reports_panes(origin: Plan, width: int) -> bool:
    if not isinstance(origin, Subquery) or not origin.query.is_periodic:
        return False
    return all(leaf.spec.grid and leaf.spec.grid.period % width == 0 for leaf in origin.query.leaves)


def _pane_level(plan: Aggregate, window: Window, parts: Parts) -> Aggregate:
    """The same γ over disjoint panes."""
    assert isinstance(window.spec, RangeWindow)
    width = Panes.of(window.spec).width
    narrow = replace(window, spec=replace(window.spec, range=width, slide=width))
    below = plan.input.rewrite(lambda node: narrow if node == window else node)
    keys = tuple((f"k{n}", key) for n, (_, key) in enumerate(plan.keys))
    calls = [call for _, each in parts for call in each.inner]
    return Aggregate(below, keys, tuple((f"p{n}", call) for n, call in enumerate(calls)))


def _window_level(plan: Aggregate, panes: Window, parts: Parts) -> Plan:
    """The panes of each extent, combined."""
    columns = [panes.schema.column(name) for name in panes.schema.names]
    keys = tuple((name, column) for (name, _), column in zip(plan.keys, columns, strict=False))
    values = iter(columns[len(keys) :])
    calls: list[tuple[str, AggregateCall]] = []
    outputs: list[tuple[str, Expression]] = []
    for name, each in parts:
        combined = [_combined(function, next(values)) for function in each.outer]
        names = [name] if each.finish is None else [f"{name}#{n}" for n in range(len(combined))]
        calls += zip(names, combined, strict=True)
        outputs.append((name, _finished(each, names, combined)))
    grouped = Aggregate(panes, keys, tuple(calls))
    if all(each.finish is None for _, each in parts):
        return grouped
    return Project(grouped, (*((name, grouped.schema.column(name)) for name, _ in keys), *outputs))


def _combined(function: str, column: Column) -> AggregateCall:
    return AggregateCall(function, (column,), result_type(function, column.type))


def _finished(parts: PaneParts, names: list[str], calls: list[AggregateCall]) -> Expression:
    columns = [Column(name, call.data_type) for name, call in zip(names, calls, strict=True)]
    return columns[0] if parts.finish is None else parts.finish(columns)
