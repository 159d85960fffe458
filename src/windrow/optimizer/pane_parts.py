"""How an aggregate of a window follows from aggregates of its panes: what each pane computes (the PLQ), how
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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.aggregates import make
from windrow.algebra.expressions import TRUE, Cast, Expression, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import AggregateCall
from windrow.algebra.types import BIGINT, DOUBLE, DataType, Kind, decimal

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
