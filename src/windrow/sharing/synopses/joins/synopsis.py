"""What a synopsis of a join of windows keeps: results by the interval in which they expire.

A result of a (b·s, b·s)-join expires with the older of its two rows. Those that a (n·s, n·s)-join does not
have contain a row of the oldest b − n intervals, and so expire in the next b − n. So the results of shorter
windows are those that expire last.

Interval number i is [i·s, (i+1)·s). At the update to `end` the two windows hold the rows of the intervals
[end − b, end); a result whose older row is of interval i expires when interval i does, so it is said here
to be *of* interval i, and intervals are numbered by arrival as in other synopses. An update brings results
of many intervals at once, all but one of which are there already: weak non-monotonic updates change them all.

The generalised form keeps, of the g oldest intervals, two more states each: without the results whose first
row is of that interval, and without those whose second row is. With these it also answers (n1, n2)-joins of
unequal windows, b − g ≤ n1, n2 ≤ b.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from windrow.sharing.synopses.states import EMPTY, States

if TYPE_CHECKING:
    from windrow.sharing.synopses.synopsis import Kind

#: the columns of new results that tell the intervals of their two rows
FIRST, SECOND = "#first", "#second"


@dataclass(frozen=True)
class Results:
    """New results: states by group, with the intervals of the two rows they are made of."""

    table: pl.DataFrame

    def of(self, states: States, b: int, end: int) -> dict[int, pl.DataFrame]:
        """What expires with each interval from end − b on: the buffer before a synopsis, pre-computed."""
        if not self.table.height:
            return {}
        older = self.table.with_columns(pl.min_horizontal(FIRST, SECOND).alias("#of"))
        alive = older.filter(pl.col("#of") >= end - b)
        return {
            interval: states.merged([part.drop("#of", FIRST, SECOND)])
            for (interval,), part in alive.partition_by("#of", as_dict=True).items()
        }


class JoinSynopsis(ABC):
    """States of the results of a join of two windows of b intervals before number `end`."""

    kind: Kind

    def __init__(self, states: States, b: int, end: int) -> None:
        self.states = states
        self.b = b
        self.end = end
        #: how many intervals have been read by probes
        self.reads = 0

    def update(self, results: Results) -> None:
        """The windows move on by one interval: what is of the oldest goes, new results are merged in."""
        self.end += 1
        self._expire(self.end - self.b)
        self._merge(results.of(self.states, self.b, self.end))

    @abstractmethod
    def probe(self, lengths: Sequence[int]) -> Mapping[int, pl.DataFrame]:
        """The states of (n, n)-joins, for each n, 1 ≤ n ≤ b."""

    @abstractmethod
    def _expire(self, first: int) -> None:
        """Results of intervals before `first` are gone."""

    @abstractmethod
    def _merge(self, results: Mapping[int, pl.DataFrame]) -> None:
        """New results, by the interval they are of."""


def merged_into(states: States, table: pl.DataFrame | None, more: pl.DataFrame) -> pl.DataFrame:
    """Both together."""
    return more if table is None or not table.height else states.merged([table, more])


def empty(table: pl.DataFrame | None) -> pl.DataFrame:
    """The table, or one of no rows."""
    return EMPTY if table is None else table
