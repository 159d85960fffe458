"""AVG: a sum divided by a count, hence algebraic.

The mean of integers is a DOUBLE, of decimals a DECIMAL with four more digits, rounded half up, of
intervals an interval.

>>> mean = Average()
>>> mean.lower(mean.fold(map(mean.lift, [(1,), (None,), (2,)])))
1.5
>>> from decimal import Decimal
>>> mean.lower(mean.fold(mean.lift((Decimal(x),)) for x in ("0.10", "0.10", "0.00")))
Decimal('0.066667')
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from windrow.algebra.aggregates.base import Gray, Types
from windrow.algebra.aggregates.numbers import WIDE, checked, half_up, numeric
from windrow.algebra.aggregates.sum import Sum, Total
from windrow.algebra.types import DOUBLE, MAX_PRECISION, DataType, Kind, decimal


class Average(Sum):
    """The state of SUM; only the last step differs."""

    name = "AVG"
    gray = Gray.ALGEBRAIC

    def lower(self, state: Total) -> Any:
        count, total = state
        if not count:
            return None
        result = self._result(total)
        if result.kind is Kind.INTERVAL:
            return half_up(total, count)
        mean = WIDE.divide(total, Decimal(count)) if result.kind is Kind.DECIMAL else total / count
        return checked(mean, result, "the average")

    def _result_type(self, types: Types) -> DataType:
        only = numeric(self.name, types, intervals=True)
        if only.kind is Kind.DECIMAL:
            return decimal(min(MAX_PRECISION, only.precision + 4), min(MAX_PRECISION, only.scale + 4))
        return only if only.kind is Kind.INTERVAL else DOUBLE
