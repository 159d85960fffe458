"""When a change of p begins, and in which cycles windows are dropped from then on.

Where windows do not overlap, short gaps save as much as long ones: then the least B is taken that allows for
p, and MAX GAP is only its bound. Nearly every cycle is dropped then, in the same way, and no long stretch is
kept by chance while rows come too fast. Where windows overlap, long gaps make more rows needless for the same
number of windows: there B is MAX GAP.

As long as nothing is dropped, a cycle may begin with any slot, and when dropping ends it ends with any slot.
Between, a cycle that runs goes to its end.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from windrow.shedding.phases import Cycles, Phase

#: a cycle that would be kept by chance this seldom is not kept at all
_HARDLY = 0.9

if TYPE_CHECKING:
    from windrow.shedding.rules import WinDrop


def shortest(drop: WinDrop, p: float, span: int = 0) -> int:
    """The least B that allows for p and saves no fewer rows; cycles are no shorter than `span`, if they can.

    >>> from windrow.shedding.rules import WinDrop
    >>> [shortest(WinDrop(10, 10, batch=9), p) for p in (0.1, 0.5, 0.7, 0.75, 0.9)]
    [1, 1, 3, 3, 9]
    >>> shortest(WinDrop(20, 10, batch=9), 0.5), shortest(WinDrop(10, 10, batch=9), 0.5, span=45)
    (9, 4)
    """
    if drop.window > drop.slide:
        return drop.batch
    least = ceil(p / (1 - p) - 1e-9) if p < drop.most else drop.batch
    return max(1, min(drop.batch, max(least, ceil(span / drop.slide) - 1)))


def steady(p: float, batch: int) -> float:
    """p, or all that B allows for if that is hardly more: then no cycle is kept by chance.

    >>> [steady(p, batch=3) for p in (0.0, 0.5, 0.7, 0.75)]
    [0.0, 0.5, 0.75, 0.75]
    """
    most = batch / (batch + 1)
    return most if p >= _HARDLY * most else p


def next_cycles(now: Phase | None, slots: Cycles, free: int, *, drops: bool) -> tuple[int, Cycles]:
    """From when on the next phase may be, for windows that end later than `free`, and its cycles.

    `now` is the phase that such windows are in so far; `drops`: any of them is dropped from now on.

    >>> slots = Cycles(0, 10, batch=3)
    >>> next_cycles(Phase(0, Cycles(0, 10, 9), p=0.0, seed=1), slots, 57, drops=True)
    (60, Cycles(origin=20, length=10, batch=3))
    >>> next_cycles(Phase(0, Cycles(0, 10, 9), p=0.5, seed=1), slots, 57, drops=True)
    (100, Cycles(origin=20, length=10, batch=3))
    """
    begin = slots.first_slot(free)
    if drops and now is not None and now.p and _alike(now.cycles, slots):
        begin = now.cycles.first_begin(free)
    return begin, slots.beginning(begin)


def _alike(some: Cycles, others: Cycles) -> bool:
    """Whether they have the same slots."""
    return some.length == others.length and (some.origin - others.origin) % some.length == 0
