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

from windrow.windows import spec
from windrow.windows.domain import FARTHEST, INFINITY, NO_END, Element, Instant
from windrow.windows.patterns import NEVER_LEAVES


@dataclass(frozen=True)
class LandmarkWindow(spec.OwnInterval):
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
        spec.require_positive("SLIDE", self.slide, 2 * FARTHEST)
        for part, point in (("FROM", self.start), ("UNTIL", self.until), ("ORIGIN", self.origin)):
            spec.require_near(part, point, FARTHEST + 1)
        spec.require_order(self.start, self.until)

    @property
    def grid(self) -> spec.SlideGrid | None:
        if self.slide is None:
            return None
        return spec.SlideGrid(self.slide, self.origin if self.origin is not None else self.start or 0)

    @property
    def has_bounds(self) -> bool:
        return self.slide is not None

    @property
    def typical_length(self) -> float | None:
        return None if self.start is None or self.until is None else self.until - self.start + 1

    label = NEVER_LEAVES

    @property
    def _length(self) -> Hashable:
        return "LANDMARK", self.start

    def windows(self, rows: Sequence[Element]) -> Sequence[spec.WindowId]:
        """With a SLIDE: up to the first extent that holds all rows; after it nothing changes."""
        if self.grid is None:
            return super().windows(rows)
        held = [row.t for row in rows if self._holds(row)]
        return self.grid.around(min(held), max(held)) if held else ()

    def span(self, row: Element) -> tuple[int, Instant] | None:
        if not self._holds(row):
            return None
        return (self.grid.first_after(row.t) if self.grid else row.t), INFINITY

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
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
        return spec.is_between(self.start, row.t, self.until)
