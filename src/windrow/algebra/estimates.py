"""Where APPROX_COUNT, APPROX_SUM and APPROX_TOP_K are estimates, and where they are the exact aggregates.

An estimate saves something only if nothing else makes a γ remember its rows: over one continuous [RANGE r]
window, with nothing but σ and π in between, beside aggregates that keep few rows themselves (MIN, MAX,
ANY_VALUE, FIRST, LAST). With a SLIDE there are panes, whose counts are exact; below joins, DISTINCT and other
windows, and beside other aggregates, rows or the instants at which they leave are kept anyway. There they
become COUNT and SUM when the query is written: within every error. Likewise APPROX_TOP_K is TOP_K where there
are no sub-windows to keep lists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from windrow.algebra import checks
from windrow.algebra.aggregates import (
    AggregateFunction,
    Size,
    approx_count,
    approx_top_k,
    distinct,
    function_of,
)
from windrow.algebra.operators import AggregateCall, Filter, Project
from windrow.algebra.plan import Plan, Window
from windrow.errors import QueryError
from windrow.windows.ranges import RangeWindow

Calls = Sequence[tuple[str, AggregateCall]]


def settled(rows: Plan, calls: Calls) -> tuple[tuple[str, AggregateCall], ...]:
    """The aggregates of a γ over `rows`, those that may as well be exact made so."""
    functions = [function_of(call) for _, call in calls]
    pays = wave_window(rows) is not None and all(_is_small(function) for function in functions)
    return tuple(
        (name, call if pays or exact is None else replace(call, function=exact, params=()))
        for (name, call), exact in zip(calls, map(_exact, functions), strict=True)
    )


def with_lists(rows: Plan, call: AggregateCall) -> AggregateCall:
    """APPROX_TOP_K where its window has sub-windows, else TOP_K: it keeps all rows or values there."""
    function = function_of(call)
    inner = function.inner if isinstance(function, distinct.DistinctValues) else function
    if not isinstance(inner, approx_top_k.ApproxTopK):
        return call
    try:
        checks.sub_windows_are_known(rows, call)
    except QueryError:
        return replace(call, function="top_k", params=(inner.k,))
    return call


def wave_window(rows: Plan) -> Window | None:
    """The continuous window right below, whose rows come and leave in one order; None if there is none."""
    while isinstance(rows, Filter | Project):
        rows = rows.input
    if not isinstance(rows, Window) or not isinstance(rows.spec, RangeWindow):
        return None
    spec = rows.spec
    in_order = spec.slide is None and not spec.internal and not rows.keeps_late_rows
    return rows if in_order and not spec.counts_arrivals else None


def waved(call: AggregateCall) -> approx_count.Waved | None:
    """The aggregate of a call that is estimated by a wave."""
    function = function_of(call)
    return function if isinstance(function, approx_count.Waved) else None


def _exact(function: AggregateFunction) -> str | None:
    """What an estimate stands for; None if it is none."""
    inner = function.inner if isinstance(function, distinct.DistinctValues) else function
    return inner.exact if isinstance(inner, approx_count.Waved) else None


def _is_small(function: AggregateFunction) -> bool:
    """Whether it keeps few rows: a wave, or a choice of one of them."""
    selects = (function.duplicate_insensitive or function.ordered) and function.size is Size.BOUNDED
    return isinstance(function, approx_count.Waved) or selects
