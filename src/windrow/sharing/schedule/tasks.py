"""What is scheduled: tasks, each of which refreshes some queries of a group together."""

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


def by_period(groups: Groups) -> list[Task]:
    """A task for all queries of a group that have the same period.

    >>> queries = [Query("Q1", 10, 2), Query("Q2", 15, 3), Query("Q3", 5, 2)]
    >>> [(task.period, len(task.queries)) for task in by_period({"G1": queries})]
    [(2, 2), (3, 1)]
    """
    found: dict[tuple[str, int], list[Query]] = {}
    for group, queries in groups.items():
        for query in queries:
            found.setdefault((group, query.period), []).append(query)
    return [Task(group, tuple(queries), period) for (group, period), queries in found.items()]
