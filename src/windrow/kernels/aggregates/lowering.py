"""Lowering: from a combined state to the value of the aggregate, a column at a time.

Sums that do not fit their type fail here and nowhere before: only a sum that is asked for can overflow.
Quotients of exact numbers are rounded once; where 53 bits hold them numpy divides, else Python does.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Aggregate
from windrow.algebra.aggregates.approx_count import ApproxCount
from windrow.algebra.aggregates.approx_sum import ApproxSum
from windrow.algebra.aggregates.average import Average
from windrow.algebra.aggregates.bits import BitOr
from windrow.algebra.aggregates.count import Count
from windrow.algebra.aggregates.covariance import CovarPop
from windrow.algebra.aggregates.edge import First
from windrow.algebra.aggregates.extremum import Min
from windrow.algebra.aggregates.numbers import checked
from windrow.algebra.aggregates.partners import MinBy
from windrow.algebra.aggregates.sum import Sum
from windrow.algebra.aggregates.user_merged import MergedAggregate
from windrow.algebra.aggregates.variance import StddevPop, VarPop
from windrow.algebra.types import BIGINT, DataType, Kind
from windrow.errors import DataError
from windrow.kernels.aggregates.partials import ExactTotal, Partial
from windrow.kernels.aggregates.user_states import finals
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import column_of, polars_type

if TYPE_CHECKING:
    import numpy.typing as npt

_EXACT_DOUBLE = 2.0**53


@singledispatch
def lower(aggregate: Aggregate, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    """The values of an aggregate, one for each row of states."""
    raise AssertionError(f"{aggregate!r} has no partial")


@lower.register
def _(aggregate: ApproxCount, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 1)


@lower.register
def _(aggregate: ApproxSum, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _where(_count(partial, frame) > 0, _column(partial, frame, 1))


@lower.register
def _(aggregate: Count, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 0)


@lower.register
def _(aggregate: Min, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 1)


@lower.register
def _(aggregate: MergedAggregate, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    values = finals(aggregate.definition, _column(partial, frame, 1).to_list())
    return column_of("", _result(aggregate), values)


@lower.register
def _(aggregate: First, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 1)


@lower.register
def _(aggregate: Sum, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count = _count(partial, frame)
    if not isinstance(partial, ExactTotal):
        return _where(count > 0, _column(partial, frame, 1))
    return _where(count > 0, _fitted(_total(partial, frame), _result(aggregate), "the sum"))


@lower.register
def _(aggregate: Average, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count, result = _count(partial, frame), _result(aggregate)
    size = np.maximum(count, 1)
    if not isinstance(partial, ExactTotal):
        return _where(count > 0, pl.Series(_column(partial, frame, 1).to_numpy() / size))
    total = _total(partial, frame)
    if result.kind is Kind.DOUBLE:
        return _where(count > 0, pl.Series(_quotient(total, size)))
    unit = 10 ** (result.scale - partial.kind.scale)
    means = [decimals.half_up(t * unit, n) for t, n in zip(total.tolist(), size.tolist(), strict=True)]
    return _where(count > 0, _fitted(decimals.narrow(decimals.ints(means)), result, "the average"))


@lower.register
def _(aggregate: VarPop, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    count = _count(partial, frame)
    freedom = count - aggregate.lost
    size = np.maximum(freedom, 1)
    if isinstance(partial, ExactTotal):
        variance = _exact_variance(partial, frame, count, size)
    else:
        variance = _column(partial, frame, 2).to_numpy() / size
    root = isinstance(aggregate, StddevPop)
    return _where(freedom > 0, pl.Series(np.sqrt(variance) if root else variance))


@lower.register
def _(aggregate: BitOr, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    values = _column(partial, frame, 1).cast(polars_type(_result(aggregate)))
    return _where(_count(partial, frame) > 0, values)


@lower.register
def _(aggregate: MinBy, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    return _column(partial, frame, 1)


@lower.register
def _(aggregate: CovarPop, partial: Partial, frame: pl.DataFrame) -> pl.Series:
    """By the algebra's own formula, a state at a time: there is one for each answer."""
    states = zip(*(_column(partial, frame, place).to_list() for place in range(6)), strict=True)
    return pl.Series([aggregate.lower(state) for state in states], dtype=pl.Float64)


def _exact_variance(
    partial: ExactTotal, frame: pl.DataFrame, count: npt.NDArray[np.int64], size: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """(n·Σx² − (Σx)²) / (n·freedom), rounded once."""
    total, squares = _total(partial, frame), _squares(partial, frame)
    bound = np.maximum(count * squares.astype(float), total.astype(float) ** 2)
    unit = 10 ** (2 * partial.kind.scale)
    if total.dtype != object and squares.dtype != object and (bound * unit < _EXACT_DOUBLE).all():
        return np.asarray((count * squares - total * total) / (np.maximum(count, 1) * size * unit))
    states = zip(count.tolist(), total.tolist(), squares.tolist(), size.tolist(), strict=True)
    return np.array([(n * q - t * t) / (max(n, 1) * f * unit) for n, t, q, f in states])


def _column(partial: Partial, frame: pl.DataFrame, place: int) -> pl.Series:
    return frame[f"{partial.label}.{place}"]


def _count(partial: Partial, frame: pl.DataFrame) -> npt.NDArray[np.int64]:
    return _column(partial, frame, 0).to_numpy()


def _total(partial: ExactTotal, frame: pl.DataFrame) -> npt.NDArray[Any]:
    return decimals.joined([_column(partial, frame, 1 + i).to_numpy() for i in range(partial.limbs)])


def _squares(partial: ExactTotal, frame: pl.DataFrame) -> npt.NDArray[Any]:
    first = 1 + partial.limbs
    return decimals.joined([_column(partial, frame, first + i).to_numpy() for i in range(2 * partial.limbs)])


def _quotient(total: npt.NDArray[Any], size: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    if total.dtype != object and (np.abs(total.astype(float)) < _EXACT_DOUBLE).all():
        return np.asarray(total / size)
    return np.array([t / n for t, n in zip(total.tolist(), size.tolist(), strict=True)])


def _fitted(values: npt.NDArray[Any], kind: DataType, what: str) -> pl.Series:
    """Exact integers as values of their type; a DataError where one does not fit."""
    if kind.kind is not Kind.DECIMAL:
        least, greatest = BIGINT.bounds
        wrong = [v for v in values if not least <= v <= greatest] if values.dtype == object else []
        if wrong:
            checked(int(wrong[0]), BIGINT, what)
        return pl.Series(values.astype(np.int64)).cast(polars_type(kind))
    long = decimals.too_long(values, kind)
    if long.any():
        raise DataError(
            f"{what} has more digits than {kind}",
            code="arithmetic-overflow",
            hint="cast the argument to DOUBLE",
        )
    return decimals.decimal_column(values, kind)


def _where(known: npt.NDArray[np.bool_], values: pl.Series) -> pl.Series:
    return values if known.all() else values.zip_with(pl.Series(known), values.clear(len(values)))


def _result(aggregate: Aggregate) -> DataType:
    assert aggregate.result is not None
    return aggregate.result
