"""Hybrid scheduling (thesis, 8.4.4): some queries are refreshed more often, to go with others.

Sub-groups (the queries of one period) may be merged; they then have the shortest of their periods. The
thesis' example has five possibilities, of which one is the cheapest:

>>> from windrow.sharing.scheduling.tasks import EXAMPLE, by_period
>>> for cost, tasks in alternatives(by_period({"G1": EXAMPLE}), Costs()):
...     print(f"{cost:.2f}", [(task.period, len(task.queries)) for task in tasks])
11.93 [(2, 3), (3, 2), (5, 2)]
16.83 [(2, 5), (3, 2)]
12.67 [(2, 3), (3, 4)]
11.40 [(2, 5), (5, 2)]
14.50 [(2, 7)]
>>> [(task.period, task.length) for task in hybrid({"G1": EXAMPLE})]
[(2, 15), (5, 30)]

(The thesis gives 11.63 for the first; its schedule costs 358 in 30 minutes.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windrow.sharing.scheduling.costs import Costs
from windrow.sharing.scheduling.tasks import Groups, Task, by_period

#: with more sub-groups than these not all possibilities are looked at (there are 4140 of eight)
MOST_SUBGROUPS = 6


def hybrid(groups: Groups, costs: Costs | None = None) -> list[Task]:
    """The tasks of the cheapest way to merge sub-groups, each group for itself."""
    found: list[Task] = []
    for group, queries in groups.items():
        parts = by_period({group: queries})
        found += _cheapest(sorted(parts, key=lambda task: task.period), costs or Costs())
    return found


def alternatives(parts: Sequence[Task], costs: Costs) -> Iterator[tuple[float, list[Task]]]:
    """All ways to merge sub-groups, with their cost per update."""
    for blocks in _partitions(list(parts)):
        merged = sorted((_merged(block) for block in blocks), key=lambda task: task.period)
        yield costs.rate(merged), merged


def _cheapest(parts: list[Task], costs: Costs) -> list[Task]:
    if len(parts) <= MOST_SUBGROUPS:
        return min(alternatives(parts, costs), key=lambda found: found[0])[1] if parts else []
    return _greedy(parts, costs)


def _greedy(parts: list[Task], costs: Costs) -> list[Task]:
    """Merge the two whose merging saves most, until none saves anything."""
    least = costs.rate(parts)
    while True:
        best: list[Task] | None = None
        for one in range(len(parts)):
            for other in range(one):
                rest = [part for place, part in enumerate(parts) if place not in (one, other)]
                tried = [*rest, _merged([parts[one], parts[other]])]
                cost = costs.rate(tried)
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
