"""CUMULATE windows: an extent grows step by step from a fixed beginning, and begins anew with the next one.

size 6, step 2           0     2     4     6     8
                         [-----)
                         [-----------)
                         [-----------------)
                                           [-----)
t = 3                             [4 ......... 8)     valid: in the extents that end at 4 and at 6
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from windrow.errors import QueryError
from windrow.windows.domain import Instant
from windrow.windows.element import Element
from windrow.windows.grid import SlideGrid
from windrow.windows.spec import OwnInterval, WindowId, require_near, require_positive


@dataclass(frozen=True)
class CumulateWindow(OwnInterval):
    """The rows since the last multiple of `size`, reported at every multiple of `step`.

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

    @property
    def has_bounds(self) -> bool:
        return True

    @property
    def _length(self) -> Hashable:
        return "CUMULATE", self.size, self.origin % self.size

    def start(self, end: int) -> int:
        """Where the extent that ends at a slide instant begins."""
        return self._begin(end - 1)

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        return sorted({w for row in rows for w in self.wids(row)})

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        end = self.grid.end(w)
        return [row for row in rows if self.start(end) <= row.t < end]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        return self.grid.ending_in(row.t, self._begin(row.t) + self.size)

    def span(self, row: Element) -> tuple[int, Instant]:
        return self.grid.first_after(row.t), self._begin(row.t) + self.size + self.step

    def bounds(self, end: int) -> tuple[Instant, int]:
        return self.start(end), end

    def _begin(self, instant: int) -> int:
        """The beginning of the window that an instant is in."""
        return self.origin + (instant - self.origin) // self.size * self.size
