"""How much to shed: what the epochs to come say, approached in small steps unless answers would be too late.

`usual` is how long an epoch may take for good. `bound` is some seconds more: no epoch should take longer than
that. As long as none is foreseen that does, and it is not beyond doubt that rows come too fast, nothing is
shed. A pause leaves a hump behind that goes away by itself.

If an epoch beyond the bound is foreseen, p is set at once to the least that avoids it; and if rows come too
fast beyond doubt, to what makes the very next epoch a usual one. There is no time then: sources hand over
all that waits, so an epoch with three times too many rows is followed by one that is three times as long.

Otherwise p goes in steps, by the time that has passed, up or down: to where epochs are a little shorter than
usual, as long as rows come too fast, and to nothing if they do not. What must go follows from the load that
is offered, not from the load under shedding: shedding more does not make the wish for shedding smaller, so
there is nothing to swing.

When even the longest gaps do not help: the costliest queries are suspended, and come back when there is
room.

Only queries that agreed to lose windows are suspended, the least important first, and of those the costliest.
One is suspended at a time, after the load was too high for some epochs in a row; one is resumed at a time,
after there would have been room for it, with a margin, for more epochs than that. Between the two lies a gap
in which nothing changes.

Who loses how much: all who agreed, those of low PRIORITY first and most.

One step of PRIORITY halves what a query loses, as long as the others can lose enough:

    p_i = min(most_i, level * 2 ** (lowest priority - priority_i))

The level is the least that saves what must be saved. Rows are saved by the query that loses least, since all
must drop the window that a row is in; the work after the split is saved by each query for itself.

The epochs to come: how long each will take, if this share of what can be given up is given up.

Sources hand over all that waits. So rows that come in a long epoch make the next one long, and the epochs
follow each other by a simple law, with F the seconds an epoch takes without rows, and r the work that comes
in a second:

    next = F + r * (1 - share of it that is saved) * this one

Below r = 1 they come to F / (1 - r), whatever they began with: a backlog goes away by itself. Above, each
is longer than the one before.
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


# ------------------------------------------------------------ controller


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


@dataclass(frozen=True, slots=True)
class Rules:
    """When to suspend and when to resume."""

    limit: float = 1.0
    room: float = 0.7
    patience: int = 3
    calm: int = 6


@dataclass(frozen=True, slots=True)
class Admission:
    """Which queries are suspended.

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
    rules: Rules = Rules()

    def least(self, others: float, queries: Sequence[QueryLoad]) -> float:
        """The load that remains with the longest gaps: of those who run, and of `others` who lose nothing."""
        return others + sum(query.least for query in queries if query.name not in self.suspended)

    def after(self, others: float, queries: Sequence[QueryLoad]) -> Admission:
        """One more epoch."""
        known = {query.name for query in queries}
        state = replace(self, suspended=tuple(name for name in self.suspended if name in known))
        least = state.least(others, queries)
        if least > self.rules.limit:
            return state._too_much(queries)
        candidate = state._next_back(queries)
        if candidate is not None and least + candidate.least <= self.rules.room:
            return state._room_for(candidate)
        return replace(state, over=0, under=0)

    def _too_much(self, queries: Sequence[QueryLoad]) -> Admission:
        running = [query for query in queries if query.name not in self.suspended]
        if self.over + 1 < self.rules.patience or not running:
            return replace(self, over=self.over + 1, under=0)
        gone = min(running, key=lambda query: (query.priority, -query.load, query.name))
        return replace(self, suspended=(*self.suspended, gone.name), over=0, under=0)

    def _next_back(self, queries: Sequence[QueryLoad]) -> QueryLoad | None:
        """The one to be resumed first: the most important, then the cheapest."""
        waiting = [query for query in queries if query.name in self.suspended]
        return min(waiting, key=lambda query: (-query.priority, query.load, query.name), default=None)

    def _room_for(self, query: QueryLoad) -> Admission:
        if self.under + 1 < self.rules.calm:
            return replace(self, over=0, under=self.under + 1)
        left = tuple(name for name in self.suspended if name != query.name)
        return replace(self, suspended=left, over=0, under=0)


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
        low, high = 0.0, self._highest
        for _ in range(_STEPS):
            level = (low + high) / 2
            low, high = (low, level) if self.saved(self._at(level)) >= wanted else (level, high)
        return {member.name: p for member, p in zip(self.members, self._at(high), strict=True)}

    def _at(self, level: float) -> list[float]:
        lowest = min(member.priority for member in self.members)
        return [min(member.most, level * 2.0 ** (lowest - member.priority)) for member in self.members]

    @property
    def _highest(self) -> float:
        """The level at which everybody loses all they can."""
        lowest = min(member.priority for member in self.members)
        return max(member.most * 2.0 ** (member.priority - lowest) for member in self.members)


