"""When tasks are refreshed: which go together, what that costs, and which are due.

The scheduler has no clock of its own. d(T), the updates until a task is due, is the task's period less the
updates since it was last done; after a late refresh the next one is a whole period away, so that overload
does not feed itself. The task with the least d goes first, then the one of higher priority. Nothing is ever
dropped: under overload all periods get longer, and how much is told for each query.

>>> queries = [ScheduledQuery("Q1", 10, 2), ScheduledQuery("Q4", 15, 3), ScheduledQuery("Q6", 20, 5)]
>>> scheduler = Scheduler(by_period({"G1": queries}))
>>> for minute in range(1, 7):
...     scheduler.updated()
...     tasks = scheduler.due({"Q1", "Q4", "Q6"})
...     scheduler.done(tasks)
...     print(minute, [task.period for task in tasks])
1 []
2 [2]
3 [3]
4 [2]
5 [5]
6 [2, 3]

Hybrid scheduling (thesis, 8.4.4): sub-groups (the queries of one period) may be merged, and then have the
shortest of their periods. The thesis' example has five possibilities, of which one is the cheapest:

>>> sizes = ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))
>>> queries = [ScheduledQuery(f"Q{n}", length, period) for n, (length, period) in enumerate(sizes, start=1)]
>>> for cost, tasks in alternatives(by_period({"G1": queries}), Costs()):
...     print(f"{cost:.2f}", [(task.period, len(task.queries)) for task in tasks])
11.93 [(2, 3), (3, 2), (5, 2)]
16.83 [(2, 5), (3, 2)]
12.67 [(2, 3), (3, 4)]
11.40 [(2, 5), (5, 2)]
14.50 [(2, 7)]

(The thesis gives 11.63 for the first; its schedule costs 358 in 30 minutes.) Where something reads the
synopses at every update anyway, there is nothing to be saved by going together:

>>> anyway = Task("G1", (ScheduledQuery("exact", 30, 1),), 1)
>>> [task.period for task in hybrid({"G1": queries}, Costs(answer=0.1), fixed={"G1": [anyway]})]
[2, 3, 5]
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class ScheduledQuery:
    """A query to refresh: lengths are in intervals of its synopses, the period in updates of them.

    The number of updates between two refreshes should be no more than `period`. If it is more than `at_most`,
    the query goes before all that have not waited too long.
    """

    name: str
    length: int
    period: int
    priority: int = 0
    at_most: int | None = None


@dataclass(frozen=True)
class Task:
    """Queries of one group that are always refreshed together, every `period` updates."""

    group: str
    queries: tuple[ScheduledQuery, ...]
    period: int

    @cached_property
    def length(self) -> int:
        """The longest window."""
        return max(query.length for query in self.queries)

    @cached_property
    def priority(self) -> int:
        """That of the most important query."""
        return max(query.priority for query in self.queries)

    @cached_property
    def name(self) -> str:
        """For people, and to break ties."""
        return f"{self.group}({','.join(query.name for query in self.queries)})"


Groups = Mapping[str, Sequence[ScheduledQuery]]


def by_period(groups: Groups) -> list[Task]:
    """A task for all queries of a group that have the same period.

    >>> queries = [ScheduledQuery("Q1", 10, 2), ScheduledQuery("Q2", 15, 3), ScheduledQuery("Q3", 5, 2)]
    >>> [(task.period, len(task.queries)) for task in by_period({"G1": queries})]
    [(2, 2), (3, 1)]
    """
    found: dict[tuple[str, int], list[ScheduledQuery]] = {}
    for group, queries in groups.items():
        for query in queries:
            found.setdefault((group, query.period), []).append(query)
    return [Task(group, tuple(queries), period) for (group, period), queries in found.items()]


# ------------------------------------------------------------ costs


#: schedules that repeat after more updates than these are looked at for so many
HORIZON = 840


@dataclass(frozen=True)
class Costs:
    """A probe costs `start`, each interval after the first `read`, each answer `answer`.

    Queries of one group that are refreshed together read the intervals of the longest window, once. Updates
    of synopses cost the same whatever the schedule, and are left out.

    >>> short, long = ScheduledQuery("Q1", 10, 2), ScheduledQuery("Q4", 15, 3)
    >>> Costs().joint([short]), Costs().joint([short, long])
    (9.0, 14.0)
    >>> round(Costs().rate([Task("G1", (short,), 2), Task("G1", (long,), 3)]), 2)
    7.67
    """

    read: float = 1.0
    answer: float = 0.0
    start: float = 0.0

    def joint(self, queries: Sequence[ScheduledQuery]) -> float:
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
    """How long it took to answer so many queries of one group, with windows of such lengths, the newest last.

    The costs are what explains that best, none of them being less than nothing. Where measurements cannot
    tell them apart, each has its part.

    >>> known = Measured()
    >>> for longest, answers in ((10, 1), (30, 4), (10, 5), (60, 2), (30, 1)):
    ...     known.add(longest, answers, 2.0 + 0.1 * (longest - 1) + 0.5 * answers)
    >>> found = known.costs
    >>> round(found.start, 2), round(found.read, 2), round(found.answer, 2)
    (2.0, 0.1, 0.5)
    """

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


# ------------------------------------------------------------ which go together


#: with more sub-groups than these not all possibilities are looked at (there are 4140 of eight)
MOST_SUBGROUPS = 6
#: with more sub-groups than these none is merged: looking for the best pair takes longer than it saves
MOST_MERGED = 20


def hybrid(
    groups: Groups,
    costs: Costs | None = None,
    *,
    fixed: Mapping[str, Sequence[Task]] | None = None,
    kind: Callable[[ScheduledQuery], Hashable] = lambda _: None,
) -> list[Task]:
    """The tasks of the cheapest way to merge sub-groups, each group for itself.

    `fixed` are tasks of the groups that are done in any case, and stay as they are. Only queries of one
    `kind` can be refreshed at the same updates.
    """
    found: list[Task] = []
    for group, queries in groups.items():
        kinds: dict[Hashable, list[ScheduledQuery]] = {}
        for query in queries:
            kinds.setdefault(kind(query), []).append(query)
        parts = [part for alike in kinds.values() for part in by_period({group: alike})]
        anyway = (fixed or {}).get(group, ())
        ordered = sorted(parts, key=lambda task: task.period)
        found += _cheapest(ordered, costs or Costs(), anyway, lambda task: kind(task.queries[0]))
    return found


def alternatives(
    parts: Sequence[Task],
    costs: Costs,
    fixed: Sequence[Task] = (),
    kind: Callable[[Task], Hashable] = lambda _: None,
) -> Iterator[tuple[float, list[Task]]]:
    """All ways to merge sub-groups of the same kind, with their cost per update."""
    for blocks in _partitions(list(parts)):
        if all(len({kind(part) for part in block}) == 1 for block in blocks):
            merged = sorted((_merged(block) for block in blocks), key=lambda task: task.period)
            yield costs.rate([*merged, *fixed]), merged


def _cheapest(
    parts: list[Task], costs: Costs, fixed: Sequence[Task], kind: Callable[[Task], Hashable]
) -> list[Task]:
    if len(parts) <= MOST_SUBGROUPS:
        found = alternatives(parts, costs, fixed, kind)
        return min(found, key=lambda each: each[0])[1] if parts else []
    return _greedy(parts, costs, fixed, kind) if len(parts) <= MOST_MERGED else parts


def _greedy(
    parts: list[Task], costs: Costs, fixed: Sequence[Task], kind: Callable[[Task], Hashable]
) -> list[Task]:
    """Merge the two whose merging saves most, until none saves anything."""
    least = costs.rate([*parts, *fixed])
    while True:
        best: list[Task] | None = None
        for one in range(len(parts)):
            for other in range(one):
                if kind(parts[one]) != kind(parts[other]):
                    continue
                rest = [part for place, part in enumerate(parts) if place not in (one, other)]
                tried = [*rest, _merged([parts[one], parts[other]])]
                cost = costs.rate([*tried, *fixed])
                if cost < least:
                    least, best = cost, tried
        if best is None:
            return sorted(parts, key=lambda task: task.period)
        parts = best


def _merged(tasks: Sequence[Task]) -> Task:
    queries = tuple(query for task in tasks for query in task.queries)
    return Task(tasks[0].group, queries, min(task.period for task in tasks))


def _partitions(parts: list[Task]) -> Iterator[list[list[Task]]]:
    """All ways to put things together.

    >>> len(list(_partitions([None, None, None, None])))
    15
    """
    if not parts:
        yield []
        return
    *before, last = parts
    for blocks in _partitions(before):
        yield [*blocks, [last]]
        for place, block in enumerate(blocks):
            yield [*blocks[:place], [*block, last], *blocks[place + 1 :]]


# ------------------------------------------------------------ scheduler


@dataclass(frozen=True)
class Lateness:
    """What became of a query's refreshes: due when its period is over, late after more updates than that."""

    refreshes: int = 0
    due: int = 0
    late: int = 0
    #: updates beyond the period, of all refreshes together and of the worst
    total: int = 0
    greatest: int = 0

    @property
    def average(self) -> float:
        """Updates beyond the period, per refresh."""
        return self.total / self.refreshes if self.refreshes else 0.0

    def after(self, beyond: int) -> Lateness:
        """One more refresh, so many updates beyond the period."""
        more = max(0, beyond)
        return Lateness(
            self.refreshes + 1,
            self.due + (beyond >= 0),
            self.late + (more > 0),
            self.total + more,
            max(self.greatest, more),
        )


