"""When monitoring queries are refreshed: those that say EVERY, and perhaps AT MOST.

Such a query is not answered for every window, but as often as it asks, each time about the newest window. A
scheduler counts the intervals that are added to the synopses of a stream and a grouping, and says whose
period is over. Where an epoch has a time limit and there is more to do than it allows, those that have waited
longest against their period go first and the others wait: periods get longer, for all alike, but AT MOST goes
before everything. Nothing is lost by that: what a query has not told it can still tell of the next window.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING

from windrow.sharing.scheduling.earliest import alone
from windrow.sharing.scheduling.planned import Asked, scheduled
from windrow.sharing.scheduling.scheduler import Scheduler
from windrow.sharing.scheduling.tasks import separate
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windrow.engine.common import Common
    from windrow.engine.records import QueryRecord
    from windrow.kernels.clocks import Clock
    from windrow.sharing.scheduling.tasks import Query

#: more intervals than these in one epoch are not counted one by one: everybody's period is over
MOST_UPDATES = 1 << 14


@dataclass(frozen=True)
class Timing:
    """How often a query is refreshed, in ticks: as it asks, as it is on the average, and how late it is."""

    asked: int
    had: float | None
    late: float


@dataclass
class _Schedule:
    """The refreshes of one ledger. Each query is a task of its own: those that are due go together anyway."""

    scheduler: Scheduler
    update: int
    version: int
    updates: int = 0


@dataclass
class Refreshes:
    """The refreshes of all monitoring queries of an engine."""

    #: seconds that one query's refresh took, of those measured last
    cost: float = 0.0
    _schedules: dict[str, _Schedule] = field(default_factory=dict)

    def due(
        self,
        ledger: str,
        records: Mapping[str, QueryRecord],
        common: Common,
        clock: Clock,
        seconds: float | None,
    ) -> set[str]:
        """Who is refreshed as the clock of a ledger moves, in so many seconds; None: there is no hurry."""
        if not records:
            self._schedules.pop(ledger, None)
            return set()
        schedule = self._arranged(ledger, records, common)
        for _ in range(_updates(clock, schedule.update)):
            schedule.scheduler.updated()
            schedule.updates += 1
        ready = {name for name in records if common.asker(name).is_due(clock)}
        chosen: set[str] = set()
        while tasks := schedule.scheduler.next(ready - chosen):
            names = {query.name for task in tasks for query in task.queries}
            if chosen and seconds is not None and self.cost * len(chosen | names) > seconds:
                break
            schedule.scheduler.done(tasks)
            chosen |= names
        return chosen

    def measured(self, seconds: float, queries: int) -> None:
        """So many queries were answered in so much time."""
        if queries:
            self.cost = seconds / queries

    def timing(self, ledger: str, record: QueryRecord) -> Timing | None:
        """How a monitoring query does; None for all others."""
        schedule = self._schedules.get(ledger)
        if record.query.every is None:
            return None
        if schedule is None:
            return Timing(record.query.every, None, 0.0)
        known = schedule.scheduler.lateness(record.id)
        had = schedule.updates * schedule.update / known.refreshes if known.refreshes else None
        return Timing(record.query.every, had, known.average * schedule.update)

    def _arranged(self, ledger: str, records: Mapping[str, QueryRecord], common: Common) -> _Schedule:
        known = self._schedules.get(ledger)
        if known is not None and known.version == common.version and _names(known) == set(records):
            return known
        asked = {name: _asked(record) for name, record in records.items()}
        update = gcd(*(sheet.width for sheet in common.ledger(ledger).sheets))
        groups: dict[str, list[Query]] = {}
        for group, queries in scheduled(common.plan, asked, update).items():
            mine = [query for query in queries if query.name in records]
            if mine:
                groups[group] = mine
        tasks = separate(groups)
        if known is None or known.update != update:
            known = _Schedule(Scheduler(tasks, alone), update, common.version)
            self._schedules[ledger] = known
        else:
            known.scheduler.arrange(tasks)
            known.version = common.version
        return known


def _asked(record: QueryRecord) -> Asked:
    query = record.query
    return Asked(query.every, query.at_most, query.priority)


def _names(schedule: _Schedule) -> Collection[str]:
    return {query.name for task in schedule.scheduler.tasks for query in task.queries}


def _updates(clock: Clock, update: int) -> int:
    if abs(clock.before) == INFINITY or abs(clock.now) == INFINITY:
        return MOST_UPDATES
    return min(MOST_UPDATES, int(clock.now) // update - int(clock.before) // update)
