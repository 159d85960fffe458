"""Costs as they were measured: how long it took to answer so many queries, with windows of such lengths.

What a probe, an interval and an answer cost is what explains the last measurements best, none of it being
less than nothing. Where measurements cannot tell them apart, each has its part.

>>> known = Measured()
>>> for longest, answers in ((10, 1), (30, 4), (10, 5), (60, 2), (30, 1)):
...     known.add(longest, answers, 2.0 + 0.1 * (longest - 1) + 0.5 * answers)
>>> found = known.costs
>>> round(found.start, 2), round(found.read, 2), round(found.answer, 2)
(2.0, 0.1, 0.5)
>>> alike = Measured()
>>> alike.add(11, 5, 3.0)
>>> round(alike.costs.start, 2), round(alike.costs.read, 2), round(alike.costs.answer, 2)
(1.0, 0.1, 0.2)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from windrow.sharing.schedule.costs import Costs

#: so many measurements are remembered
MEMORY = 48
#: how much less than one measurement it counts that costs should be small
_RIDGE = 1e-6


@dataclass
class Measured:
    """The measurements of one group, the newest last."""

    count: int = 0
    _seen: deque[tuple[int, int, float]] = field(default_factory=lambda: deque(maxlen=MEMORY))
    _costs: Costs | None = None

    def add(self, longest: int, answers: int, seconds: float) -> None:
        """So many answers, the longest window of so many intervals, took so long."""
        self._seen.append((longest, answers, seconds))
        self.count += 1
        self._costs = None

    @property
    def costs(self) -> Costs:
        """What things cost; nothing, as long as nothing was measured."""
        if self._costs is None:
            self._costs = self._fitted()
        return self._costs

    def _fitted(self) -> Costs:
        if not self._seen:
            return Costs(0.0, 0.0, 0.0)
        seen = np.array(self._seen, dtype=np.float64)
        features = np.column_stack([np.ones(len(seen)), np.maximum(seen[:, 0] - 1, 0), seen[:, 1]])
        scale = np.maximum(features.max(axis=0), 1.0)
        start, read, answer = (_not_negative(features / scale, seen[:, 2]) / scale).tolist()
        return Costs(read, answer, start)


def _not_negative(features: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Least squares; what would be less than nothing is nothing, and the others explain the rest."""
    left = [place for place in range(features.shape[1]) if features[:, place].any()]
    found = np.zeros(features.shape[1])
    while left:
        mine = features[:, left]
        ridge = np.eye(len(left)) * _RIDGE * len(seconds)
        found[left] = np.linalg.solve(mine.T @ mine + ridge, mine.T @ seconds)
        worst = min(left, key=lambda place: found[place])
        if found[worst] >= 0:
            break
        found[worst] = 0.0
        left.remove(worst)
    return found
