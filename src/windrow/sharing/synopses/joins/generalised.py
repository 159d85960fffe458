"""Generalised join synopses: also for windows of unequal lengths (thesis, figure 8.4).

An (n1, n2)-join with n1 < n2 has all results of the (n1, n1)-join, and of those whose older row is the
second one, and too old for that, the ones whose first row is of the youngest n1 intervals. So results have to
be told apart by which row is the older one, and by how much.

The thesis keeps three states of each of the g oldest intervals: all results, those whose first row is not of
that interval, and those whose second row is not. That decides joins whose lengths differ by one. With b = 8
the oldest interval has, without its own first rows, what the (7, 8)-join needs; but the (6, 8)-join must also
leave out first rows of the interval after it. So here results are kept by the distance of their rows, up to
g, beyond which it makes no difference; with g = 1 these are the three states of the thesis.

Card: generalised join
    requirements  those of the synopsis that it extends
    time          probe: that of the shorter window, and at most g² states more
    space         2g + 1 states for each interval besides
    source        thesis, 8.3.2, with the correction above
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.sharing.synopses.joins.synopsis import FIRST, SECOND, JoinSynopsis, Results, merged_into

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: the intervals of the first and of the second row; the younger at most g after the older
Pair = tuple[int, int]


class GeneralisedJoin:
    """A join synopsis of any kind, and what is needed for windows of unequal lengths from b − g to b."""

    def __init__(self, equal: JoinSynopsis, g: int) -> None:
        self.equal = equal
        self.g = g
        self.reads = 0
        self._pairs: dict[Pair, pl.DataFrame] = {}

    def update(self, results: Results) -> None:
        """The windows move on by one interval."""
        self.equal.update(results)
        oldest = self.equal.end - self.equal.b
        self._pairs = {pair: table for pair, table in self._pairs.items() if min(pair) >= oldest}
        if self.g and results.table.height:
            for pair, table in self._paired(results.table, oldest).items():
                self._pairs[pair] = merged_into(self.equal.states, self._pairs.get(pair), table)

    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        """The states of (n, n)-joins, for each n, 1 ≤ n ≤ b."""
        return self.equal.probe(lengths)

    def probe_unequal(self, first: int, second: int) -> pl.DataFrame:
        """The states of the (first, second)-join, b − g ≤ first, second ≤ b."""
        shorter, end = min(first, second), self.equal.end
        assert self.equal.b - self.g <= shorter
        whole = self.equal.probe([shorter])[shorter]
        more = [
            table
            for pair, table in self._pairs.items()
            if pair[0] >= end - first and pair[1] >= end - second and min(pair) < end - shorter
        ]
        self.reads += len(more)
        return self.equal.states.merged([whole, *more])

    def _paired(self, table: pl.DataFrame, oldest: int) -> Mapping[Pair, pl.DataFrame]:
        """Results by the intervals of their rows."""
        older = pl.min_horizontal(FIRST, SECOND)
        alive = table.filter(older >= oldest)
        near = alive.with_columns(pl.min_horizontal(pl.col(side), older + self.g) for side in (FIRST, SECOND))
        return {
            (first, second): self.equal.states.merged([part.drop(FIRST, SECOND)])
            for (first, second), part in near.partition_by(FIRST, SECOND, as_dict=True).items()
        }
