"""VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP: the spread of values around their mean.

Doubles are summarised as (n, mean, Σ(x−mean)²) and combined as Chan, Golub and LeVeque do, which loses
no digits to a mean far from zero. Integers and decimals keep the exact (n, Σx, Σx²) instead: nothing can
be lost there, and rows can leave again. The values themselves tell which of the two it is.

>>> spread = VarSamp()
>>> spread.lower(spread.fold(map(spread.lift, [(1e9 + 1,), (1e9 + 2,), (1e9 + 3,)])))
1.0
>>> spread.lower(spread.lift((7,))) is None
True
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from windrow.algebra.aggregates import base, numbers
from windrow.algebra.types import DOUBLE, DataType

Moments = tuple[int, Any, Any]


class VarPop(base.AggregateFunction):
    """Σ(x−mean)² / n; NULL over no values."""

    name = "VAR_POP"
    differential = base.Differential.FULL
    gray = base.Gray.ALGEBRAIC
    #: how many degrees of freedom the mean takes: 1 for a sample
    lost = 0

    def identity(self) -> Moments:
        return 0, 0, 0

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Moments:
        value = args[0]
        if value is None:
            return 0, 0, 0
        if isinstance(value, float):
            spread = value - value  # zero, or NaN if the value is not finite, and then for good
            return 1, value + spread, spread
        return 1, value, numbers.EXACT.multiply(value, value) if isinstance(value, Decimal) else value * value

    def combine(self, a: Moments, b: Moments) -> Moments:
        if not a[0] or not b[0]:
            return a if a[0] else b
        if isinstance(a[1], float):
            return _chan(a, b)
        return a[0] + b[0], numbers.add(a[1], b[1]), numbers.add(a[2], b[2])

    def subtract(self, a: Moments, b: Moments) -> Moments:
        return a[0] - b[0], numbers.minus(a[1], b[1]), numbers.minus(a[2], b[2])

    def lower(self, state: Moments) -> float | None:
        count, freedom = state[0], state[0] - self.lost
        if freedom <= 0:
            return None
        value = state[2] / freedom if isinstance(state[1], float) else _exact(state, count * freedom)
        return self._finish(value) if value == value else math.nan

    def invertible_for(self, types: base.Types) -> bool:
        return numbers.is_exact(types)

    def _result_type(self, types: base.Types) -> DataType:
        numbers.numeric(self.name, types)
        return DOUBLE

    def _finish(self, variance: float) -> float:
        return variance


class VarSamp(VarPop):
    """Σ(x−mean)² / (n−1); NULL over fewer than two values."""

    name = "VAR_SAMP"
    lost = 1


class StddevPop(VarPop):
    """The root of VAR_POP."""

    name = "STDDEV_POP"

    def _finish(self, variance: float) -> float:
        return math.sqrt(variance)


class StddevSamp(StddevPop):
    """The root of VAR_SAMP."""

    name = "STDDEV_SAMP"
    lost = 1


def _chan(a: Moments, b: Moments) -> Moments:
    (m, mean, spread), (n, other, scatter) = a, b
    delta, share = other - mean, n / (m + n)
    return m + n, mean + delta * share, spread + scatter + delta * delta * share * m


def _exact(state: Moments, divisor: int) -> float:
    """(n·Σx² − (Σx)²) / divisor, rounded once."""
    count, total, squares = state[0], Fraction(state[1]), Fraction(state[2])
    return float((count * squares - total * total) / divisor)
