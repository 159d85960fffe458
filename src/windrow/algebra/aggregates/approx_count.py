"""APPROX_COUNT(* [, error]), APPROX_COUNT(x [, error]): rows of a continuous window, within a relative error.

>>> count = ApproxCount(0.1)
>>> count.marks
11
>>> print(count.error_bound)
relative error below 10 %, always; state at most 11 rows per group and power of two up to the value

APPROX_SUM(x [, error]): the sum of whole numbers in a continuous window, within a relative error.

A negative number has no units to leave one after the other, and no relative error would mean anything where
values cancel: it is an error in the data. Fractions can be scaled to whole numbers first.

>>> from windrow.algebra.types import DOUBLE, INT
>>> ApproxSum(0.1).result_type((INT,))
BIGINT
>>> ApproxSum(0.1).result_type((DOUBLE,))
Traceback (most recent call last):
windrow.errors.QueryError: APPROX_SUM takes whole numbers, not DOUBLE (scale it: CAST(x * 100 AS BIGINT))

What APPROX_COUNT and APPROX_SUM have in common: a window that is not known to the row, only to within ε.

Over a window that moves at every instant, an exact count has to know when each row leaves. A wave does not:
it remembers few rows, the younger the more of them. Think of a sum as that of units, numbered from 1 on in
the order of the rows; a row of value v has v units, and for a count every value is 1. Let N be the number
of the last one. Of the multiples of 2^l, for every l, the last c = ⌈1/ε⌉ + 1 up to N are *marked*, and so is
unit 1. Only rows with a marked unit are kept, and the last row. If units up to e have left,

    the greatest mark ≤ e        says how many have left at least,
    the kept row with the least mark > e    how many at most,

and the estimate is N without the mean of the two, rounded down. Both lie between neighbouring multiples of
2^l for some l where the last c multiples of 2^(l−1) are all still there; so the sum is more than
(c−1)·2^(l−1) and the error at most 2^(l−1): less than ε times the sum. At most c rows are kept for each l. As
long as unit 1 is there, the estimate is exact.

When nothing is left, numbers start anew, so that nothing is remembered of a group without rows. Rows of one
instant are ordered by their values. All this depends on the rows and their instants alone: not on how they
are cut into steps, nor on when anybody looks.

This is the deterministic wave of Gibbons and Tirthapura (2002), which bounds error and space as the
exponential histograms of Datar, Gionis, Indyk and Motwani (2002) do; its marks follow from N, without loops.
"""

from __future__ import annotations

import math
from typing import Any, Final

from windrow.algebra.aggregates import base, count, sum
from windrow.algebra.types import BIGINT, DataType
from windrow.errors import DataError

LEAST_ERROR: Final = 1e-5


class Waved(base.AggregateFunction):
    """An aggregate that is kept as a wave. As states it is the exact one: what panes hold anyway.

    `exact` is the aggregate it stands for, wherever that costs nothing.
    """

    options = (("error", 0.01),)
    exact: str

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        self.error = base.error_of(self.name, self.params[0], LEAST_ERROR)
        self.params = (self.error,)
        #: how many multiples of each power of two are marked
        self.marks = math.ceil(1 / self.error) + 1
        self.error_bound = (
            f"relative error below {100 * self.error:.4g} %, always; state at most {self.marks} rows per"
            " group and power of two up to the value"
        )


class ApproxSum(Waved, sum.Sum):
    """SUM, where a wave is worth it within `error`."""

    name = "APPROX_SUM"
    exact = "sum"

    def _result_type(self, types: base.Types) -> DataType:
        base.whole_number(self.name, types, "scale it: CAST(x * 100 AS BIGINT)")
        return BIGINT


def refuse_negative(value: int) -> DataError:
    """A wave of a value below zero does not exist."""
    return DataError(
        f"APPROX_SUM takes numbers from 0 on, not {value}",
        code="negative-value",
        hint="take SUM, or APPROX_SUM(x) FILTER (WHERE x >= 0) and APPROX_SUM(-x) FILTER (WHERE x < 0)",
    )


class ApproxCount(Waved, count.Count):
    """COUNT, where a wave is worth it within `error`."""

    name = "APPROX_COUNT"
    arity = (0, 1)
    exact = "count"
