"""CUMULATE windows: an extent grows step by step from a fixed beginning, and begins anew with the next one.

size 6, step 2           0     2     4     6     8
                         [-----)
                         [-----------)
                         [-----------------)
                                           [-----)
t = 3                             [4 ......... 8)     valid: in the extents that end at 4 and at 6
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from windrow.errors import QueryError
from windrow.windows.patterns import Label, Pattern
from windrow.windows.spec import OwnInterval, SlideGrid, require_near, require_positive


@dataclass(frozen=True)
class CumulateWindow(OwnInterval):
    """The rows since the last multiple of `size`, reported at every multiple of `step`.

    >>> from windrow.windows.domain import Element
    >>> window = CumulateWindow(6, 2)
    >>> window.interval(Element(3)), window.interval(Element(5)), window.bounds(8)
    (Interval(vs=4, ve=8), Interval(vs=6, ve=8), (6, 8))
    """

    size: int
    step: int
    origin: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("CUMULATE", self.size)
        require_positive("SLIDE", self.step)
        require_near("ORIGIN", self.origin)
        if self.size % self.step:
            raise QueryError(
                "a CUMULATE window grows in whole steps: its SLIDE must divide its size",
                code="window-size",
                hint="choose a step of which the size is a multiple",
            )

    @property
    def grid(self) -> SlideGrid:
        return SlideGrid(self.step, self.origin)

    has_bounds = True

    @property
    def _length(self) -> Hashable:
        return "CUMULATE", self.size, self.origin % self.size

    @property
    def depth(self) -> int:
        return self.size

    @property
    def typical_length(self) -> float:
        return (self.size + self.step) / 2

    @property
    def label(self) -> Label:
        if self.size == self.step:
            return Label(Pattern.WKS, "one step is a whole window", lifetime=self.size, fifo=True)
        return Label(Pattern.WK, "a window grows from its beginning: rows leave together", fifo=True)

    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        return self._entered(t), self._begin(t) + self.size + self.step

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        return self._begin(end - 1), end

    def _begin(self, instant: Any) -> Any:
        """The beginning of the window that an instant is in, of one or of many."""
        return self.origin + (instant - self.origin) // self.size * self.size
