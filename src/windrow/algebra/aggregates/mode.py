"""MODE: the most frequent value, and of several the least.

>>> mode = Mode()
>>> mode.lower(mode.fold(map(mode.lift, [("b",), ("a",), (None,), ("b",), ("a",)])))
'a'
"""

from __future__ import annotations

from typing import Any

from windrow.algebra.aggregates.base import Types
from windrow.algebra.aggregates.multiset import Counting, Counts
from windrow.algebra.aggregates.order import restored
from windrow.algebra.types import DataType


class Mode(Counting):
    """NULL over no values."""

    name = "MODE"

    def of_counts(self, counts: Counts) -> Any:
        if not counts:
            return None
        most = max(counts.values())
        return restored(min(value for value, count in counts.items() if count == most))

    def _result_type(self, types: Types) -> DataType:
        return types[0]
