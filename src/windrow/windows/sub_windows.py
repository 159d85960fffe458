"""Sub-windows: the pieces a window is cut into for aggregates that keep a summary of each of them.

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
from typing import Any

from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.spec import WindowSpec


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

    >>> sub_windows_of(RangeWindow(6, 4)).width, sub_windows_of(RowsWindow(100, 20)).width
    (2, 20)
    >>> sub_windows_of(RangeWindow(6)) is None
    True
    """
    match spec:
        case RangeWindow(slide=int(slide)):
            return SubWindows(gcd(spec.range, slide), spec.origin)
        case LandmarkWindow() if spec.grid is not None:
            return SubWindows(spec.grid.period, spec.grid.origin)
        case RowsWindow(slide_rows=int(slide), partition_by=()):
            return SubWindows(gcd(spec.rows, slide), origin=1, of_rows=True)
    return None
