"""Algorithm 10: with the most urgent task go those of its group that are due at the same time.

>>> from windrow.sharing.scheduling.tasks import EXAMPLE, by_period
>>> two, three, five = by_period({"G1": EXAMPLE})
>>> [task.period for task in due_together([two, three, five], {two: 0, three: 0, five: 4}.get)]
[2, 3]
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.scheduling.earliest import Left
from windrow.sharing.scheduling.tasks import Task


def due_together(tasks: Sequence[Task], left: Left) -> list[Task]:
    """The first task, and those of its group that have as much time left."""
    first = tasks[0]
    return [task for task in tasks if task.group == first.group and left(task) == left(first)]
