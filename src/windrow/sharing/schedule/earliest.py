"""Algorithm 9, earliest deadline first: the task that has waited longest beyond its period, by itself.

>>> from windrow.sharing.schedule.tasks import Query, by_period
>>> tasks = by_period({"G1": [Query("Q1", 10, 2), Query("Q4", 15, 3)]})
>>> [task.name for task in alone(tasks, lambda task: task.period - 4)]
['G1(Q1)']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windrow.sharing.schedule.tasks import Task

#: the updates until a task is due; negative if it is late
Left = Callable[[Task], int]


def alone(tasks: Sequence[Task], left: Left) -> list[Task]:
    """The first of the tasks, which come with the most urgent first."""
    return list(tasks[:1])
