"""Hybrid scheduling (thesis, 8.4.4): some queries are refreshed more often, to go with others.

Sub-groups (the queries of one period) may be merged; they then have the shortest of their periods. The
thesis' example has five possibilities, of which one is the cheapest:

>>> sizes = ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))
>>> queries = [Query(f"Q{n}", length, period) for n, (length, period) in enumerate(sizes, start=1)]
>>> for cost, tasks in alternatives(by_period({"G1": queries}), Costs()):
...     print(f"{cost:.2f}", [(task.period, len(task.queries)) for task in tasks])
11.93 [(2, 3), (3, 2), (5, 2)]
16.83 [(2, 5), (3, 2)]
12.67 [(2, 3), (3, 4)]
11.40 [(2, 5), (5, 2)]
14.50 [(2, 7)]
>>> [(task.period, task.length) for task in hybrid({"G1": queries})]
[(2, 15), (5, 30)]

(The thesis gives 11.63 for the first; its schedule costs 358 in 30 minutes.)

Where something reads the synopses at every update anyway, there is nothing to be saved by going together:

>>> anyway = Task("G1", (Query("exact", 30, 1),), 1)
>>> [task.period for task in hybrid({"G1": queries}, Costs(answer=0.1), fixed={"G1": [anyway]})]
[2, 3, 5]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from windrow.sharing.schedule.costs import Costs
from windrow.sharing.schedule.tasks import Groups, Query, Task, by_period

#: with more sub-groups than these not all possibilities are looked at (there are 4140 of eight)
MOST_SUBGROUPS = 6
#: with more sub-groups than these none is merged: looking for the best pair takes longer than it saves
MOST_MERGED = 20


def hybrid(
    groups: Groups,
    costs: Costs | None = None,
    *,
    fixed: Mapping[str, Sequence[Task]] | None = None,
    kind: Callable[[Query], Hashable] = lambda _: None,
) -> list[Task]:
    """The tasks of the cheapest way to merge sub-groups, each group for itself.

    `fixed` are tasks of the groups that are done in any case, and stay as they are. Only queries of one
    `kind` can be refreshed at the same updates.
    """
    found: list[Task] = []
    for group, queries in groups.items():
        kinds: dict[Hashable, list[Query]] = {}
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
