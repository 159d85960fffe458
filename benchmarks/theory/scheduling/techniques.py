"""The techniques by their names in the thesis' table 8.1: how tasks are made, and which run together.

The example of the thesis, 8.4.3, has seven queries on one basic interval synopsis with s = 1 minute:

>>> [f"{query.name} {query.length}/{query.period}" for query in EXAMPLE]
['Q1 10/2', 'Q2 5/2', 'Q3 6/2', 'Q4 15/3', 'Q5 12/3', 'Q6 20/5', 'Q7 30/5']
>>> two, three, five = by_period({"G1": EXAMPLE})

With the most urgent task go those of its group that are due at the same time (Algorithm 10), or, under
overload, all late ones (8.4.5), or also those that are due, not to be late (Algorithm 11, figure 8.6 d):

>>> [task.period for task in due_together([two, three, five], {two: 0, three: 0, five: 4}.get)]
[2, 3]
>>> [task.period for task in late_together([two, three, five], {two: -2, three: -1, five: 0}.get)]
[2, 3]
>>> [task.period for task in late_and_pending([two, three, five], {two: -1, three: -1, five: 0}.get)]
[2, 3, 5]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from windrow.sharing.schedule import Costs, Groups, ScheduledQuery, Scheduler, Task, by_period, hybrid

#: the updates until a task is due; negative if it is late
Left = Callable[[Task], int]
#: which of the tasks, the most urgent first, are done together now
Together = Callable[[Sequence[Task], Left], list[Task]]

_SIZES = ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))
EXAMPLE = tuple(ScheduledQuery(f"Q{n}", *sizes) for n, sizes in enumerate(_SIZES, start=1))


def separate(groups: Groups) -> list[Task]:
    """Every query by itself."""
    return [Task(group, (query,), query.period) for group, queries in groups.items() for query in queries]


def by_group(groups: Groups) -> list[Task]:
    """A task for all queries of a group, with the shortest of their periods.

    >>> [(task.period, task.length, len(task.queries)) for task in by_group({"G1": EXAMPLE})]
    [(2, 30, 7)]
    """
    return [
        Task(group, tuple(queries), min(query.period for query in queries))
        for group, queries in groups.items()
        if queries
    ]


class StepScheduler(Scheduler):
    """Says what is done next, as long as there is time. With `early`, also tasks that are not due yet."""

    def __init__(self, tasks: Iterable[Task], together: Together, *, early: bool = False) -> None:
        super().__init__(tasks)
        self.together = together
        self.early = early

    def next(self) -> Sequence[Task]:
        """What is to be done together now; nothing if there is nothing to do before the next update."""
        waiting = [task for task in self.tasks if self.since_done(task) > 0]
        if not waiting:
            return ()
        ordered = sorted(waiting, key=self.urgency)
        if not self.early and self.left(ordered[0]) > 0 and not self.is_overdue(ordered[0]):
            return ()
        return self.together(ordered, self.left)


def alone(tasks: Sequence[Task], left: Left) -> list[Task]:
    """The first of the tasks (Algorithm 9, earliest deadline first)."""
    return list(tasks[:1])


def due_together(tasks: Sequence[Task], left: Left) -> list[Task]:
    """The first task, and those of its group that have as much time left."""
    first = tasks[0]
    return [task for task in tasks if task.group == first.group and left(task) == left(first)]


def late_together(tasks: Sequence[Task], left: Left) -> list[Task]:
    """If the first task is late, all late ones of its group; else those that are due with it."""
    first = tasks[0]
    if left(first) >= 0:
        return due_together(tasks, left)
    return [task for task in tasks if task.group == first.group and left(task) < 0]


def late_and_pending(tasks: Sequence[Task], left: Left) -> list[Task]:
    """If the first task is late, all late and due ones of its group; else those that are due with it."""
    first = tasks[0]
    if left(first) >= 0:
        return due_together(tasks, left)
    return [task for task in tasks if task.group == first.group and left(task) <= 0]


@dataclass(frozen=True)
class Technique:
    """A way to schedule."""

    about: str
    tasks: Callable[[Groups, Costs], list[Task]]
    together: Together


TECHNIQUES = {
    "No-S": Technique("no sharing", lambda groups, _: by_period(groups), alone),
    "AS": Technique("aggressive", lambda groups, _: by_group(groups), alone),
    "CS": Technique("conservative", lambda groups, _: by_period(groups), due_together),
    "HS": Technique("hybrid", hybrid, due_together),
    "H-LS": Technique("hybrid, late sharing", hybrid, late_together),
    "H-LP": Technique("hybrid, late-pending sharing", hybrid, late_and_pending),
}
