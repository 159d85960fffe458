"""Which windows of a query are dropped: a pure function of a seed and the cycle a window is in.

Slots are common stretches of time, (O + k*L, O + (k+1)*L], and hold every window that ends in them. B+1 slots
are a cycle. The first slot of a cycle is kept; the B others are dropped together, or kept together:

    cycle        |  0              |  1              |  2              |     B = 3
    slots        | K   .   .   .   | K   x   x   x   | K   .   .   .   |     x dropped, K always kept

A cycle is dropped with probability p*(B+1)/B, so that p of all slots are, and never more than B in a row: MAX
GAP holds in every case, and p on average, for every p up to B/(B+1). (The paper compensates for two dropped
batches in a row later; the debt that this carries can break either promise.)

A phase is a stretch of time with one p. The next phase begins with a cycle of its own, and so with a slot
that is kept: gaps do not grow where phases meet. A query that is suspended has a phase without any kept
window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

_STEPS = 1 << 53
#: so many bits of a place decide how it is spread: 16 places in a row are spread evenly
_BITS = 4


def chance(seed: int, place: int) -> float:
    """Evenly spread over [0, 1), and independent from place to place.

    >>> chance(7, 1) == chance(7, 1), chance(7, 1) == chance(7, 2)
    (True, False)
    """
    digest = blake2b(f"{seed},{place}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / _STEPS


def spread(seed: int, place: int) -> float:
    """As `chance`, but places that follow each other differ: of two one is below a half, of four one is
    below a quarter, and so on, from places that are a multiple of 2, of 4, up to 16.

    These are the bits of the place in reverse (van der Corput's sequence), turned over by chance anew for
    each 16.

    >>> sorted(int(4 * spread(7, place)) for place in range(8, 12))
    [0, 1, 2, 3]
    """
    size = 1 << _BITS
    turned = int(chance(seed + 1, place >> _BITS) * size)
    reverse = int(f"{place % size:0{_BITS}b}"[::-1], 2)
    return ((reverse ^ turned) + chance(seed, place)) / size


@dataclass(frozen=True, slots=True)
class Cycles:
    """Slots of `length` ticks from `origin` on, `batch` + 1 of them in a cycle.

    >>> cycles = Cycles(origin=0, length=10, batch=3)
    >>> cycles.slot_of(10), cycles.slot_of(11), cycles.cycle_of(41), cycles.begin(1)
    (0, 1, 1, 40)
    """

    origin: int
    length: int
    batch: int

    @property
    def span(self) -> int:
        """How long a cycle is."""
        return self.length * (self.batch + 1)

    @property
    def most(self) -> float:
        """The greatest share of windows that can be dropped."""
        return self.batch / (self.batch + 1)

    def slot_of(self, end: int) -> int:
        """The slot of the windows that end at an instant."""
        return -((self.origin - end) // self.length) - 1

    def cycle_of(self, end: int) -> int:
        """The cycle of the windows that end at an instant."""
        return self.slot_of(end) // (self.batch + 1)

    def begin(self, cycle: int) -> int:
        """Windows of a cycle end later than this."""
        return self.origin + cycle * self.span

    def first_begin(self, instant: int) -> int:
        """The first instant from `instant` on at which a cycle begins."""
        return self.origin - (self.origin - instant) // self.span * self.span

    def first_slot(self, instant: int) -> int:
        """The first instant from `instant` on at which a slot begins."""
        return self.origin - (self.origin - instant) // self.length * self.length

    def has_slots_of(self, other: Cycles) -> bool:
        """Whether they have the same slots."""
        return self.length == other.length and (self.origin - other.origin) % self.length == 0

    def beginning(self, slot: int) -> Cycles:
        """The same slots, in cycles one of which begins with the slot that begins at an instant.

        >>> Cycles(0, 10, batch=3).beginning(70)
        Cycles(origin=30, length=10, batch=3)
        """
        return Cycles(self.origin + (slot - self.origin) % self.span, self.length, self.batch)


@dataclass(frozen=True, slots=True)
class Run:
    """Dropped windows in a row: those that end in (after, until]."""

    after: int
    until: int
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Phase:
    """From `start` on (windows that end later), p of the windows are dropped.

    >>> phase = Phase(0, Cycles(0, 10, batch=3), p=0.75, seed=1)
    >>> [end for end in range(10, 90, 10) if phase.drops(end)]
    [20, 30, 40, 60, 70, 80]
    """

    start: int
    cycles: Cycles
    p: float
    seed: int
    suspended: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether no window is dropped."""
        return not self.suspended and not self.p

    @property
    def share(self) -> float:
        """The probability that a cycle is dropped."""
        batch = self.cycles.batch
        return min(1.0, self.p * (batch + 1) / batch) if batch else 0.0

    def drops_cycle(self, cycle: int) -> bool:
        """Whether all but the first slot of a cycle are dropped."""
        return self.suspended or spread(self.seed, cycle) < self.share

    def drops(self, end: int) -> bool:
        """Whether the windows that end at an instant are dropped."""
        if self.suspended:
            return True
        cycle, place = divmod(self.cycles.slot_of(end), self.cycles.batch + 1)
        return place > 0 and self.drops_cycle(cycle)

    def runs(self, after: int, until: int) -> Iterator[Run]:
        """The runs of dropped windows that end in (after, until], cut to it."""
        if after >= until:
            return
        if self.suspended:
            yield Run(after, until, suspended=True)
            return
        if not self.share:
            return
        for cycle in range(self.cycles.cycle_of(after + 1), self.cycles.cycle_of(until) + 1):
            low = max(after, self.cycles.begin(cycle) + self.cycles.length)
            high = min(until, self.cycles.begin(cycle + 1))
            if low < high and self.drops_cycle(cycle):
                yield Run(low, high)

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        cycles = self.cycles
        return [self.start, cycles.origin, cycles.length, cycles.batch, self.p, self.seed, self.suspended]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Self:
        """What `to_json` wrote."""
        start, origin, length, batch, p, seed, suspended = stored
        return cls(start, Cycles(origin, length, batch), p, seed, suspended)


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases of one query, oldest first. Before the first one nothing is dropped.

    >>> calm = Phases().then(100, Cycles(0, 10, batch=3), p=0.0, seed=1)
    >>> busy = calm.then(130, Cycles(0, 10, batch=3), p=0.75, seed=1)
    >>> [end for end in range(100, 240, 10) if busy.drops(end)]
    [180, 190, 200, 220, 230]
    >>> Phases.from_json(busy.to_json()) == busy
    True
    """

    items: tuple[Phase, ...] = ()

    @property
    def last(self) -> Phase | None:
        """The phase that windows to come are in."""
        return self.items[-1] if self.items else None

    def then(self, free: int, cycles: Cycles, p: float, seed: int, *, suspended: bool = False) -> Phases:
        """With another phase from the first cycle on that begins at `free` or later.

        Windows that end up to `free` may have lost rows, or may be answered: for them nothing changes. Phases
        that would begin later than the new one never come to be.
        """
        start = free if suspended else cycles.first_begin(free)
        earlier = tuple(phase for phase in self.items if phase.start < start)
        last = earlier[-1] if earlier else None
        new = Phase(start, cycles, min(p, cycles.most), seed, suspended)
        if last is not None and (replace(last, start=start) == new or (last.is_idle and new.is_idle)):
            return Phases(earlier)
        if last is None and not suspended and not p:
            return Phases()
        return Phases((*earlier, new))

    def at(self, instant: int) -> Phase | None:
        """The phase of the windows that end at an instant; None before the first one."""
        place = bisect_left([phase.start for phase in self.items], instant) - 1
        return self.items[place] if place >= 0 else None

    def drops(self, end: int) -> bool:
        """Whether the windows that end at an instant are dropped."""
        phase = self.at(end)
        return phase is not None and phase.drops(end)

    def runs(self, after: int, until: int) -> Iterator[Run]:
        """The runs of dropped windows that end in (after, until], in order; runs that touch are one."""
        ends = [*(phase.start for phase in self.items[1:]), until]
        found: Run | None = None
        for phase, end in zip(self.items, ends, strict=False):
            for run in phase.runs(max(after, phase.start), min(until, end)):
                if found is not None and found.until == run.after and found.suspended == run.suspended:
                    found = Run(found.after, run.until, run.suspended)
                    continue
                if found is not None:
                    yield found
                found = run
        if found is not None:
            yield found

    def since(self, end: int) -> Phases:
        """Without the phases of which every window ends at `end` or before."""
        starts = [phase.start for phase in self.items]
        return Phases(self.items[max(0, bisect_left(starts, end + 1) - 1) :])

    @property
    def is_idle(self) -> bool:
        """Whether no window is dropped, now or later."""
        return all(phase.is_idle for phase in self.items)

    def to_json(self) -> list[Any]:
        """Plain JSON values."""
        return [phase.to_json() for phase in self.items]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Self:
        """What `to_json` wrote."""
        return cls(tuple(Phase.from_json(each) for each in stored))
