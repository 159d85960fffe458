"""FIRST and LAST: the value of the row at one end of the row order; a NULL there counts, as in Spark.

The state carries the row's sortable key (WATTR, then all columns), so that neither the order of
arrival nor the order of combining matters. Rows with equal keys are equal rows.

>>> last = Last()
>>> last.lower(last.combine(last.lift(("new",), (9,)), last.lift(("old",), (2,))))
'new'
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.extremum import OfOneRow, Pair
from windrow.algebra.aggregates.order import sortable


class First(OfOneRow):
    """The place in the state is the row's key."""

    name = "FIRST"
    ordered = True
    choose = staticmethod(min)

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Pair:
        return sortable(order), sortable(args[0])


class Last(First):
    """The same at the other end."""

    name = "LAST"
    choose = staticmethod(max)
