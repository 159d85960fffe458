"""RANGE windows, by value of the attribute (WID 3.3, Q1), also with a LAG; NOW and UNBOUNDED, their limits.

`[RANGE r SLIDE s]` has the extents [E-r, E). A row is valid from the first E after it until the first E
whose extent begins after it:

    RANGE 10 SLIDE 5, t = 3      |-----|-----|-----|
                                 0  t  5     10    15
    extents that hold t          [-5,5) [0,10)          valid [5, 15)

`[RANGE r]` is the continuous form: at each instant i the rows with i-r < t <= i.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from windrow.errors import QueryError
from windrow.windows.domain import FOREVER, INFINITY, Instant
from windrow.windows.element import Element
from windrow.windows.grid import SlideGrid
from windrow.windows.spec import OwnInterval, WindowId, changes, require_near, require_positive


@dataclass(frozen=True)
class RangeWindow(OwnInterval):
    """The rows of the last `range` ticks.

    >>> RangeWindow(10, 5).interval(Element(3))
    Interval(vs=5, ve=15)
    >>> RangeWindow(10).interval(Element(3))
    Interval(vs=3, ve=13)
    >>> RangeWindow(2, 10).interval(Element(3)) is None
    True
    """

    range: int
    #: None: continuous
    slide: int | None = None
    origin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("RANGE", self.range)
        require_positive("SLIDE", self.slide)
        require_near("ORIGIN", self.origin)

    @property
    def grid(self) -> SlideGrid | None:
        return SlideGrid(self.slide, self.origin) if self.slide else None

    @property
    def is_refreshable(self) -> bool:
        return self.slide is not None

    def moving(self) -> RangeWindow:
        return replace(self, slide=None)

    @property
    def has_bounds(self) -> bool:
        return self.slide is not None

    @property
    def _length(self) -> Hashable:
        return self.range

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        if self.grid is None:
            return changes([self.span(row) for row in rows])
        return sorted({w for row in rows for w in self.grid.ending_in(row.t, row.t + self.range)})

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        end = self.grid.end(w) if self.grid else w + 1
        return [row for row in rows if end - self.range <= row.t < end]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        if self.grid is None:
            return range(row.t, row.t + self.range)
        return self.grid.ending_in(row.t, row.t + self.range)

    def span(self, row: Element) -> tuple[int, Instant]:
        if self.grid is None:
            return row.t, row.t + self.range
        return self.grid.first_after(row.t), self.grid.first_after(row.t + self.range)

    def bounds(self, end: int) -> tuple[Instant, int]:
        """(window_start, window_end) of the extent that ends at the slide instant `end`.

        >>> RangeWindow(300, 60).bounds(660)
        (360, 660)
        """
        self._sliding()
        return end - self.range, end


@dataclass(frozen=True)
class LaggedWindow(OwnInterval):
    """The rows of `range` ticks that ended `lag` ticks ago: paper 001's lag.

    RANGE 4 LAG 3, at now        (now-7 ........ now-3]...now
    With a SLIDE, the extent [E-d-r, E-d) is reported at E.

    >>> LaggedWindow(4, 3).interval(Element(10)), LaggedWindow(10, 2, 5).interval(Element(3))
    (Interval(vs=13, ve=17), Interval(vs=10, ve=20))
    >>> LaggedWindow(10, 2, 5).bounds(15)
    (3, 13)
    """

    range: int
    lag: int
    #: None: continuous
    slide: int | None = None
    origin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("RANGE", self.range)
        require_positive("SLIDE", self.slide)
        require_near("ORIGIN", self.origin)
        if self.lag < 0:
            raise QueryError(
                f"LAG must not be negative, not {self.lag}: a window cannot hold rows that are still to come",
                code="window-size",
                hint="leave LAG out, or say how long ago the window ended",
            )
        require_near("LAG", self.lag)

    @property
    def grid(self) -> SlideGrid | None:
        return SlideGrid(self.slide, self.origin) if self.slide else None

    @property
    def has_bounds(self) -> bool:
        return self.slide is not None

    @property
    def _length(self) -> Hashable:
        return "LAG", self.range, self.lag

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        if self.grid is None:
            return changes([self.span(row) for row in rows])
        return sorted({w for row in rows for w in self.wids(row)})

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        end = (self.grid.end(w) if self.grid else w + 1) - self.lag
        return [row for row in rows if end - self.range <= row.t < end]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        shown = row.t + self.lag
        if self.grid is None:
            return range(shown, shown + self.range)
        return self.grid.ending_in(shown, shown + self.range)

    def span(self, row: Element) -> tuple[int, Instant]:
        shown = row.t + self.lag
        if self.grid is None:
            return shown, shown + self.range
        return self.grid.first_after(shown), self.grid.first_after(shown + self.range)

    def bounds(self, end: int) -> tuple[Instant, int]:
        """(window_start, window_end) of the extent that is reported at the slide instant `end`."""
        self._sliding()
        return end - self.lag - self.range, end - self.lag


@dataclass(frozen=True)
class NowWindow(OwnInterval):
    """The rows of this very instant: [t, t+1)."""

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        return changes([self.span(row) for row in rows])

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        return [row for row in rows if row.t == w]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        return (row.t,)

    def span(self, row: Element) -> tuple[int, Instant]:
        return row.t, row.t + 1


@dataclass(frozen=True)
class UnboundedWindow(OwnInterval):
    """All rows so far: [t, infinity)."""

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        return changes([self.span(row) for row in rows])

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        return [row for row in rows if row.t <= w]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        return range(row.t, FOREVER)

    def span(self, row: Element) -> tuple[int, Instant]:
        return row.t, INFINITY