_OUTLOOK_STEPS = 30
#: so many epochs are looked ahead
AHEAD = 3


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known at the end of an epoch.

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

    def eased(self, share: float) -> Outlook:
        """The same, if less work should come."""
        return replace(self, arriving=self.arriving * (1 - share))

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


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """How shedding is steered."""

    #: how long epochs should take under shedding, of the usual
    target: float = 0.9
    #: an epoch may take so many seconds longer than usual, or half as long as usual
    grace: float = 5.0
    #: the work that comes may really be less by this share
    doubt: float = 0.2
    #: smaller changes are not made
    band: float = 0.05
    #: seconds from nothing to all, and from all to nothing
    rise: float = 10.0
    fall: float = 6.0
    #: epochs in a row in which less would do, before less is shed
    patience: int = 2


@dataclass(frozen=True, slots=True)
class Controller:
    """The share of all that can be given up which is given up.

    >>> from windrow.shedding.controller import Outlook
    >>> steered = Controller()
    >>> for _ in range(10):
    ...     steered = steered.after(Outlook(0.1, 1.6, 1.6, interval=1.0, on_rows=0.8), usual=1.0, passed=1.0)
    >>> round(steered.share, 3)
    0.6
    """

    share: float = 0.0
    calm: int = 0
    settings: SheddingSettings = SheddingSettings()

    def bound(self, usual: float) -> float:
        """Longer than that no epoch should take."""
        return usual + max(usual / 2, self.settings.grace)

    def is_overload(self, outlook: Outlook, usual: float) -> bool:
        """Whether rows come too fast for good, beyond doubt; halfway to the bound is enough for that."""
        halfway = (usual + self.bound(usual)) / 2
        return outlook.eased(self.settings.doubt).settled(0.0) > halfway

    def after(self, outlook: Outlook, usual: float, passed: float, *, behind: bool = True) -> Controller:
        """One step, `passed` seconds after the last one; `behind`: epochs do not keep up with their rows."""
        rules, now, bound = self.settings, self.share, self.bound(usual)
        least = outlook.least(lambda share: outlook.longest(share) <= bound)
        is_overload = self.is_overload(outlook, usual)
        if least > now and behind:
            share = max(least, self._short_again(outlook, usual)) if is_overload else least
            return replace(self, share=share, calm=0)
        goal = max(least, self._goal(outlook, usual)) if is_overload else least
        if abs(goal - now) <= (rules.band if 0 < goal < 1 else 0.0):
            return replace(self, calm=0)
        if goal > now:
            return replace(self, share=min(goal, now + passed / rules.rise) if behind else now, calm=0)
        if self.calm + 1 < rules.patience:
            return replace(self, calm=self.calm + 1)
        return replace(self, share=max(goal, now - passed / rules.fall), calm=self.calm + 1)

    def _short_again(self, outlook: Outlook, usual: float) -> float:
        """The share with which the very next epoch takes no longer than usual."""
        return outlook.least(lambda share: outlook.next(share) <= usual)

    def _goal(self, outlook: Outlook, usual: float) -> float:
        """The share with which epochs come to the target, and are there soon."""
        target = self.settings.target * usual
        return outlook.least(
            lambda share: outlook.epochs(share)[-1] <= target and outlook.settled(share) <= target
        )
