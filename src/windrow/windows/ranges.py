"""RANGE windows, by value of the attribute (WID 3.3, Q1), also with a LAG; NOW and UNBOUNDED, their limits.

`[RANGE r SLIDE s]` has the extents [E-r, E). A row is valid from the first E after it until the first E
whose extent begins after it:

    RANGE 10 SLIDE 5, t = 3      |-----|-----|-----|
                                 0  t  5     10    15
    extents that hold t          [-5,5) [0,10)          valid [5, 15)

`[RANGE r]` is the continuous form: at each instant i the rows with i-r < t <= i.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from windrow.errors import QueryError
from windrow.windows.domain import INFINITY, NO_END, Element, Instant
from windrow.windows.patterns import NEVER_LEAVES, Label, Pattern
from windrow.windows.spec import OwnInterval, SlideGrid, require_near, require_positive


class _Ranged(OwnInterval):
    """The rows of `range` ticks; with a SLIDE, at its instants only."""

    range: int
    #: None: continuous
    slide: int | None
    origin: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("RANGE", self.range)
        require_positive("SLIDE", self.slide)
        require_near("ORIGIN", self.origin)

    @property
    def _lag(self) -> int:
        """How long ago the window ended."""
        return 0

    @property
    def grid(self) -> SlideGrid | None:
        return SlideGrid(self.slide, self.origin) if self.slide else None

    @property
    def has_bounds(self) -> bool:
        return self.slide is not None

    @property
    def depth(self) -> int:
        return self.range + self._lag

    @property
    def coverage(self) -> float:
        return min(1.0, self.range / self.slide) if self.slide else 1.0

    @property
    def label(self) -> Label:
        if self.slide is not None and self.range % self.slide:
            return Label(
                Pattern.WK, "SLIDE does not divide RANGE: lifetimes differ, in FIFO order", fifo=True
            )
        why = "SLIDE divides RANGE: " if self.slide is not None else ""
        return Label(Pattern.WKS, f"{why}every row lives for RANGE", lifetime=self.range, fifo=True)

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        shown = t + self._lag if self._lag else t
        return self._entered(shown), self._entered(shown + self.range)

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        return end - self._lag - self.range, end - self._lag


@dataclass(frozen=True)
class RangeWindow(_Ranged):
    """The rows of the last `range` ticks.

    >>> RangeWindow(10, 5).interval(Element(3))
    Interval(vs=5, ve=15)
    >>> RangeWindow(10).interval(Element(3))
    Interval(vs=3, ve=13)
    >>> RangeWindow(2, 10).interval(Element(3)) is None
    True
    >>> RangeWindow(300, 60).bounds(660), RangeWindow(300, 60).held(700), RangeWindow(10).held(99)
    ((360, 660), (360, 659), (90, 99))
    """

    range: int
    slide: int | None = None
    origin: int = 0

    @property
    def is_refreshable(self) -> bool:
        return self.slide is not None

    def moving(self) -> RangeWindow:
        return replace(self, slide=None)

    @property
    def _length(self) -> Hashable:
        return self.range


@dataclass(frozen=True)
class LaggedWindow(_Ranged):
    """The rows of `range` ticks that ended `lag` ticks ago: paper 001's lag.

    RANGE 4 LAG 3, at now        (now-7 ........ now-3]...now
    With a SLIDE, the extent [E-d-r, E-d) is reported at E.

    >>> LaggedWindow(4, 3).interval(Element(10)), LaggedWindow(10, 2, 5).interval(Element(3))
    (Interval(vs=13, ve=17), Interval(vs=10, ve=20))
    >>> LaggedWindow(10, 2, 5).bounds(15), LaggedWindow(4, 3).held(10)
    ((3, 13), (4, 7))
    """

    range: int
    lag: int
    slide: int | None = None
    origin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lag < 0:
            raise QueryError(
                f"LAG must not be negative, not {self.lag}: a window cannot hold rows that are still to come",
                code="window-size",
                hint="leave LAG out, or say how long ago the window ended",
            )
        require_near("LAG", self.lag)

    @property
    def _lag(self) -> int:
        return self.lag

    @property
    def _length(self) -> Hashable:
        return "LAG", self.range, self.lag


@dataclass(frozen=True)
class NowWindow(OwnInterval):
    """The rows of this very instant: [t, t+1)."""

    depth = 1
    label = Label(Pattern.WKS, "every row lives for one instant", lifetime=1, fifo=True)

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        return t, t + 1

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        return end - 1, end


@dataclass(frozen=True)
class UnboundedWindow(OwnInterval):
    """All rows so far: [t, infinity)."""

    label = NEVER_LEAVES

    def span(self, row: Element) -> tuple[int, Instant]:
        return row.t, INFINITY

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        return t, np.full(len(t), NO_END, dtype=np.int64)
