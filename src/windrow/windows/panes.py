"""Panes: the pieces overlapping extents have in common ("No Pane, No Gain", 3.1).

A pane is as wide as gcd(RANGE, SLIDE): the widest piece of which every extent is a whole number.

    RANGE 6 SLIDE 4, panes of 2     | 0 | 1 | 2 | 3 | 4 |
    w = 1 ends at 8                     [-----------)
    w = 2 ends at 12                            [-----------)

With SLIDE > RANGE some panes lie in no extent.

Sub-windows: the pieces a window is cut into for aggregates that keep a summary of each of them.

A sub-window is a pane: as wide as gcd(RANGE, SLIDE), for [ROWS n SLIDE m ROWS] as many rows as gcd(n, m). A
landmark window has no RANGE, so it is cut where its extents end. Every extent consists of whole sub-windows,
and they leave it in the order they came, which is what a summary that cannot forget single rows needs.

    RANGE 6 SLIDE 3        |  0  |  1  |  2  |  3  |
    w = 1 ends at 6        [-----------)
    w = 2 ends at 9              [-----------)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Self

from windrow.errors import QueryError
from windrow.windows import landmark, ranges, rows
from windrow.windows.spec import WindowSpec, require_positive


@dataclass(frozen=True)
class SubWindows:
    """Pieces of equal width, of instants or, if `of_rows`, of positions, which are counted from 1.

    >>> pieces = SubWindows(width=3, origin=0)
    >>> [pieces.number(t) for t in (-1, 0, 2, 3)]
    [-1, 0, 0, 1]
    """

    width: int
    origin: int
    of_rows: bool = False

    def number(self, place: Any) -> Any:
        """The sub-window of an instant or position, or of an array of them."""
        return (place - self.origin) // self.width


def sub_windows_of(spec: WindowSpec) -> SubWindows | None:
    """How a window is cut; None if nothing but its rows says where its extents begin and end.

    >>> sub_windows_of(ranges.RangeWindow(6, 4)).width, sub_windows_of(rows.RowsWindow(100, 20)).width
    (2, 20)
    >>> sub_windows_of(ranges.RangeWindow(6)) is None
    True
    """
    match spec:
        case ranges.RangeWindow(slide=int(slide)):
            return SubWindows(gcd(spec.range, slide), spec.origin)
        case landmark.LandmarkWindow() if spec.grid is not None:
            return SubWindows(spec.grid.period, spec.grid.origin)
        case rows.RowsWindow(slide_rows=int(slide), partition_by=()):
            return SubWindows(gcd(spec.rows, slide), origin=1, of_rows=True)
    return None


@dataclass(frozen=True)
class Panes:
    """The panes of extents [E-range, E), E = origin + (w+1)*slide.

    >>> panes = Panes(range=6, slide=4)
    >>> panes.width, panes.per_window, panes.per_slide
    (2, 3, 2)
    """

    range: int
    slide: int
    origin: int = 0

    def __post_init__(self) -> None:
        require_positive("RANGE", self.range)
        require_positive("SLIDE", self.slide)

    @classmethod
    def of(cls, spec: WindowSpec) -> Self:
        """The panes of a window that has RANGE and SLIDE on one attribute; for ROWS that is the position.

        >>> Panes.of(rows.RowsWindow(1000, 10))
        Panes(range=1000, slide=10, origin=1)
        """
        if isinstance(spec, ranges.RangeWindow) and spec.slide is not None:
            return cls(spec.range, spec.slide, spec.origin)
        if isinstance(spec, rows.RowsWindow) and spec.slide_rows is not None:
            # positions (E-n, E] are [E-n+1, E+1): the same grid, one position later
            return cls(spec.rows, spec.slide_rows, origin=1)
        raise QueryError(
            "only a window with RANGE and SLIDE on one attribute has panes",
            code="window-panes",
            hint="write [RANGE r SLIDE s] or [ROWS n SLIDE m ROWS]",
        )

    @property
    def width(self) -> int:
        return gcd(self.range, self.slide)

    @property
    def per_window(self) -> int:
        return self.range // self.width

    @property
    def per_slide(self) -> int:
        """How far, in panes, one extent is from the next."""
        return self.slide // self.width
