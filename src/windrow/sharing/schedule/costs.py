"""What schedules cost (thesis, 8.4.4): intervals read, and what is done for each answer.

Queries of one group that are refreshed together read the intervals of the longest window, once. Updates of
synopses cost the same whatever the schedule, and are left out.

>>> short, long = Query("Q1", 10, 2), Query("Q4", 15, 3)
>>> Costs().joint([short]), Costs().joint([short, long])
(9.0, 14.0)
>>> round(Costs().rate([Task("G1", (short,), 2), Task("G1", (long,), 3)]), 2)
7.67

Costs as they were measured: how long it took to answer so many queries, with windows of such lengths.

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

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from windrow.sharing.schedule.tasks import Query, Task

#: schedules that repeat after more updates than these are looked at for so many
HORIZON = 840


@dataclass(frozen=True)
class Costs:
    """A probe costs `start`, each interval after the first `read`, each answer `answer`."""

    read: float = 1.0
    answer: float = 0.0
    start: float = 0.0

    def joint(self, queries: Sequence[Query]) -> float:
        """The cost of refreshing queries of one group together."""
        longest = max(query.length for query in queries)
        return self.start + self.read * (longest - 1) + self.answer * len(queries)

    def rate(self, tasks: Sequence[Task]) -> float:
        """The cost per update of tasks of one group; those that are due together run together."""
        periods = np.array([task.period for task in tasks])
        horizon = min(HORIZON, math.lcm(*periods.tolist()))
        due = np.arange(1, horizon + 1)[np.newaxis] % periods[:, np.newaxis] == 0
        longest = (due * np.array([task.length for task in tasks])[:, np.newaxis]).max(axis=0)
        answers = (due * np.array([len(task.queries) for task in tasks])[:, np.newaxis]).sum()
        probes = int((longest > 0).sum())
        read = self.read * float(longest.sum() - probes)
        return (self.start * probes + read + self.answer * float(answers)) / horizon


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
