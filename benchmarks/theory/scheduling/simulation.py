"""Schedules played through: updates come at equal intervals, and refreshes take the time they cost.

>>> from benchmarks.theory.scheduling.techniques import EXAMPLE, due_together
>>> from windrow.sharing.schedule import Costs, by_period
>>> def played(every):
...     scheduler = StepScheduler(by_period({"G1": EXAMPLE}), due_together)
...     return simulate(scheduler, Costs().joint, 300, every=every)
>>> relaxed = played(30.0)
>>> relaxed.latency, round(relaxed.load, 2)
(0.0, 0.4)
>>> hurried = played(6.0)
>>> hurried.latency > 0.5, round(hurried.load, 1), min(hurried.refreshes.values()) > 20
(True, 1.0, True)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.theory.scheduling.techniques import StepScheduler
from windrow.sharing.schedule import ScheduledQuery


@dataclass(frozen=True)
class Played:
    """What a schedule came to. Throughput is refreshes per unit of time, latency updates beyond the period,
    on the average of all queries; load is the part of the time that something was done."""

    throughput: float
    #: refreshes per unit of time that were due, and not only possible
    due: float
    latency: float
    load: float
    refreshes: Mapping[str, int]
    greatest_latency: int


def simulate(
    scheduler: StepScheduler,
    cost: Callable[[Sequence[ScheduledQuery]], float],
    updates: int,
    *,
    every: float,
    other: float = 0.0,
) -> Played:
    """Play so many updates; each also costs `other`, for what does not depend on the schedule."""
    now, busy = 0.0, 0.0
    for number in range(1, updates + 1):
        now = max(now, number * every)
        scheduler.updated()
        now, busy = now + other, busy + other
        while now < (number + 1) * every and (tasks := scheduler.next()):
            spent = cost([query for task in tasks for query in task.queries])
            now, busy = now + spent, busy + spent
            scheduler.done(tasks)
    names = [query.name for task in scheduler.tasks for query in task.queries]
    found = {name: scheduler.lateness(name) for name in names}
    elapsed = max(now, (updates + 1) * every) - every
    return Played(
        sum(each.refreshes for each in found.values()) / elapsed,
        sum(each.due for each in found.values()) / elapsed,
        sum(each.average for each in found.values()) / max(1, len(found)),
        busy / elapsed,
        {name: each.refreshes for name, each in found.items()},
        max((each.greatest for each in found.values()), default=0),
    )
