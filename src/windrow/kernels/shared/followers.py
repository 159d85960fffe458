"""Queries that ask what another one asks, only less often (CS8): their answers are among the other's.

Their windows are as long as the other's and end at some of the same instants, so that what a follower answers
are those rows of its leader that are about its own instants.

>>> every_third = Follower("f", slide=30, origin=0, begin=60)
>>> every_third.wants(np.array([30, 40, 60, 70, 90])).tolist()
[False, False, True, False, True]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Follower:
    """A query and the instants it answers; windows that end before `begin` are not complete for it."""

    query: str
    slide: int
    origin: int
    begin: int | None = None

    @property
    def instants(self) -> tuple[int, int, int | None]:
        """What decides which rows it takes."""
        return self.slide, self.origin % self.slide, self.begin

    def wants(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of some instants are its own."""
        mine = (at - self.origin) % self.slide == 0
        return np.asarray(mine if self.begin is None else mine & (at >= self.begin))

    def rows(self, table: pa.Table) -> pa.Table:
        """Its rows among those of its leader, whose first column is the instant."""
        return table.filter(pa.array(self.wants(instants(table))))

    def to_json(self) -> list[Any]:
        """For the manifest."""
        return [self.query, self.slide, self.origin, self.begin]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Follower:
        """What `to_json` wrote."""
        return cls(*stored)


def instants(table: pa.Table) -> npt.NDArray[np.int64]:
    """The first column of a table of answers, as ticks."""
    return np.asarray(table.column(0).cast(pa.int64()).to_numpy())
