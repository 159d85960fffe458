"""What schedules cost (thesis, 8.4.4): intervals read, and what is done for each answer.

Queries of one group that are refreshed together read the intervals of the longest window, once. Updates of
synopses cost the same whatever the schedule, and are left out.

>>> short, long = Query("Q1", 10, 2), Query("Q4", 15, 3)
>>> Costs().joint([short]), Costs().joint([short, long])
(9.0, 14.0)
>>> round(Costs().rate([Task("G1", (short,), 2), Task("G1", (long,), 3)]), 2)
7.67
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
