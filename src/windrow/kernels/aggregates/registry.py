"""Which partial an aggregate has.

It follows from the class that declares its state in `windrow.algebra.aggregates`, so AVG has SUM's, ANY_VALUE
has MIN's, and a new aggregate with a known state needs nothing here; whether a total may be subtracted again
follows from the types its inverse is declared for.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from windrow.algebra.aggregates import Aggregate
from windrow.algebra.aggregates.approx_count import ApproxCount
from windrow.algebra.aggregates.bits import BitOr
from windrow.algebra.aggregates.count import Count
from windrow.algebra.aggregates.covariance import CovarPop
from windrow.algebra.aggregates.edge import First, Last
from windrow.algebra.aggregates.extremum import Max, Min
from windrow.algebra.aggregates.partners import MaxBy, MinBy
from windrow.algebra.aggregates.sum import Sum
from windrow.algebra.aggregates.user_merged import MergedAggregate
from windrow.algebra.aggregates.variance import VarPop
from windrow.algebra.aggregates.wave_window import Waved
from windrow.errors import QueryError
from windrow.kernels.aggregates.pairs import Bits, Chosen, Paired
from windrow.kernels.aggregates.partials import Counted, ExactTotal, FloatMoments, FloatTotal, Partial
from windrow.kernels.aggregates.selections import Edge, Extreme
from windrow.kernels.aggregates.user_states import UserState
from windrow.kernels.aggregates.waves import Wave

if TYPE_CHECKING:
    from windrow.algebra.types import DataType


@singledispatch
def partial_of(aggregate: Aggregate, label: str) -> Partial:
    """The partial of an aggregate that is bound to its types.

    >>> from windrow.algebra.aggregates import make
    >>> from windrow.algebra.types import BIGINT, DOUBLE
    >>> [type(partial_of(make("avg", types=(t,)), "p")).__name__ for t in (BIGINT, DOUBLE)]
    ['ExactTotal', 'FloatTotal']
    """
    raise QueryError(f"{aggregate!r} has no form on columns", code="unsupported")


@partial_of.register
def _(aggregate: Waved, label: str) -> Partial:
    return Wave(label, aggregate.marks, isinstance(aggregate, ApproxCount))


@partial_of.register
def _(aggregate: Count, label: str) -> Partial:
    return Counted(label)


@partial_of.register
def _(aggregate: Sum, label: str) -> Partial:
    return ExactTotal(label, _only(aggregate)) if aggregate.invertible else FloatTotal(label)


@partial_of.register
def _(aggregate: VarPop, label: str) -> Partial:
    exact = aggregate.invertible
    return ExactTotal(label, _only(aggregate), squared=True) if exact else FloatMoments(label)


@partial_of.register
def _(aggregate: Min, label: str) -> Partial:
    return Extreme(label, isinstance(aggregate, Max))


@partial_of.register
def _(aggregate: MergedAggregate, label: str) -> Partial:
    return UserState(label, aggregate.definition, aggregate.types or ())


@partial_of.register
def _(aggregate: First, label: str) -> Partial:
    return Edge(label, isinstance(aggregate, Last))


@partial_of.register
def _(aggregate: BitOr, label: str) -> Partial:
    return Bits(label, aggregate.name)


@partial_of.register
def _(aggregate: MinBy, label: str) -> Partial:
    return Chosen(label, isinstance(aggregate, MaxBy))


@partial_of.register
def _(aggregate: CovarPop, label: str) -> Partial:
    return Paired(label)


def _only(aggregate: Aggregate) -> DataType:
    assert aggregate.types is not None
    return aggregate.types[0]
