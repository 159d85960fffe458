"""What a sliding aggregate costs per extent, with panes and without (paper 002, formulae 3.1 to 3.4).

T is the number of rows in a window, P the panes of a window, G the groups of a pane; `a` is the cost of a
row, `b` of a pane's result, `c` of a result combined into a window. The printed (3.1) and (3.2) charge one
pane per extent, a*T/P + b*G; an extent brings SLIDE/GCD new panes, so that is the factor here.

>>> minutes = SlidingWork(Panes(range=4, slide=1), rows=400, groups=1)
>>> minutes.paned(differential=False), minutes.windowed(differential=False)
(105.0, 400.0)
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.windows.panes import Panes


@dataclass(frozen=True)
class SlidingWork:
    """An aggregate over [RANGE r SLIDE s] with `rows` rows per window and `groups` groups per pane."""

    panes: Panes
    rows: float
    groups: float
    a: float = 1.0
    b: float = 1.0
    c: float = 1.0

    def paned(self, differential: bool) -> float:
        """(3.1), or (3.2) if a window follows from the window before it."""
        new = self.panes.per_slide * (self.a * self.rows / self.panes.per_window + self.b * self.groups)
        if differential:
            return new + 2 * self.c * self.groups * self.panes.per_slide
        return new + self.c * self.panes.per_window * self.groups

    def windowed(self, differential: bool) -> float:
        """(3.3), or (3.4): rows that came and rows that went."""
        if differential:
            return 2 * self.a * self.panes.slide * self.rows / self.panes.range
        return self.a * self.rows

    def built_in(self) -> float:
        """On kernels that keep a state per pane and group (`windrow.kernels.panes.slide`).

        A new pane is lifted, then goes into a beginning and a rest of a block, of which every extent is put
        together. Slides are cut in two at most, however small the gcd is.

        >>> minutes = SlidingWork(Panes(range=4, slide=1), rows=400, groups=1)
        >>> minutes.built_in()
        104.0
        """
        new = min(self.panes.per_slide, 2)
        rows = self.a * self.rows * self.panes.slide / self.panes.range
        return rows + new * (self.b + 2 * self.c) * self.groups + self.c * self.groups

    def pays(self, differential: bool) -> bool:
        """Whether panes are cheaper.

        >>> SlidingWork(Panes(range=4, slide=1), rows=40, groups=30).pays(differential=False)
        False
        """
        return self.paned(differential) < self.windowed(differential)
