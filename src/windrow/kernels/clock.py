"""From where to where the clock goes in an epoch: for all groups together, or for each source by itself.

Where punctuation is PER a column that the query groups by, a group is answered as far as its own source has
got. Its windows then have their own first and last, and so does what is still needed of it.

>>> clock = PaneClock(10, 20, "k0", {"a": (10, 40)})
>>> clock.least, clock.greatest
((10, 20), (10, 40))
>>> clock.of(pl.DataFrame({"k0": ["a", None]})).rows()
[(10, 40), (10, 20)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.kernels.columnar.codes import looked_up
from windrow.windows.domain import INFINITY, NO_END, Instant

if TYPE_CHECKING:
    from windrow.kernels.panes.cuts import Cut

    Moved = tuple[Instant, Instant]

#: stand for infinity where instants and windows are 64-bit integers; panes are a few times windows
FOREVER, LAST_WINDOW = NO_END, 1 << 58


@dataclass(frozen=True)
class PaneClock:
    """What was answered up to `before` is answered up to `now`; with `key`, each of `sources` has its own."""

    before: Instant
    now: Instant
    #: the column of pane tables that holds the source
    key: str | None = None
    sources: Mapping[Any, Moved] = field(default_factory=dict)

    @property
    def moved(self) -> list[Moved]:
        """All that happens to any group."""
        return [(self.before, self.now), *self.sources.values()]

    @property
    def least(self) -> Moved:
        """Before which, at least, everything was and is answered."""
        return min(before for before, _ in self.moved), min(now for _, now in self.moved)

    @property
    def greatest(self) -> Moved:
        """After which nothing was, nor is, answered."""
        return max(before for before, _ in self.moved), max(now for _, now in self.moved)

    def of(self, groups: pl.DataFrame) -> pl.DataFrame:
        """`before` and `now` of each group, as integers."""
        common = pl.DataFrame({"before": [_finite(self.before)], "now": [_finite(self.now)]})
        if self.key is None or not self.sources:
            return common.select(pl.all().gather(pl.Series([0]).new_from_index(0, groups.height)))
        source = groups[self.key]
        known = pl.DataFrame(
            {
                self.key: pl.Series(list(self.sources), dtype=source.dtype),
                "before": [_finite(before) for before, _ in self.sources.values()],
                "now": [_finite(now) for _, now in self.sources.values()],
            }
        )
        rows = groups.select(self.key)
        return pl.DataFrame(
            [
                looked_up(rows, known, name).fill_null(common[name][0]).alias(name)
                for name in ("before", "now")
            ]
        )

    def windows(self, groups: pl.DataFrame, cut: Cut) -> pl.DataFrame:
        """The first and the last window to answer, of each group."""
        moved = self.of(groups)
        return pl.DataFrame(
            {"first": _due(moved["before"], cut) + 1, "last": _due(moved["now"], cut)},
        )

    def is_due(self, cut: Cut) -> bool:
        """Whether the end of any window is passed."""
        return any(cut.due(before) < cut.due(now) for before, now in self.moved)


def _due(clock: pl.Series, cut: Cut) -> pl.Series:
    """The last window that ends by each instant."""
    return ((clock - cut.origin) // cut.slide - 1).clip(-LAST_WINDOW, LAST_WINDOW)


def _finite(instant: Instant) -> int:
    return int(instant) if abs(instant) != INFINITY else (FOREVER if instant > 0 else -FOREVER)
