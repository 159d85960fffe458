"""Cuts of the time axis: into panes, so that every extent is a run of whole panes.

With SLIDE dividing RANGE a pane is one slide. Otherwise each slide is cut in two, where extents end and
where they begin (paired windows: Krishnamurthy, Wu and Franklin, "On-the-fly sharing for streamed
aggregation", 2006):

    RANGE 6 SLIDE 4    |---:---|---:---|---:---|      :  begins of extents, E-6
    panes                0   1   2   3   4   5        |  ends of extents
    w = 1 ends at 8        [-----------)              3 panes

There are never more than two panes per slide, whatever gcd(RANGE, SLIDE) is; panes of that width would
be microseconds wide for RANGE 1 HOUR SLIDE 7.000001 SECONDS. Where finer panes come from a shared stage,
`pane_of` their beginning is the pane they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.errors import QueryError
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.grid import SlideGrid
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.windows.spec import WindowSpec


@dataclass(frozen=True)
class Cut:
    """The panes of extents [E-range, E), E = origin + (w+1)*slide; `range` None: all rows before E.

    >>> cut = Cut(range=6, slide=4)
    >>> cut.per_window, cut.per_slide, cut.panes_of(np.array([0, 1, 2, 3, 4])).tolist()
    (3, 2, [0, 0, 1, 1, 2])
    >>> cut.first_pane(1), cut.end_pane(1), cut.first_window(1), cut.last_window(1)
    (1, 4, 0, 1)
    """

    range: int | None
    slide: int
    origin: int = 0
    #: rows outside [start, until] are in no extent
    start: int | None = None
    until: int | None = None

    @property
    def grid(self) -> SlideGrid:
        return SlideGrid(self.slide, self.origin)

    @property
    def is_paired(self) -> bool:
        return self.range is not None and self.range % self.slide != 0

    @property
    def per_slide(self) -> int:
        return 2 if self.is_paired else 1

    @property
    def per_window(self) -> int:
        """How many panes an extent has."""
        assert self.range is not None
        slides = -(-self.range // self.slide)
        return 2 * slides - 1 if self.is_paired else slides

    def panes_of(self, t: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The pane of each instant."""
        since = t - self.origin
        if not self.is_paired:
            return np.asarray(since // self.slide)
        assert self.range is not None
        return np.asarray(2 * (since // self.slide) + (since % self.slide >= -self.range % self.slide))

    def holds(self, t: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether an instant lies in any extent at all."""
        inside = np.ones(len(t), dtype=bool)
        if self.start is not None:
            inside &= t >= self.start
        if self.until is not None:
            inside &= t <= self.until
        if self.range is not None and self.range < self.slide:
            inside &= (t - self.origin) % self.slide >= self.slide - self.range
        return inside

    def first_pane(self, w: int) -> int:
        """The first pane of an extent."""
        return self.end_pane(w) - self.per_window

    def end_pane(self, w: int) -> int:
        """One past the last pane of an extent."""
        return (w + 1) * self.per_slide

    def first_window(self, pane: int) -> int:
        """The first extent that ends after a pane."""
        return pane // self.per_slide

    def last_window(self, pane: int) -> int:
        """The last extent that begins with or before a pane."""
        return (pane + self.per_window) // self.per_slide - 1

    def ends(self, w: Any) -> Any:
        """Where extents end: a number, or an array of them."""
        return self.origin + (w + 1) * self.slide

    def due(self, clock: Instant) -> Instant:
        """The last extent that ends by the clock."""
        return clock if abs(clock) == INFINITY else self.grid.last_ending(int(clock))


def cut_of(spec: WindowSpec) -> Cut:
    """The panes of a window that slides in time."""
    if isinstance(spec, RangeWindow) and spec.slide is not None:
        return Cut(spec.range, spec.slide, spec.origin)
    if isinstance(spec, LandmarkWindow) and spec.grid is not None:
        return Cut(None, spec.grid.period, spec.grid.origin, spec.start, spec.until)
    raise QueryError(
        f"kernels for aggregates over {type(spec).__name__} without SLIDE do not exist yet",
        code="unsupported",
        hint="give the window a SLIDE, or use the reference executor",
    )
