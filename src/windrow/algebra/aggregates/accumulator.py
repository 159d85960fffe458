"""A state that changes in place.

Immutable states are what panes, checkpoints and partial results exchange. A kernel that adds and
removes single rows wants something cheaper: an accumulator takes lifted states one by one, and an
aggregate whose states are large gives one that is updated in constant time.

>>> from windrow.algebra.aggregates import make
>>> total = make("sum").accumulator()
>>> for value in (3, None, 4):
...     total.add(make("sum").lift((value,)))
>>> total.value()
7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.algebra.aggregates.base import Aggregate


class Accumulator:
    """A running state of one aggregate."""

    def __init__(self, aggregate: Aggregate, state: Any) -> None:
        self.aggregate = aggregate
        self._state = state

    def add(self, state: Any) -> None:
        """Append the rows of `state`."""
        self._state = self.aggregate.combine(self._state, state)

    def remove(self, state: Any) -> None:
        """Take the rows of `state` out again; only where the aggregate is invertible."""
        self._state = self.aggregate.subtract(self._state, state)

    def state(self) -> Any:
        """What was accumulated, as an immutable state."""
        return self._state

    def value(self) -> Any:
        """The value of the aggregate now."""
        return self.aggregate.lower(self._state)
