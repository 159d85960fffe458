"""When even the longest gaps do not help: the costliest queries are suspended, and come back when there is
room.

Only queries that agreed to lose windows are suspended, the least important first, and of those the costliest.
One is suspended at a time, after the load was too high for some epochs in a row; one is resumed at a time,
after there would have been room for it, with a margin, for more epochs than that. Between the two lies a gap
in which nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Costs:
    """A query: its load without shedding, and the share of its windows that may be dropped at most."""

    name: str
    load: float
    most: float
    priority: int = 0

    @property
    def least(self) -> float:
        """Its load with the longest gaps allowed."""
        return self.load * (1 - self.most)


@dataclass(frozen=True, slots=True)
class Rules:
    """When to suspend and when to resume."""

    limit: float = 1.0
    room: float = 0.7
    patience: int = 3
    calm: int = 6


@dataclass(frozen=True, slots=True)
class Admission:
    """Which queries are suspended.

    >>> queries = [Costs("cheap", 0.5, most=0.5), Costs("dear", 2.0, most=0.5)]
    >>> admission = Admission()
    >>> for _ in range(3):
    ...     admission = admission.after(0.0, queries)
    >>> admission.suspended
    ('dear',)
    """

    suspended: tuple[str, ...] = ()
    over: int = 0
    under: int = 0
    rules: Rules = Rules()

    def least(self, others: float, queries: Sequence[Costs]) -> float:
        """The load that remains with the longest gaps: of those who run, and of `others` who lose nothing."""
        return others + sum(query.least for query in queries if query.name not in self.suspended)

    def after(self, others: float, queries: Sequence[Costs]) -> Admission:
        """One more epoch."""
        known = {query.name for query in queries}
        state = replace(self, suspended=tuple(name for name in self.suspended if name in known))
        least = state.least(others, queries)
        if least > self.rules.limit:
            return state._too_much(queries)
        candidate = state._next_back(queries)
        if candidate is not None and least + candidate.least <= self.rules.room:
            return state._room_for(candidate)
        return replace(state, over=0, under=0)

    def _too_much(self, queries: Sequence[Costs]) -> Admission:
        running = [query for query in queries if query.name not in self.suspended]
        if self.over + 1 < self.rules.patience or not running:
            return replace(self, over=self.over + 1, under=0)
        gone = min(running, key=lambda query: (query.priority, -query.load, query.name))
        return replace(self, suspended=(*self.suspended, gone.name), over=0, under=0)

    def _next_back(self, queries: Sequence[Costs]) -> Costs | None:
        """The one to be resumed first: the most important, then the cheapest."""
        waiting = [query for query in queries if query.name in self.suspended]
        return min(waiting, key=lambda query: (-query.priority, query.load, query.name), default=None)

    def _room_for(self, query: Costs) -> Admission:
        if self.under + 1 < self.rules.calm:
            return replace(self, over=0, under=self.under + 1)
        left = tuple(name for name in self.suspended if name != query.name)
        return replace(self, suspended=left, over=0, under=0)
