"""COVAR_POP, COVAR_SAMP, CORR, REGR_SLOPE, REGR_INTERCEPT: how two values vary together.

Pairs are summarised as (n, means, Σ(x−x̄)², Σ(y−ȳ)², Σ(x−x̄)(y−ȳ)) and combined as Chan, Golub and LeVeque do,
which loses no digits to means far from zero. Pairs with a NULL are ignored; all is computed in doubles.

>>> line = RegrSlope()
>>> line.lower(line.fold(map(line.lift, [(3.0, 1.0), (5.0, 2.0), (7.0, 3.0)])))
2.0
"""

from __future__ import annotations

import math
from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Gray, Types
from windrow.algebra.types import DOUBLE, DataType
from windrow.errors import QueryError

#: n, mean of x, mean of y, Σ(x−x̄)², Σ(y−ȳ)², Σ(x−x̄)(y−ȳ)
CoMoments = tuple[int, float, float, float, float, float]
_NOTHING: CoMoments = (0, 0.0, 0.0, 0.0, 0.0, 0.0)


class CovarPop(AggregateFunction):
    """Σ(x−x̄)(y−ȳ) / n; NULL over no pairs."""

    name = "COVAR_POP"
    arity = (2, 2)
    takes = (DOUBLE, DOUBLE)
    gray = Gray.ALGEBRAIC
    #: how many degrees of freedom the means take: 1 for a sample
    lost = 0

    def identity(self) -> CoMoments:
        return _NOTHING

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> CoMoments:
        if None in args:
            return _NOTHING
        x, y = map(float, args)
        spread = (x - x) + (y - y)  # zero, or NaN if a value is not finite, and then for good
        return 1, x + spread, y + spread, spread, spread, spread

    def combine(self, a: CoMoments, b: CoMoments) -> CoMoments:
        if not a[0] or not b[0]:
            return a if a[0] else b
        share, both = b[0] / (a[0] + b[0]), a[0] + b[0]
        dx, dy = b[1] - a[1], b[2] - a[2]
        weight = share * a[0]
        return (
            both,
            a[1] + dx * share,
            a[2] + dy * share,
            a[3] + b[3] + dx * dx * weight,
            a[4] + b[4] + dy * dy * weight,
            a[5] + b[5] + dx * dy * weight,
        )

    def lower(self, state: CoMoments) -> float | None:
        if state[0] <= self.lost:
            return None
        return _nan(state[5] / (state[0] - self.lost))

    def _result_type(self, types: Types) -> DataType:
        for kind in types:
            if not kind.is_fractional:
                raise QueryError(
                    f"{self.name} takes numbers, not {kind}",
                    code="bad-argument-type",
                    hint="CAST the argument to DOUBLE",
                )
        return DOUBLE


class CovarSamp(CovarPop):
    """Σ(x−x̄)(y−ȳ) / (n−1); NULL over fewer than two pairs."""

    name = "COVAR_SAMP"
    lost = 1


class Corr(CovarPop):
    """Pearson's correlation; NULL where x or y does not vary."""

    name = "CORR"

    def lower(self, state: CoMoments) -> float | None:
        if not state[0] or not state[3] or not state[4]:
            return None
        return _nan(state[5] / (math.sqrt(state[3]) * math.sqrt(state[4])))


class RegrSlope(CovarPop):
    """The slope of the line through (x, y) pairs, called REGR_SLOPE(y, x); NULL where x does not vary."""

    name = "REGR_SLOPE"

    def lower(self, state: CoMoments) -> float | None:
        return _nan(state[5] / state[4]) if state[0] and state[4] else None


class RegrIntercept(CovarPop):
    """Where that line meets x = 0, called REGR_INTERCEPT(y, x)."""

    name = "REGR_INTERCEPT"

    def lower(self, state: CoMoments) -> float | None:
        if not state[0] or not state[4]:
            return None
        return _nan(state[1] - state[5] / state[4] * state[2])


def _nan(value: float) -> float:
    return value if value == value else math.nan
