"""SUM and AVG: the number of values and their total.

Integers and decimals are totalled exactly, so the sum is the same in any order, and only a sum that
is asked for can overflow. Doubles are added as IEEE says and never subtracted again: a NaN, an
infinity or a huge value must leave nothing behind. Without non-NULL values there is no sum.

>>> total = Sum().bind((BIGINT,))
>>> most = (1 << 63) - 1
>>> total.lower(total.fold(map(total.lift, [(most,), (1,), (-1,)]))) == most
True
>>> total.lower(total.lift((None,))) is None
True
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from windrow.algebra.aggregates import base, numbers
from windrow.algebra.types import BIGINT, DOUBLE, MAX_PRECISION, DataType, Kind, decimal

Total = tuple[int, Any]


class Sum(base.AggregateFunction):
    """The state is (number of values, total)."""

    name = "SUM"
    differential = base.Differential.FULL

    def identity(self) -> Total:
        return 0, 0

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Total:
        return (0, 0) if args[0] is None else (1, args[0])

    def combine(self, a: Total, b: Total) -> Total:
        return a[0] + b[0], numbers.add(a[1], b[1])

    def subtract(self, a: Total, b: Total) -> Total:
        return a[0] - b[0], numbers.minus(a[1], b[1])

    def lower(self, state: Total) -> Any:
        count, total = state
        assert self.result is not None
        return numbers.checked(total, self.result, "the sum") if count else None

    def _result_type(self, types: base.Types) -> DataType:
        only = numbers.numeric(self.name, types, intervals=True)
        if only.kind is Kind.DECIMAL:
            return decimal(min(MAX_PRECISION, only.precision + 10), only.scale)
        if only.kind is Kind.INTERVAL:
            return only
        return BIGINT if only.is_integer else DOUBLE

    def invertible_for(self, types: base.Types) -> bool:
        return numbers.is_exact(types)


class Average(Sum):
    """AVG: a sum divided by a count, hence algebraic.

    The state of SUM; only the last step differs.

    The mean of integers is a DOUBLE, of decimals a DECIMAL with four more digits, rounded half up, of
    intervals an interval.

    >>> mean = Average().bind((BIGINT,))
    >>> mean.lower(mean.fold(map(mean.lift, [(1,), (None,), (2,)])))
    1.5
    >>> mean = Average().bind((decimal(3, 2),))
    >>> mean.lower(mean.fold(mean.lift((Decimal(x),)) for x in ("0.10", "0.10", "0.00")))
    Decimal('0.066667')
    """

    name = "AVG"
    gray = base.Gray.ALGEBRAIC

    def lower(self, state: Total) -> Any:
        count, total = state
        if not count:
            return None
        assert self.result is not None
        if self.result.kind is Kind.INTERVAL:
            return numbers.half_up(total, count)
        mean = (
            numbers.WIDE.divide(total, Decimal(count)) if self.result.kind is Kind.DECIMAL else total / count
        )
        return numbers.checked(mean, self.result, "the average")

    def _result_type(self, types: base.Types) -> DataType:
        only = numbers.numeric(self.name, types, intervals=True)
        if only.kind is Kind.DECIMAL:
            return decimal(min(MAX_PRECISION, only.precision + 4), min(MAX_PRECISION, only.scale + 4))
        return only if only.kind is Kind.INTERVAL else DOUBLE
