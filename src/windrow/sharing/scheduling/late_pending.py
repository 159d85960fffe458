"""Algorithm 11, late-pending sharing: with late tasks go those of their group that are due, not to be late.

Figure 8.6 (d): G11 and G12 are late by one update, G13 is due; all three are done together.

>>> from windrow.sharing.scheduling.tasks import EXAMPLE, by_period
>>> two, three, five = by_period({"G1": EXAMPLE})
>>> [task.period for task in late_and_pending([two, three, five], {two: -1, three: -1, five: 0}.get)]
[2, 3, 5]
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.scheduling.conservative import due_together
from windrow.sharing.scheduling.earliest import Left
from windrow.sharing.scheduling.tasks import Task


def late_and_pending(tasks: Sequence[Task], left: Left) -> list[Task]:
    """If the first task is late, all late and due ones of its group; else those that are due with it."""
    first = tasks[0]
    if left(first) >= 0:
        return due_together(tasks, left)
    return [task for task in tasks if task.group == first.group and left(task) <= 0]
