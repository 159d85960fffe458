"""An engine and its source, imagined: rows come by the clock and wait, each epoch takes all that wait.

What an epoch costs is fixed costs and a cost for each row it works on, with noise; time passes accordingly,
and meanwhile more rows come. Which windows are dropped is decided as the engine does, and rows are dropped by
these windows: so the delay until a decision takes effect, and the lumps in which rows go, are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from windrow.engine.load_shedding import Effort, Overload
from windrow.shedding.agreement import Agreed, Reach, SheddingGroup, SheddingGroups, droppable
from windrow.shedding.controller import next_cycles, shortest, steady
from windrow.shedding.phases import Phases
from windrow.windows.spec import SlideGrid

#: instants are milliseconds; rows come in files of this many
FILE = 250


@dataclass(frozen=True)
class Epoch:
    """One epoch: when it began and ended, rows that came and rows that were shed, and p after it."""

    begin: float
    end: float
    rows: int
    shed: int
    p: float
    suspended: bool
    greatest: int


@dataclass
class Live:
    """`rate` is rows per second by time; capacity is 1 / `cost`."""

    rate: Callable[[float], float]
    window: int = 500
    slide: int = 500
    max_gap: int = 9
    fixed: float = 0.35
    around: float = 0.25
    cost: float = 0.001
    noise: float = 0.0
    #: a pause now and then: how many in a second, and how long
    pauses: tuple[float, float] = (0.0, 0.0)
    limit: float = 1.0
    #: epochs begin no more often than this
    trigger: float = 0.0
    seed: int = 1
    shedding: bool = True
    epochs: list[Epoch] = field(default_factory=list)
    phases: Phases = field(default_factory=Phases)

    def run(self, seconds: float) -> Live:
        chance, overload = Random(self.seed), Overload()
        group = SheddingGroup(
            (Agreed("q", SlideGrid(self.slide), (Reach("s", self.window),), self.max_gap, 0, frozenset("s")),)
        )
        sharing = SheddingGroups((group,))
        now, greatest, before = 1.0, 0, None
        while now < seconds:
            upto = int(now * 1000) // FILE * FILE
            if upto <= greatest:
                now = (greatest + FILE) / 1000
                continue
            rows, shed = self._rows(sharing, greatest, upto)
            since = now - before if before is not None else 0.0
            paused = self.pauses[1] if chance.random() < self.pauses[0] * since else 0.0
            inside = self.fixed + self.cost * (rows - shed)
            inside = inside * (1 + self.noise * chance.uniform(-1, 1)) + paused
            around = self.around * (1 + self.noise * chance.uniform(-1, 1))
            effort = Effort(rows, shed, inside, 0.0, 0, since, around)
            if self.shedding:
                overload = overload.after(effort, max(self.limit, self.trigger), sharing, ())
                self._decide(overload, group, upto, upto - greatest)
            is_away = bool(overload.admission.suspended)
            p = 1.0 if is_away else (overload.losses or {}).get("q", 0.0)
            end = now + inside + around
            self.epochs.append(Epoch(now, end, rows, shed, p, is_away, upto))
            before, greatest, now = now, upto, max(end, now + self.trigger)
            self.overload = overload
        return self

    def _decide(self, overload: Overload, group: SheddingGroup, greatest: int, moved: int) -> None:
        p = (overload.losses or {}).get("q", 0.0)
        is_away = "q" in overload.admission.suspended
        free = greatest + self.window
        batch = shortest(group.drop, p, moved // 16)
        slots = type(group.cycles)(group.cycles.origin, group.cycles.length, batch)
        begin, cycles = next_cycles([self.phases], slots, free // self.slide * self.slide, p)
        p = 0.0 if is_away else steady(p, cycles.batch)
        self.phases = self.phases.then(begin, cycles, p, self.seed, suspended=is_away)

    def _rows(self, sharing: SheddingGroups, after: int, upto: int) -> tuple[int, int]:
        """Rows of the files in (after, upto], and how many of them nobody needs."""
        gone = droppable("s", ["q"], sharing.agreed, {"q": self.phases}, after, upto + 1)
        rows = shed = 0
        for end in range(after + FILE, upto + 1, FILE):
            count = self.rate((end - FILE) / 1000) * FILE / 1000
            covered = sum(max(0, min(each.end, end + 1) - max(each.begin, end - FILE + 1)) for each in gone)
            rows, shed = rows + round(count), shed + round(count * covered / FILE)
        return rows, min(rows, shed)

    # ------------------------------------------------------------ what was seen

    def latencies(self, begin: float = 0.0, end: float = float("inf")) -> list[float]:
        """From the end of each kept window to the end of the epoch that answers it."""
        found, last = [], 0
        for epoch in self.epochs:
            for at in range(last // self.slide * self.slide + self.slide, epoch.greatest + 1, self.slide):
                if begin <= at / 1000 < end and not self.phases.drops(at):
                    found.append(epoch.end - at / 1000)
            last = epoch.greatest
        return found

    def lost(self, begin: float, end: float) -> float:
        """The share of windows lost, of those that end in a stretch of time."""
        ends = range(int(begin * 1000) // self.slide * self.slide, int(end * 1000), self.slide)
        return sum(self.phases.drops(at) for at in ends) / len(ends)

    @property
    def turns(self) -> int:
        """How often p went up after it went down, or down after up."""
        steps = [b.p - a.p for a, b in pairwise(self.epochs) if abs(b.p - a.p) > 1e-12]
        return sum(a * b < 0 for a, b in pairwise(steps))
