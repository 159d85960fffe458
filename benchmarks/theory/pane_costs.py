"""Pane costs: what paper 002 (3.3.1) counts for an extent, with panes and without.

The engine's planner does not ask this: its kernels have panes built in, whose costs `windrow.optimizer.costs`
knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.windows.panes import Panes


@dataclass(frozen=True)
class SlidingWork:
    """An aggregate over [RANGE r SLIDE s] with `rows` rows per window and `groups` groups per pane, all unit
    costs 1."""

    panes: Panes
    rows: float
    groups: float

    def paned(self, *, differential: bool) -> float:
        """(3.1), or (3.2) if a window follows from the window before it."""
        new = self.panes.per_slide * (self.rows / self.panes.per_window + self.groups)
        combined = 2 * self.panes.per_slide if differential else self.panes.per_window
        return new + combined * self.groups

    def windowed(self, *, differential: bool) -> float:
        """(3.3), or (3.4): rows that came and rows that went."""
        return 2 * self.panes.slide * self.rows / self.panes.range if differential else self.rows

    def pays(self, *, differential: bool) -> bool:
        """Whether panes are cheaper.

        >>> SlidingWork(Panes(range=4, slide=1), rows=40, groups=30).pays(differential=False)
        False
        """
        return self.paned(differential=differential) < self.windowed(differential=differential)
