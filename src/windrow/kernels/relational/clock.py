"""Which instants a step makes final.

The clock τ goes from `before` to `now`. Rows with an attribute below τ are all known. A change at instant i
is final when τ > i, an extent that ends at E when τ ≥ E: with `lag` 1 the answer at E is about the instant
before E. So a step answers the instants [start, stop).

>>> Slice.of(Clock(10, 20), lag=0), Slice.of(Clock(10, 20), lag=1).stop
(Slice(start=10, stop=20, before=10, now=20, floor=20), 21)

Where groups are final by themselves, a source has a clock of its own; what is not about one source goes as
far as the furthest (`windrow.algebra.finality`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.kernels.columnar.codes import looked_up
from windrow.kernels.relational.signed_rows import FOREVER

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

    Moved = tuple[int, int]


@dataclass(frozen=True)
class Clock:
    """How far answers go before and after a step, as integers; `reached` is how far the clock came before
    the input ended."""

    before: int
    now: int
    reached: int = -FOREVER
    #: the column whose values have clocks of their own, theirs, and that of all others
    column: str | None = None
    sources: Mapping[Any, Moved] = field(default_factory=dict)
    others: Moved = (-FOREVER, -FOREVER)
    #: those of the branches, of a union of streams
    branches: tuple[Clock, ...] = ()

    @property
    def plain(self) -> Clock:
        """The furthest clock, for what is not about one source."""
        return replace(self, column=None, sources={})

    @property
    def stands(self) -> bool:
        """Whether nothing becomes final."""
        if self.branches:
            return all(branch.stands for branch in self.branches)
        moved = [(self.before, self.now), *self.sources.values()]
        return all(before >= now for before, now in moved) and (
            self.column is None or self.others[0] >= self.others[1]
        )

    def of(self, sources: pl.Series) -> tuple[Ints, Ints]:
        """`before` and `now` for each of some sources."""
        size = len(sources)
        if self.column is None:
            return np.full(size, self.before), np.full(size, self.now)
        known = pl.DataFrame(
            {
                "source": pl.Series(list(self.sources), dtype=sources.dtype),
                "before": pl.Series([moved[0] for moved in self.sources.values()], dtype=pl.Int64),
                "now": pl.Series([moved[1] for moved in self.sources.values()], dtype=pl.Int64),
            }
        )
        rows = pl.DataFrame({"source": sources})
        found = [looked_up(rows, known, name) for name in ("before", "now")]
        before, now = (column.fill_null(self.others[i]) for i, column in enumerate(found))
        return before.to_numpy(), now.to_numpy()


@dataclass(frozen=True)
class Slice:
    """The instants [start, stop) become final; rows with an attribute below `now` are known."""

    start: int
    stop: int
    before: int
    now: int
    #: no answer about an earlier instant is still to come
    floor: int

    @classmethod
    def of(cls, clock: Clock, lag: int) -> Slice:
        nows = (
            [clock.now]
            if clock.column is None
            else [clock.others[1], *(n for _, n in clock.sources.values())]
        )
        floor = moved(min(nows), lag)
        return cls(moved(clock.before, lag), moved(clock.now, lag), clock.before, clock.now, floor)

    @property
    def ended(self) -> bool:
        """Whether the input has ended."""
        return self.now >= FOREVER


def moved(instant: int, lag: int) -> int:
    """An instant one later, if there is a lag and it is finite."""
    return instant + lag if abs(instant) < FOREVER else instant
