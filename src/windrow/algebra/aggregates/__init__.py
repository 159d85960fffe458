"""The algebra of aggregates: facts and laws that executors and rules rely on; all of them, by SQL names.

A new one is a class in a file of its own, and in its family here. User-defined aggregates are found by the
same functions, and are not among the `names`. `make` gives an aggregate; `fold` its lifted rows in any
grouping, and `lower` the state.

>>> make("quantile", (0.9,))
QUANTILE(0.9)
>>> make("Sum", distinct=True)
DISTINCT SUM
>>> make("summ")
Traceback (most recent call last):
    ...
windrow.errors.QueryError: no aggregate `summ` (did you mean `SUM`?)

>>> from windrow.algebra.types import INT
>>> mean = make("avg", types=(INT,))
>>> old, new = mean.fold([mean.lift((1,)), mean.lift((2,))]), mean.lift((6,))
>>> mean.lower(mean.combine(old, new))
3.0
>>> mean.invertible, mean.lower(mean.subtract(mean.combine(old, new), old))
(True, 6.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.aggregates import user
from windrow.algebra.aggregates.approx_count import ApproxCount, ApproxSum
from windrow.algebra.aggregates.approx_count_distinct import ApproxCountDistinct
from windrow.algebra.aggregates.approx_frequency import ApproxFrequency
from windrow.algebra.aggregates.approx_quantile import ApproxQuantile
from windrow.algebra.aggregates.approx_top_k import ApproxTopK
from windrow.algebra.aggregates.base import AggregateFunction, Differential, Gray, Size, State, Types
from windrow.algebra.aggregates.count import Count
from windrow.algebra.aggregates.covariance import Corr, CovarPop, CovarSamp, RegrIntercept, RegrSlope
from windrow.algebra.aggregates.definition import Definition
from windrow.algebra.aggregates.distinct import DistinctValues
from windrow.algebra.aggregates.edge import First, Last
from windrow.algebra.aggregates.extremum import AnyValue, Max, MaxBy, Min, MinBy
from windrow.algebra.aggregates.frequent import Frequent
from windrow.algebra.aggregates.in_order import ArrayAgg, ListAgg, StringAgg
from windrow.algebra.aggregates.logical import BitAnd, BitOr, BitXor, BoolAnd, BoolOr
from windrow.algebra.aggregates.multiset import HeavyHitters, Histogram, Mode, TopK
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.aggregates.quantile import Median, PercentileDisc, Quantile
from windrow.algebra.aggregates.sum import Average, Sum
from windrow.algebra.aggregates.variance import StddevPop, StddevSamp, VarPop, VarSamp
from windrow.errors import QueryError, nearest

if TYPE_CHECKING:
    from windrow.algebra.operators import AggregateCall

_ALIASES: dict[str, type[AggregateFunction]] = {
    "ARG_MAX": MaxBy,
    "ARG_MIN": MinBy,
    "COLLECT_LIST": ArrayAgg,
    "EARLIEST_BY_OFFSET": First,
    "EVERY": BoolAnd,
    "FIRST_VALUE": First,
    "LAST_VALUE": Last,
    "LATEST_BY_OFFSET": Last,
    "MEAN": Average,
    "PERCENTILE": Quantile,
    "SOME": BoolOr,
    "STDDEV": StddevSamp,
    "VARIANCE": VarSamp,
}
_FAMILIES: tuple[tuple[type[AggregateFunction], ...], ...] = (
    (Count, Sum, Average),
    (VarPop, VarSamp, StddevPop, StddevSamp),
    (CovarPop, CovarSamp, Corr, RegrSlope, RegrIntercept),
    (Min, Max, AnyValue, MinBy, MaxBy, First, Last),
    (BoolAnd, BoolOr, BitAnd, BitOr, BitXor),
    (Median, Quantile, PercentileDisc, Mode, Histogram, TopK, HeavyHitters, Frequent),
    (ArrayAgg, StringAgg, ListAgg),
    (ApproxCount, ApproxSum, ApproxCountDistinct, ApproxFrequency, ApproxQuantile, ApproxTopK),
)
_REGISTRY = _ALIASES | {kind.name: kind for family in _FAMILIES for kind in family}


def names() -> tuple[str, ...]:
    """All names of built-in aggregates, aliases included, sorted."""
    return tuple(sorted(_REGISTRY))


def is_aggregate(name: str) -> bool:
    """Is there an aggregate of this name, in any case?"""
    return name.upper() in _REGISTRY or user.find(name) is not None


def lookup(name: str) -> type[AggregateFunction]:
    """The class behind a name: it declares the arity and the constant parameters, and makes instances."""
    found = _REGISTRY.get(name.upper()) or user.find(name)
    if found is None:
        known = [*_REGISTRY, *user.names()]
        raise QueryError(f"no aggregate `{name}`", code="unknown-aggregate", hint=nearest(name, known))
    return found


def make(
    name: str, params: tuple[Any, ...] = (), *, distinct: bool = False, types: Types | None = None
) -> AggregateFunction:
    """An aggregate with its constants; with `types` also checked against and bound to its arguments.

    DISTINCT is nothing to an aggregate that duplicates do not change anyway.
    """
    aggregate = lookup(name)(*params)
    if distinct and not aggregate.duplicate_insensitive:
        aggregate = DistinctValues(aggregate)
    return aggregate if types is None else aggregate.bind(types)


def function_of(call: AggregateCall) -> AggregateFunction:
    """The aggregate with its algebra."""
    types = tuple(argument.type for argument in call.args)
    return make(call.function, call.params, distinct=call.distinct, types=types)
