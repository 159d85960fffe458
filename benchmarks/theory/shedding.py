"""What shedding saves, by calculation (the paper's section 3.6).

Rows pass a first part of the plan (cost1, sel1 rows out per row in), an aggregate (cost2, sel2), and a last
part (cost3). RDrop drops answers at random after the aggregate; WinDrop drops windows before the first part.
With drop batches of B windows, each of which leaves (B+1)*slide - window ticks of needless rows:

    sel_w1 = 1 - p * ((B+1)*slide - window) / (B*slide)             rows that are not dropped early
    sel_w2 = p * ((B+1) - floor(window/slide)) / (B*slide)          rows that are kept as bare marks

The paper prints other denominators, the ticks that a batch covers, and the needless ticks. But batches follow
each other every B*slide ticks, whatever they cover: with window 20, slide 2, B = 10 and p = 0.5 one sees 5 %
of the rows dropped and not 2.6 %. Windrow needs no marks: its windows know by themselves that they are
dropped, so sel_w2 is 0 for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.shedding.rules import WinDrop, early_share


def drops_early(drop: WinDrop) -> bool:
    """Whether a dropped batch leaves rows that no kept window needs: batch >= floor(window / slide).

    >>> [drops_early(WinDrop(20, 2, batch=size)) for size in (9, 10)]
    [False, True]
    """
    return drop.batch >= drop.window // drop.slide


def pipeline(*arrangement: WinDrop) -> WinDrop:
    """One before a sequence of aggregates, from the input to the output.

    The inner aggregate's answer about [E-r, E) is a row of instant E-1: one tick of each inner window is
    counted by the window after it already. Composites are made in either order:

    >>> from windrow.shedding.rules import fan_out
    >>> a0, a1, a2 = WinDrop(4, 1), WinDrop(3, 2, batch=6), WinDrop(3, 3, batch=4)
    >>> pipeline(WinDrop(3, 2), WinDrop(3, 3, batch=4))
    WinDrop(window=5, slide=3, batch=4)
    >>> pipeline(a0, fan_out(a1, a2)) == fan_out(pipeline(a0, a1), pipeline(a0, a2))
    True
    """
    *inner, last = arrangement
    window = last.window + sum(each.window - 1 for each in inner)
    return WinDrop(window, last.slide, last.batch)


def kept_share(drop: WinDrop, p: float) -> float:
    """sel_w1."""
    return 1 - early_share(drop, p)


def marked_share(drop: WinDrop, p: float) -> float:
    """sel_w2, on a stream with one row per tick."""
    if not drops_early(drop):
        return 0.0
    return p * (drop.batch + 1 - drop.window // drop.slide) / (drop.batch * drop.slide)


@dataclass(frozen=True, slots=True)
class Overhead:
    """What shedding itself costs per row; `check` and `copy` are of marks, which Windrow does not have."""

    drop: float = 0.0
    is_fake: float = 0.0
    copy: float = 0.0
    check: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan with one aggregate, by costs per row and rows out per row in."""

    cost1: float
    sel1: float
    cost2: float
    sel2: float
    cost3: float
    overhead: Overhead = Overhead()

    def load(self, rate: float) -> float:
        """Without shedding."""
        return rate * (self.cost1 + self.sel1 * (self.cost2 + self.sel2 * self.cost3))

    def with_rdrop(self, rate: float, p: float) -> float:
        """With p of the answers dropped at random."""
        after = self.sel2 * (self.overhead.drop + (1 - p) * self.cost3)
        return rate * (self.cost1 + self.sel1 * (self.cost2 + after))

    def with_windrop(self, rate: float, drop: WinDrop, p: float) -> float:
        """With p of the windows dropped before the first part."""
        extra, kept, marked = self.overhead, kept_share(drop, p), marked_share(drop, p)
        first = extra.is_fake + kept * self.cost1 + marked * extra.copy
        second = (kept / drop.slide + marked) * extra.check + kept * self.sel1 * self.cost2
        return rate * (extra.drop + first + second + self.sel1 * self.sel2 * (1 - p) * self.cost3)

    def saving(self, drop: WinDrop) -> float:
        """The share of the load that goes per unit of p: the load falls in proportion.

        >>> tumbling = WinDrop(100, 100, batch=10)
        >>> round(Plan(cost1=1, sel1=1, cost2=1, sel2=0.01, cost3=1).saving(tumbling), 3)
        1.0
        """
        none, all_of_it = self.with_windrop(1.0, drop, 0.0), self.with_windrop(1.0, drop, 1.0)
        return (none - all_of_it) / none if none else 0.0

    def needed(self, rate: float, drop: WinDrop, capacity: float) -> float | None:
        """The least p that brings the load down to the capacity; None if MAX GAP does not allow so much."""
        idle = self.with_windrop(rate, drop, 0.0)
        if idle <= capacity:
            return 0.0
        slope = self.saving(drop)
        p = (1 - capacity / idle) / slope if slope > 0 else float("inf")
        return p if p <= drop.most else None
