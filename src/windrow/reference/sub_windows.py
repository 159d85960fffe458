"""In which sub-window of its window each row is, by the definition: pieces of gcd(RANGE, SLIDE), counted."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from windrow.reference.scopes import counting_order
from windrow.windows.element import Element
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.spec import WindowSpec


def sub_windows(spec: WindowSpec, rows: Sequence[Element]) -> list[int | None]:
    """The number of each row's sub-window; None where the window is not cut."""
    if isinstance(spec, RangeWindow) and spec.slide is not None:
        width = gcd(spec.range, spec.slide)
        return [(row.t - spec.origin) // width for row in rows]
    if isinstance(spec, LandmarkWindow) and spec.grid is not None:
        return [(row.t - spec.grid.origin) // spec.grid.period for row in rows]
    numbers: list[int | None] = [None] * len(rows)
    if isinstance(spec, RowsWindow) and spec.slide_rows is not None and not spec.partition_by:
        width = gcd(spec.rows, spec.slide_rows)
        for before, place in enumerate(counting_order(spec, rows, range(len(rows)))):
            numbers[place] = before // width
    return numbers
