"""WinDrop for arrangements of aggregates: the rules of Tatbul and Zdonik, Table 2.

A WinDrop decides about windows of `window` ticks, one every `slide` ticks, at most `batch` of which may be
missing in a row. The paper anchors windows at their beginning, Windrow at their end; sizes are the same in
both, and `windrow.shedding.agreement` says where they lie here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm


class CannotShed(Exception):  # noqa: N818  it is an answer, not a failure
    """No windows of this query, or of these queries together, may be dropped: a short code, and a
    sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


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
    def early_ticks(self) -> int:
        """How many ticks of rows a dropped batch makes needless.

        >>> WinDrop(20, 2, batch=10).early_ticks
        2
        """
        return max(0, (self.batch + 1) * self.slide - self.window)


def fan_out(*arrangement: WinDrop) -> WinDrop:
    """One before aggregates that read the same stream: each common slot holds whole windows of all.

    A batch of 0 means that not even one common slot may be missing: windows are then dropped after the split.

    >>> fan_out(WinDrop(3, 2, batch=6), WinDrop(3, 3, batch=4))
    WinDrop(window=7, slide=6, batch=2)
    >>> fan_out(WinDrop(5, 5, batch=1), WinDrop(7, 7, batch=9)).batch
    0
    """
    slide = lcm(*(each.slide for each in arrangement))
    window = slide + max(each.extent for each in arrangement)
    return WinDrop(window, slide, min(each.batch * each.slide // slide for each in arrangement))


def early_share(drop: WinDrop, p: float) -> float:
    """The share of rows that is dropped early, where p of the windows are dropped.

    >>> early_share(WinDrop(20, 2, batch=10), 0.5)
    0.05
    """
    return p * drop.early_ticks / (drop.batch * drop.slide) if drop.batch else 0.0


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What holds of the answers under a way of shedding, whatever the input."""

    #: every row given is a row of the exact answer
    subset: bool
    #: no more windows in a row are missing than MAX GAP says
    bounded_gaps: bool

    def text(self, gap: int | None = None) -> str:
        """The promise in words; `gap` is MAX GAP, where it is known.

        >>> print(WINDROP.text(4))
        each answer given is exact, at most 4 windows in a row are missing
        >>> print(ROW_DROP.text())
        answers may be wrong, any number of windows may be missing
        """
        answers = "each answer given is exact" if self.subset else "answers may be wrong"
        if not self.bounded_gaps:
            return f"{answers}, any number of windows may be missing"
        most = "MAX GAP windows" if gap is None else "1 window" if gap == 1 else f"{gap} windows"
        return f"{answers}, at most {most} in a row {'is' if gap == 1 else 'are'} missing"


#: Windrow's way drops windows, and rows that no kept window needs; the others are here to be compared with:
#: answers dropped at random, after all aggregates, and rows, before them
WINDROP = Guarantee(subset=True, bounded_gaps=True)
RDROP = Guarantee(subset=True, bounded_gaps=False)
ROW_DROP = Guarantee(subset=False, bounded_gaps=False)
