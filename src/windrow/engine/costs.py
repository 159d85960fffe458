"""What the operators of queries cost and give, since this process runs: seconds and rows of each level.

A level is one γ over a window; a nested query has several, each fed by the one below. Ingesting is no part of
it: Spark does that for many queries at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from windrow.shedding.load import Work

#: seconds and rows given, by query and level
Took: TypeAlias = Mapping[tuple[str, int], tuple[float, int]]


@dataclass
class Costs:
    """The work of all levels of all queries.

    >>> costs = Costs()
    >>> costs.add({("q", 0): (0.25, 100), ("q", 1): (0.125, 4)}, rows=100_000)
    >>> list(costs.lines("q"))
    ['level 1: 2.5 µs per row, gives 0.001 of them', 'level 2: 1250.0 µs per row, gives 0.04 of them']
    """

    work: dict[tuple[str, int], Work] = field(default_factory=dict)

    def add(self, took: Took, rows: int) -> None:
        """One more epoch, in which so many rows came."""
        for (query, level), (seconds, given) in took.items():
            before = self.work.get((query, level), Work())
            taken = rows if level == 0 else took.get((query, level - 1), (0.0, 0))[1]
            self.work[query, level] = Work(
                before.seconds + seconds, before.rows_in + taken, before.rows_out + given
            )

    def drop(self, query: str) -> None:
        """A query goes."""
        self.work = {key: work for key, work in self.work.items() if key[0] != query}

    def lines(self, query: str) -> Iterator[str]:
        """For EXPLAIN ANALYZE."""
        mine = sorted((level, work) for (name, level), work in self.work.items() if name == query)
        for level, work in mine:
            if work.rows_in:
                name = f"level {level + 1}" if len(mine) > 1 else "windows"
                cost = f"{name}: {work.cost * 1e6:.1f} µs per row"
                yield f"{cost}, gives {work.selectivity:.2g} of them"
