"""FIRST and LAST: the value of the row at one end of the row order; a NULL there counts, as in Spark.

The state carries the row's sortable key (WATTR, then all columns), so that neither the order of
arrival nor the order of combining matters. Rows with equal keys are equal rows.

>>> last = Last()
>>> last.lower(last.combine(last.lift(("new",), (9,)), last.lift(("old",), (2,))))
'new'
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Gray, Types
from windrow.algebra.aggregates.order import restored, sortable
from windrow.algebra.types import DataType

Edge = tuple[tuple[Any, ...], Any] | None


class First(AggregateFunction):
    """The state is (key, value), both sortable, of the first row; None for no rows."""

    name = "FIRST"
    duplicate_insensitive = True
    ordered = True
    gray = Gray.ALGEBRAIC

    def identity(self) -> Edge:
        return None

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Edge:
        return sortable(order), sortable(args[0])

    def combine(self, a: Edge, b: Edge) -> Edge:
        if a is None or b is None:
            return b if a is None else a
        return b if b[0] < a[0] else a

    def lower(self, state: Edge) -> Any:
        return None if state is None else restored(state[1])

    def _result_type(self, types: Types) -> DataType:
        return types[0]


class Last(First):
    """The state is (key, value), both sortable, of the last row; None for no rows."""

    name = "LAST"

    def combine(self, a: Edge, b: Edge) -> Edge:
        if a is None or b is None:
            return b if a is None else a
        return b if b[0] > a[0] else a
