"""WinDrop for arrangements of aggregates: the rules of Tatbul and Zdonik, Table 2.

A WinDrop decides about windows of `window` ticks, one every `slide` ticks, at most `batch` of which may be
missing in a row. It is derived from the aggregates after it:

    pipeline   A1 -> A2 -> ... -> Ak    window = sum of all windows - (k-1), slide and batch of the last
    fan-out    A1, A2, ..., Ak          slide = lcm of the slides, window = slide + the greatest extent,
                                        batch = the least batch, counted in slots of the common slide

The paper anchors windows at their beginning, Windrow at their end; sizes are the same in both, and
`windrow.shedding.reach` says where they lie here. Composites are made in either order:

>>> a0, a1, a2 = WinDrop(4, 1), WinDrop(3, 2, batch=6), WinDrop(3, 3, batch=4)
>>> pipeline(WinDrop(3, 2), WinDrop(3, 3, batch=4))
WinDrop(window=5, slide=3, batch=4)
>>> fan_out(a1, a2)
WinDrop(window=7, slide=6, batch=2)
>>> pipeline(a0, fan_out(a1, a2)) == fan_out(pipeline(a0, a1), pipeline(a0, a2)) == WinDrop(10, 6, batch=2)
True
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm


@dataclass(frozen=True, slots=True)
class WinDrop:
    """Windows that are kept or dropped as a whole. `batch` 0: none may be dropped."""

    window: int
    slide: int
    batch: int = 0

    @property
    def extent(self) -> int:
        """How far a window reaches into the slides of its neighbours."""
        return self.window - self.slide

    @property
    def most(self) -> float:
        """The greatest share of windows that may be dropped.

        >>> WinDrop(10, 10, batch=4).most
        0.8
        """
        return self.batch / (self.batch + 1)

    @property
    def drops_early(self) -> bool:
        """Whether a dropped batch leaves rows that no kept window needs: batch >= floor(window / slide).

        >>> [WinDrop(20, 2, batch=size).drops_early for size in (9, 10)]
        [False, True]
        """
        return self.batch >= self.window // self.slide

    @property
    def early_ticks(self) -> int:
        """How many ticks of rows a dropped batch makes needless.

        >>> WinDrop(20, 2, batch=10).early_ticks
        2
        """
        return max(0, (self.batch + 1) * self.slide - self.window)


def pipeline(*arrangement: WinDrop) -> WinDrop:
    """One before a sequence of aggregates, from the input to the output.

    The inner aggregate's answer about [E-r, E) is a row of instant E-1: one tick of each inner window is
    counted by the window after it already.
    """
    *inner, last = arrangement
    window = last.window + sum(each.window - 1 for each in inner)
    return WinDrop(window, last.slide, last.batch)


def fan_out(*arrangement: WinDrop) -> WinDrop:
    """One before aggregates that read the same stream: each common slot holds whole windows of all.

    A batch of 0 means that not even one common slot may be missing: windows are then dropped after the split.

    >>> fan_out(WinDrop(5, 5, batch=1), WinDrop(7, 7, batch=9)).batch
    0
    """
    slide = lcm(*(each.slide for each in arrangement))
    window = slide + max(each.extent for each in arrangement)
    return WinDrop(window, slide, min(each.batch * each.slide // slide for each in arrangement))