class Scheduler:
    """Deadlines of tasks."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self.now = 0
        #: when queries were last done, or came
        self._last: dict[str, int] = {}
        self._periods: dict[str, int] = {}
        self._lateness: dict[str, Lateness] = {}
        self.arrange(tasks)

    def arrange(self, tasks: Iterable[Task]) -> None:
        """Other tasks from now on, as queries come and go; those that stay keep their deadlines."""
        self.tasks = list(tasks)
        queries = [query.name for task in self.tasks for query in task.queries]
        self._last = {name: self._last.get(name, self.now) for name in queries}
        self._periods = {query.name: query.period for task in self.tasks for query in task.queries}
        self._lateness = {name: self._lateness.get(name, Lateness()) for name in queries}

    def updated(self, times: int = 1) -> None:
        """An interval was added to the synopses, or several."""
        self.now += times

    def everything_is_due(self) -> None:
        """The periods of all are over, at this very moment if they were not before."""
        for name, last in self._last.items():
            self._last[name] = min(last, self.now - self._periods[name])

    def since(self, query: str) -> int:
        """The updates since a query was last done, or came."""
        return self.now - self._last[query]

    def remember(self, query: str, since: int, lateness: Lateness) -> None:
        """What an earlier scheduler knew of a query."""
        self._last[query], self._lateness[query] = self.now - since, lateness

    def due(self, ready: Collection[str]) -> list[Task]:
        """All tasks whose periods are over and whose queries are ready, the most urgent first."""
        able = [task for task in self.tasks if all(query.name in ready for query in task.queries)]
        late = [task for task in able if self.left(task) <= 0 or self.is_overdue(task)]
        return sorted((task for task in late if self.since_done(task) > 0), key=self.urgency)

    def done(self, tasks: Iterable[Task]) -> None:
        """These were done."""
        for task in tasks:
            for query in task.queries:
                beyond = self.now - self._last[query.name] - query.period
                self._lateness[query.name] = self._lateness[query.name].after(beyond)
                self._last[query.name] = self.now

    def left(self, task: Task) -> int:
        """d(T): the updates until a task is due."""
        return task.period - self.since_done(task)

    def is_overdue(self, task: Task) -> bool:
        """Whether a query of it has waited for longer than it may."""
        return any(
            query.at_most is not None and self.since(query.name) >= query.at_most for query in task.queries
        )

    def refreshed(self, query: str) -> Lateness:
        """How late a query's refreshes have been, up to the last one."""
        return self._lateness[query]

    def lateness(self, query: str) -> Lateness:
        """How late a query's refreshes have been, the one it waits for now included if it is late."""
        known = self._lateness[query]
        beyond = self.now - self._last[query] - self._periods[query]
        return known.after(beyond) if beyond > 0 else known

    def since_done(self, task: Task) -> int:
        """The updates since a task was last done: as many as for any of its queries."""
        return max(self.since(query.name) for query in task.queries)

    def urgency(self, task: Task) -> tuple[bool, int, int, str]:
        """What tasks are ordered by."""
        return not self.is_overdue(task), self.left(task), -task.priority, task.name
