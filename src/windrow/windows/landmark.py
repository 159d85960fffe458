"""LANDMARK windows: a fixed beginning, an optional end, and rows that never leave (WID 3.3).

Extents are [a, E), of rows with t <= b:

    FROM a UNTIL b SLIDE s    a........b
                              [    )
                              [       )
                              [          )
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.errors import QueryError
from windrow.windows.domain import FARTHEST, FOREVER, INFINITY, NO_END, Element, Instant, Ints
from windrow.windows.patterns import Label, never_leaves
from windrow.windows.spec import OwnInterval, SlideGrid, WindowId, changes, require_near, require_positive


@dataclass(frozen=True)
class LandmarkWindow(OwnInterval):
    """The rows with start <= t <= until, for good. ORIGIN defaults to the start.

    >>> window = LandmarkWindow(start=100, until=200, slide=60)
    >>> window.interval(Element(130)), window.interval(Element(99)), window.interval(Element(200))
    (Interval(vs=160, ve=inf), None, Interval(vs=220, ve=inf))
    """

    start: int | None = None
    until: int | None = None
    slide: int | None = None
    origin: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # no RANGE is added to an instant here
        require_positive("SLIDE", self.slide, 2 * FARTHEST)
        for part, point in (("FROM", self.start), ("UNTIL", self.until), ("ORIGIN", self.origin)):
            require_near(part, point, FARTHEST + 1)
        if self.start is not None and self.until is not None and self.start > self.until:
            raise QueryError(
                f"the window begins at {self.start}, after it ends at {self.until}",
                code="window-bounds",
                hint="FROM must not be later than UNTIL; both belong to the window",
            )

    @property
    def grid(self) -> SlideGrid | None:
        if self.slide is None:
            return None
        return SlideGrid(self.slide, self.origin if self.origin is not None else self.start or 0)

    @property
    def has_bounds(self) -> bool:
        return self.slide is not None

    @property
    def typical_length(self) -> float | None:
        return None if self.start is None or self.until is None else self.until - self.start + 1

    @property
    def label(self) -> Label:
        return never_leaves()

    @property
    def _length(self) -> Hashable:
        return "LANDMARK", self.start

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        """With a SLIDE: up to the first extent that holds all rows; after it nothing changes."""
        if self.grid is None:
            return changes([self.span(row) for row in rows])
        held = [row.t for row in rows if self._holds(row)]
        return self.grid.around(min(held), max(held)) if held else ()

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        end = self.grid.end(w) if self.grid else w + 1
        first = -INFINITY if self.start is None else self.start
        last = INFINITY if self.until is None else self.until
        return [row for row in rows if first <= row.t <= last and row.t < end]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        if not self._holds(row):
            return ()
        if self.grid is None:
            return range(row.t, FOREVER)
        return self.grid.ending_in(row.t, FOREVER + self.grid.period)

    def span(self, row: Element) -> tuple[int, Instant] | None:
        if not self._holds(row):
            return None
        return (self.grid.first_after(row.t) if self.grid else row.t), INFINITY

    def spans(self, t: Ints, lifetimes: Ints | None = None) -> tuple[Ints, Ints]:
        vs = self._entered(t)
        first = -FARTHEST - 1 if self.start is None else self.start
        last = FARTHEST + 1 if self.until is None else self.until
        return vs, np.where((first <= t) & (t <= last), NO_END, vs)

    def held(self, at: int) -> tuple[Instant, Instant]:
        first, last = super().held(at)
        return first, last if self.until is None else min(last, self.until)

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        return -INFINITY if self.start is None else self.start, end

    def _holds(self, row: Element) -> bool:
        begun = self.start is None or row.t >= self.start
        return begun and (self.until is None or row.t <= self.until)
