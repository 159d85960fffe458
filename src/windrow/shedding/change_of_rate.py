"""When a change of p begins, and in which cycles windows are dropped from then on.

Where windows do not overlap, short gaps save as much as long ones: then the least B is taken that allows for
p, and MAX GAP is only its bound. Nearly every cycle is dropped then, in the same way, and no long stretch is
kept by chance while rows come too fast. Where windows overlap, long gaps make more rows needless for the same
number of windows: there B is MAX GAP.

As long as nothing is dropped, a cycle may begin with any slot, and when dropping ends it ends with any
slot. A cycle that is kept by chance ends with any slot too, if more is to be dropped. Otherwise, a cycle
that runs goes to its end. The slot that a cycle keeps may be one whose windows have ended: if these were
all kept, the next may be dropped at once.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from windrow.shedding.phases import Cycles, Phases

#: a cycle that would be kept by chance this seldom is not kept at all
_HARDLY = 0.9

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def next_cycles(known: Sequence[Phases], slots: Cycles, ended: int, p: float) -> tuple[int, Cycles]:
    """From when on the next phase may be, for windows that end later than `ended`, and its cycles.

    `known` are the phases so far, of all queries that drop together, and p is what is dropped from now on
    at most.

    >>> slots, idle = Cycles(0, 10, batch=3), Phases()
    >>> next_cycles([idle], slots, 60, p=0.5)
    (50, Cycles(origin=10, length=10, batch=3))
    >>> busy = idle.then(0, Cycles(0, 10, 9), p=0.9, seed=1)
    >>> next_cycles([busy], slots, 60, p=0.5)
    (100, Cycles(origin=20, length=10, batch=3))
    """
    begin = slots.first_slot(ended)
    before = begin - slots.length
    now = max((phase for each in known if (phase := each.at(ended))), key=lambda phase: phase.p, default=None)
    if (
        p
        and (now is None or p > now.p)
        and not any(run for each in known for run in each.runs(before, ended))
    ):
        begin = before
    elif p and now is not None and now.p and _alike(now.cycles, slots):
        begin = now.cycles.first_begin(ended)
    return begin, slots.beginning(begin)


def _alike(some: Cycles, others: Cycles) -> bool:
    """Whether they have the same slots."""
    return some.length == others.length and (some.origin - others.origin) % some.length == 0
