"""How much to shed, from when on, and by whom: what the epochs to come say, approached in small steps unless
answers would be too late.

What must go follows from the load that is offered, not from the load under shedding: shedding more does not
make the wish for shedding smaller, so there is nothing to swing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum, inf

from windrow.shedding.phases import Cycles, Phases
from windrow.shedding.rules import WinDrop

# ------------------------------------------------------------ change of rate
#
# When a change of p begins, and in which cycles windows are dropped from then on.
#
# Where windows do not overlap, short gaps save as much as long ones: then the least B is taken that allows
# for p, and MAX GAP is only its bound. Nearly every cycle is dropped then, in the same way, and no long
# stretch is kept by chance while rows come too fast. Where windows overlap, long gaps make more rows
# needless for the same number of windows: there B is MAX GAP.
#
# As long as nothing is dropped, a cycle may begin with any slot, and when dropping ends it ends with any
# slot. A cycle that is kept by chance ends with any slot too, if more is to be dropped. Otherwise, a cycle
# that runs goes to its end. The slot that a cycle keeps may be one whose windows have ended: if these were
# all kept, the next may be dropped at once.


#: a cycle that would be kept by chance this seldom is not kept at all
_HARDLY = 0.9


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
    is_kept = not any(run for each in known for run in each.runs(before, ended))
    if p and (now is None or p > now.p) and is_kept:
        begin = before
    elif p and now is not None and now.p and now.cycles.has_slots_of(slots):
        begin = now.cycles.first_begin(ended)
    return begin, slots.beginning(begin)


# ------------------------------------------------------------ admission


@dataclass(frozen=True, slots=True)
class QueryLoad:
    """A query: its load without shedding, and the share of its windows that may be dropped at most."""

    name: str
    load: float
    most: float
    priority: int = 0

    @property
    def least(self) -> float:
        """Its load with the longest gaps allowed."""
        return self.load * (1 - self.most)


#: a load above this, for so many epochs in a row, suspends a query
LIMIT, PATIENCE = 1.0, 3
#: one comes back that would leave it at this, for so many epochs; in between nothing changes
ROOM, CALM = 0.7, 6


@dataclass(frozen=True, slots=True)
class Admission:
    """Which queries are suspended, where even the longest gaps do not help.

    Only queries that agreed to lose windows are, the least important first, and of those the costliest; one
    at a time, and back one at a time.

    >>> queries = [QueryLoad("cheap", 0.5, most=0.5), QueryLoad("dear", 2.0, most=0.5)]
    >>> admission = Admission()
    >>> for _ in range(3):
    ...     admission = admission.after(0.0, queries)
    >>> admission.suspended
    ('dear',)
    """

    suspended: tuple[str, ...] = ()
    over: int = 0
    under: int = 0

    def least(self, others: float, queries: Sequence[QueryLoad]) -> float:
        """The load that remains with the longest gaps: of those who run, and of `others` who lose nothing."""
        return others + sum(query.least for query in queries if query.name not in self.suspended)

    def after(self, others: float, queries: Sequence[QueryLoad]) -> Admission:
        """One more epoch."""
        known = {query.name for query in queries}
        state = Admission(tuple(name for name in self.suspended if name in known))
        least = state.least(others, queries)
        running = [query for query in queries if query.name not in state.suspended]
        waiting = [query for query in queries if query.name in state.suspended]
        if least > LIMIT:
            if self.over + 1 < PATIENCE or not running:
                return replace(state, over=self.over + 1)
            gone = min(running, key=lambda query: (query.priority, -query.load, query.name))
            return Admission((*state.suspended, gone.name))
        back = min(waiting, key=lambda query: (-query.priority, query.load, query.name), default=None)
        if back is None or least + back.least > ROOM:
            return state
        if self.under + 1 < CALM:
            return replace(state, under=self.under + 1)
        return Admission(tuple(name for name in state.suspended if name != back.name))


# ------------------------------------------------------------ who loses how much


_STEPS = 60


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a group: the greatest share of its windows that may be dropped, and what it costs after the
    split.
    """

    name: str
    most: float
    priority: int = 0
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What a group costs: `rows` for work on rows before the split, of which `early` * p goes if p is dropped
    by all.

    All who agreed lose windows, those of low PRIORITY most. One step of PRIORITY halves what a query loses,
    as long as the others can lose enough: p_i = min(most_i, level * 2 ** (lowest priority - priority_i)),
    with the least level that saves what must be saved. Rows are saved by the query that loses least, since
    all must drop the window that a row is in; the work after the split is saved by each query for itself.
    """

    members: tuple[Member, ...]
    rows: float = 1.0
    early: float = 1.0

    @property
    def total(self) -> float:
        """All of the work."""
        return self.rows + fsum(member.cost for member in self.members)

    def saved(self, losses: Sequence[float]) -> float:
        """The share of the work that goes with these losses."""
        if not self.total:
            return 0.0
        after = fsum(member.cost * p for member, p in zip(self.members, losses, strict=True))
        return (self.rows * self.early * min(losses, default=0.0) + after) / self.total

    @property
    def savable(self) -> tuple[float, float]:
        """The work before the split, and after it, that can be saved at all."""
        early = self.rows * self.early * min((member.most for member in self.members), default=0.0)
        return early, fsum(member.cost * member.most for member in self.members)

    @property
    def most(self) -> float:
        """The share of the work that can be saved at all."""
        return self.saved([member.most for member in self.members])

    def losses(self, wanted: float) -> dict[str, float]:
        """What each query loses, so that this share of the work is saved; all they can, if that is not
        enough.

        >>> low, high = Member("low", most=0.9), Member("high", most=0.9, priority=1)
        >>> {name: round(p, 3) for name, p in Bill((low, high), rows=2.0).losses(0.25).items()}
        {'low': 0.4, 'high': 0.2}
        """
        if wanted <= 0 or not self.members:
            return {member.name: 0.0 for member in self.members}
        lowest = min(member.priority for member in self.members)
        steps = [2.0 ** (member.priority - lowest) for member in self.members]

        def at(level: float) -> list[float]:
            return [min(each.most, level / step) for each, step in zip(self.members, steps, strict=True)]

        low = 0.0
        high = max(member.most * step for member, step in zip(self.members, steps, strict=True))
        for _ in range(_STEPS):
            level = (low + high) / 2
            low, high = (low, level) if self.saved(at(level)) >= wanted else (level, high)
        return {member.name: p for member, p in zip(self.members, at(high), strict=True)}


# ------------------------------------------------------------ controller


_OUTLOOK_STEPS = 30
#: so many epochs are looked ahead
AHEAD = 3


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known at the end of an epoch: how long the next ones take if this share of what can be given
    up is.

    Sources hand over all that waits, so rows that come in a long epoch make the next one long, by a simple
    law, with F the seconds an epoch takes without rows, and r the work that comes in a second:

        next = F + r * (1 - share of it that is saved) * this one

    Below r = 1 they come to F / (1 - r), whatever they began with: a backlog goes away by itself. Above, each
    is longer than the one before.

    >>> outlook = Outlook(fixed=0.5, arriving=0.75, waiting=3.0, interval=1.0, on_rows=1.0)
    >>> outlook.epochs(0.0), outlook.settled(0.0)
    ([3.5, 3.125, 2.84375], 2.0)
    >>> outlook.epochs(1.0)
    [0.5, 0.5, 0.5]
    """

    #: seconds an epoch takes without rows
    fixed: float
    #: seconds of work that come in a second
    arriving: float
    #: seconds of work on the rows that wait
    waiting: float
    #: epochs begin no more often than this
    interval: float
    #: the shares of the work on rows, and of the rest, that can be saved at most
    on_rows: float
    on_rest: float = 0.0
    #: seconds of work that wait in the source beyond the next epoch
    beyond: float = 0.0

    def next(self, share: float) -> float:
        """How long the next epoch takes."""
        return self._fixed(share) + self.waiting * (1 - share * self.on_rows)

    def epochs(self, share: float) -> list[float]:
        """How long the next epochs take."""
        found = [self.next(share)]
        while len(found) < AHEAD:
            came = self.arriving * max(found[-1], self.interval)
            found.append(self._fixed(share) + came * (1 - share * self.on_rows))
        return found

    def longest(self, share: float) -> float:
        """The longest of the next epochs, and what waits beyond them."""
        return max(self.epochs(share)) + self.beyond * (1 - share * self.on_rows)

    def settled(self, share: float) -> float:
        """What the epochs come to in the end."""
        fixed, work = self._fixed(share), self.arriving * (1 - share * self.on_rows)
        short = fixed + work * self.interval
        if short <= self.interval:
            return short
        return fixed / (1 - work) if work < 1 else inf

    def least(self, holds: Callable[[float], bool]) -> float:
        """The least share for which something holds, and for all greater ones; all, if it never does."""
        if holds(0.0):
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(_OUTLOOK_STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _fixed(self, share: float) -> float:
        return self.fixed * (1 - share * self.on_rest)


#: how long epochs should take under shedding, of the usual
TARGET = 0.9
#: an epoch may take so many seconds longer than usual, or half as long as usual
GRACE = 5.0
#: the work that comes may really be less by this share
DOUBT = 0.2
#: smaller changes are not made
BAND = 0.05
#: seconds from nothing to all, and from all to nothing
RISE, FALL = 10.0, 6.0
#: epochs in a row in which less would do, before less is shed
BEFORE_LESS = 2


@dataclass(frozen=True, slots=True)
class Controller:
    """The share of all that can be given up which is given up.

    `usual` is how long an epoch may take for good, the bound some seconds more. As long as no epoch beyond
    the bound is foreseen, and it is not beyond doubt that rows come too fast, nothing is shed: a pause
    leaves a hump behind that goes away by itself. If one is foreseen, the share is set at once to the least
    that avoids it; and if rows come too fast beyond doubt, to what makes the very next epoch a usual one.
    There is no time then: an epoch with three times too many rows is followed by one that is three times as
    long. Otherwise the share goes in steps, by the time that has passed, to where epochs are a little
    shorter than usual as long as rows come too fast, and to nothing if they do not.

    >>> steered = Controller()
    >>> for _ in range(10):
    ...     steered = steered.after(Outlook(0.1, 1.6, 1.6, interval=1.0, on_rows=0.8), usual=1.0, passed=1.0)
    >>> round(steered.share, 3)
    0.6
    """

    share: float = 0.0
    calm: int = 0

    def bound(self, usual: float) -> float:
        """Longer than that no epoch should take."""
        return usual + max(usual / 2, GRACE)

    def is_overload(self, outlook: Outlook, usual: float) -> bool:
        """Whether rows come too fast for good, beyond doubt; halfway to the bound is enough for that."""
        halfway = (usual + self.bound(usual)) / 2
        return replace(outlook, arriving=outlook.arriving * (1 - DOUBT)).settled(0.0) > halfway

    def after(self, outlook: Outlook, usual: float, passed: float, *, behind: bool = True) -> Controller:
        """One step, `passed` seconds after the last one; `behind`: epochs do not keep up with their rows."""
        now, bound, target = self.share, self.bound(usual), TARGET * usual
        least = outlook.least(lambda share: outlook.longest(share) <= bound)
        is_overload = self.is_overload(outlook, usual)
        if least > now and behind:
            usual_again = outlook.least(lambda share: outlook.next(share) <= usual)
            return Controller(max(least, usual_again) if is_overload else least)
        soon_there = outlook.least(
            lambda share: outlook.epochs(share)[-1] <= target and outlook.settled(share) <= target
        )
        goal = max(least, soon_there) if is_overload else least
        if abs(goal - now) <= (BAND if 0 < goal < 1 else 0.0):
            return Controller(now)
        if goal > now:
            return Controller(min(goal, now + passed / RISE) if behind else now)
        calm = self.calm + 1
        return Controller(now if calm < BEFORE_LESS else max(goal, now - passed / FALL), calm)
