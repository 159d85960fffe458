"""What is scheduled: tasks, each of which refreshes some queries of a group together.

The example of the thesis, 8.4.3: seven queries on one basic interval synopsis with s = 1 minute.

>>> [f"{query.name} {query.length}/{query.period}" for query in EXAMPLE]
['Q1 10/2', 'Q2 5/2', 'Q3 6/2', 'Q4 15/3', 'Q5 12/3', 'Q6 20/5', 'Q7 30/5']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Query:
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
    queries: tuple[Query, ...]
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


Groups = Mapping[str, Sequence[Query]]


def separate(groups: Groups) -> list[Task]:
    """Every query by itself."""
    return [Task(group, (query,), query.period) for group, queries in groups.items() for query in queries]


def by_period(groups: Groups) -> list[Task]:
    """A task for all queries of a group that have the same period.

    >>> [(task.period, len(task.queries)) for task in by_period({"G1": EXAMPLE})]
    [(2, 3), (3, 2), (5, 2)]
    """
    found: dict[tuple[str, int], list[Query]] = {}
    for group, queries in groups.items():
        for query in queries:
            found.setdefault((group, query.period), []).append(query)
    return [Task(group, tuple(queries), period) for (group, period), queries in found.items()]


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


_SIZES = ((10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5))
EXAMPLE = tuple(Query(f"Q{n}", *sizes) for n, sizes in enumerate(_SIZES, start=1))
