"""γ over [RANGE r SLIDE s] as γ over panes of width gcd(r, s): each row is aggregated once (paper 002, 3.1).

The pane-level query aggregates disjoint panes; its rows carry E-1, the last instant of their pane, so a
pane is in an extent as a whole or not at all. The window-level query combines the panes of each extent.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.expressions import Field, Schema
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> most = AggregateCall("max", (s.schema.column("s.a"),), BIGINT)
>>> (paned,) = use_panes(Emit(Aggregate(Window(s, RangeWindow(6, 4)), (), (("most", most),))))
>>> windows = [node.spec for node in paned.walk() if isinstance(node, Window)]
>>> windows == [RangeWindow(6, 4), RangeWindow(2, 2)]
True

Not for RESTORE, where SLIDE is only the period of refreshing; not for INTERNAL windows; and not where late
rows are kept, since a late row of a closed pane would be lost for the extents still to come.

How an aggregate of a window follows from aggregates of its panes: what each pane computes (the PLQ), how
that is combined (the WLQ), and what is made of it.

An aggregate is listed here iff the combination is exactly the value over all rows; only AVG of integers is
rounded once more where their sum is beyond 2**53. Not listed are holistic aggregates and DISTINCT ones, and:

- SUM and AVG of DOUBLE: additions in another order round differently, without bound where values cancel;
- AVG of DECIMAL: its quotient is rounded once, to digits that no sum of panes has;
- SUM of INTERVAL, and of DECIMAL with more than 28 digits: a pane's sum may overflow where the window's
  does not.

A pane's SUM must not overflow for the same reason, so BIGINT is summed as DECIMAL, and only the window's
sum has to fit. FIRST and LAST with a FILTER are left out: a pane whose rows are all filtered out would
answer NULL, as does one whose first value is NULL.

>>> from windrow.algebra.types import INT
>>> parts = decomposed(AggregateCall("count", (), BIGINT))
>>> [call.function for call in parts.inner], parts.outer
(['count'], ('sum',))
>>> decomposed(AggregateCall("count", (Literal(1, INT),), BIGINT, distinct=True)) is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from windrow.algebra.aggregates import make
from windrow.algebra.expressions import TRUE, Cast, ColumnRef, Expression, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Filter, Project
from windrow.algebra.plan import Emit, Plan, StreamWord, Subquery, Window
from windrow.algebra.types import BIGINT, DOUBLE, DataType, Kind, decimal
from windrow.optimizer.trees import expressions_of, fresh_alias, variants
from windrow.windows import Panes, RangeWindow

_MOST_DIGITS = 28
_BIG = decimal(20, 0)

Finish = Callable[[Sequence[Expression]], Expression]


@dataclass(frozen=True)
class PaneParts:
    """The aggregates of a pane, how to combine each over panes, and the value made of them."""

    inner: tuple[AggregateCall, ...]
    outer: tuple[str, ...]
    finish: Finish | None = None


def decomposed(aggregate: AggregateCall) -> PaneParts | None:
    """The parts of an aggregate; None if it has none."""
    name = make(aggregate.function, aggregate.params, distinct=aggregate.distinct).name
    rule = _RULES.get(name)
    return rule(aggregate) if rule else None


def _count(aggregate: AggregateCall) -> PaneParts:
    return PaneParts((aggregate,), ("sum",))


def _itself(aggregate: AggregateCall) -> PaneParts:
    return PaneParts((aggregate,), (aggregate.function,))


def _edge(aggregate: AggregateCall) -> PaneParts | None:
    return _itself(aggregate) if aggregate.where == TRUE else None


def _sum(aggregate: AggregateCall) -> PaneParts | None:
    kind = aggregate.args[0].type
    if kind.is_integer:
        total = _exact_sum(aggregate)
        return PaneParts((total,), ("sum",), None if total.data_type == BIGINT else _as(aggregate.data_type))
    if kind.kind is Kind.DECIMAL and kind.precision <= _MOST_DIGITS:
        return PaneParts((aggregate,), ("sum",), _as(aggregate.data_type))
    return None


def _average(aggregate: AggregateCall) -> PaneParts | None:
    if not aggregate.args[0].type.is_integer:
        return None
    count = replace(aggregate, function="count", data_type=BIGINT)
    return PaneParts((_exact_sum(aggregate), count), ("sum", "sum"), _quotient)


def _exact_sum(aggregate: AggregateCall) -> AggregateCall:
    """A SUM that no pane's rows can overflow."""
    (arg,) = aggregate.args
    if arg.type == BIGINT:
        arg = Literal(None, _BIG) if isinstance(arg, Literal) and arg.value is None else Cast(arg, _BIG)
    return replace(aggregate, function="sum", args=(arg,), data_type=result_type("sum", arg.type))


def result_type(function: str, *types: DataType) -> DataType:
    """The type of an aggregate of arguments of these types."""
    return make(function).result_type(types)


def _as(target: DataType) -> Finish:
    return lambda sums: Cast(sums[0], target)


def _quotient(sums: Sequence[Expression]) -> Expression:
    total, count = (Cast(each, DOUBLE) for each in sums)
    return call("try_divide", [total, count])


_RULES: dict[str, Callable[[AggregateCall], PaneParts | None]] = {
    "COUNT": _count,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _itself,
    "MAX": _itself,
    "ANY_VALUE": _itself,
    "FIRST": _edge,
    "LAST": _edge,
}


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
    if any(each.reads_window_bounds for each in expressions_of(plan)):
        return None
    below = plan.input
    while isinstance(below, Filter | Project):
        if any(each.reads_window_bounds for each in expressions_of(below)):
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
        combined = [
            AggregateCall(function, (column,), result_type(function, column.type))
            for function, column in zip(each.outer, values, strict=False)
        ]
        names = [name] if each.finish is None else [f"{name}#{n}" for n in range(len(combined))]
        calls += zip(names, combined, strict=True)
        outputs.append((name, _finished(each, names, combined)))
    grouped = Aggregate(panes, keys, tuple(calls))
    if all(each.finish is None for _, each in parts):
        return grouped
    return Project(grouped, (*((name, grouped.schema.column(name)) for name, _ in keys), *outputs))


def _finished(parts: PaneParts, names: list[str], calls: list[AggregateCall]) -> Expression:
    columns = [ColumnRef(name, call.data_type) for name, call in zip(names, calls, strict=True)]
    return columns[0] if parts.finish is None else parts.finish(columns)
