"""Late sharing (thesis, 8.4.5): under overload all late tasks of a group are done together.

Conservative scheduling would do those that are two updates late before those that are one late:

>>> from windrow.sharing.scheduling.tasks import EXAMPLE, by_period
>>> two, three, five = by_period({"G1": EXAMPLE})
>>> [task.period for task in late_together([two, three, five], {two: -2, three: -1, five: 0}.get)]
[2, 3]
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.scheduling.conservative import due_together
from windrow.sharing.scheduling.earliest import Left
from windrow.sharing.scheduling.tasks import Task


def late_together(tasks: Sequence[Task], left: Left) -> list[Task]:
    """If the first task is late, all late ones of its group; else those that are due with it."""
    first = tasks[0]
    if left(first) >= 0:
        return due_together(tasks, left)
    return [task for task in tasks if task.group == first.group and left(task) < 0]
