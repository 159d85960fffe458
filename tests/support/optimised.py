"""The plan that is preferred, whether kernels run it or not."""

from __future__ import annotations

from collections.abc import Collection

from windrow.algebra.plan import Emit
from windrow.optimizer.flows import Statistics
from windrow.optimizer.optimizer import Candidate, by_preference, candidates


def optimise(emit: Emit, statistics: Statistics | None = None, disabled: Collection[str] = ()) -> Candidate:
    """The cheapest plan found for a query."""
    return by_preference(candidates(emit, statistics, disabled))[0]
