"""APPROX_SUM(x [, error]): the sum of whole numbers in a continuous window, within a relative error.

A negative number has no units to leave one after the other, and no relative error would mean anything where
values cancel: it is an error in the data. Fractions can be scaled to whole numbers first.

>>> from windrow.algebra.types import DOUBLE, INT
>>> ApproxSum(0.1).result_type((INT,))
BIGINT
>>> ApproxSum(0.1).result_type((DOUBLE,))
Traceback (most recent call last):
windrow.errors.QueryError: APPROX_SUM takes whole numbers, not DOUBLE (scale it: CAST(x * 100 AS BIGINT))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.aggregates.sum import Sum
from windrow.algebra.aggregates.wave_window import Waved
from windrow.algebra.types import BIGINT, DataType
from windrow.errors import DataError, QueryError

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Types


class ApproxSum(Waved, Sum):
    """SUM, where a wave is worth it within `error`."""

    name = "APPROX_SUM"
    exact = "sum"

    def _result_type(self, types: Types) -> DataType:
        if not types[0].is_integer:
            raise QueryError(
                f"{self.name} takes whole numbers, not {types[0]}",
                code="bad-argument-type",
                hint="scale it: CAST(x * 100 AS BIGINT)",
            )
        return BIGINT


def refuse_negative(value: int) -> DataError:
    """A wave of a value below zero does not exist."""
    return DataError(
        f"APPROX_SUM takes numbers from 0 on, not {value}",
        code="negative-value",
        hint="take SUM, or APPROX_SUM(x) FILTER (WHERE x >= 0) and APPROX_SUM(-x) FILTER (WHERE x < 0)",
    )
