"""A window that slides while many queries read it, in simulated time: section 7.5 of Golab's thesis.

One processor does everything: updates of the window, and for each step of the scheduler the reading of one
sub-window, which takes time by its rows. Periodic queries run in groups that share a scan, each group again
as soon as it has answered; one-time queries come by chance and are more urgent. Rows per sub-window vary by a
factor of up to ten to either side. Nothing depends on the machine: the same seed gives the same figures.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from benchmarks.theory.isolation.attempt import Query
from benchmarks.theory.isolation.operations import Abort, Commit, Operation, Read, Unread, Write
from benchmarks.theory.isolation.scheduler import Scheduler

if TYPE_CHECKING:
    from windrow.archive.snapshot import IsolationPolicy

_SWING = 10
_ONE_TIME = "O"
_PER_SCAN = 5


@dataclass(frozen=True, slots=True)
class Workload:
    """Who reads what. Times of one row, and of one decision, are in microseconds."""

    subwindows: int
    #: how long a sub-window is, and so how often the window slides
    seconds: int
    periodic: int
    #: one-time queries come at this rate
    per_second: float
    rows_per_second: int
    row_us: float
    one_time_row_us: float
    update_row_us: float
    decision_us: float
    seed: int

    @property
    def span(self) -> int:
        """How long it is watched: as long as the window is."""
        return self.subwindows * self.seconds


@dataclass(frozen=True, slots=True)
class Observed:
    """What a run came to; averages, in seconds. None where there was nothing to average."""

    staleness: float
    one_time_staleness: float | None
    response: float | None
    between: float | None
    per_second: float
    aborted: float


@dataclass(frozen=True, slots=True)
class _Answered:
    query: str
    at: float


def simulate(policy: IsolationPolicy, workload: Workload) -> Observed:
    """Let the queries run for as long as the window is."""
    return _Run(policy, workload).observed()


class _Run:
    """One processor, its clock and its queue."""

    def __init__(self, policy: IsolationPolicy, workload: Workload) -> None:
        self._work, self._clock = workload, 0.0
        self._scheduler = Scheduler(workload.subwindows, policy)
        self._decision = 0.0 if policy.updates_wait else workload.decision_us / 1e6
        chance = random.Random(workload.seed)
        self._rows = list(_rows_per_version(workload, chance))
        self._groups = [_longest(workload, chance) for _ in range(-(-workload.periodic // _PER_SCAN))]
        self._arrivals = list(_arrivals(workload, chance))
        self._arrived: dict[str, float] = {}
        self._answered: list[_Answered] = []
        self._aborts = 0

    def observed(self) -> Observed:
        for number in range(len(self._groups)):
            self._submit(number)
        due = float(self._work.seconds)
        while self._clock < self._work.span:
            while due <= self._clock:
                self._carry_out(self._scheduler.slide())
                due += self._work.seconds
            while self._arrivals and self._arrivals[0][0] <= self._clock:
                self._welcome(*self._arrivals.pop(0))
            operations = self._scheduler.step()
            self._carry_out(operations)
            if not operations:
                self._clock = min([due, *(at for at, _ in self._arrivals[:1])])
        return self._figures()

    def _submit(self, group: int) -> None:
        self._scheduler.submit(Query(f"P{group}", self._groups[group]))

    def _welcome(self, at: float, length: int) -> None:
        name = f"{_ONE_TIME}{len(self._arrived)}"
        self._arrived[name] = at
        self._scheduler.submit(Query(name, length, priority=1))

    def _carry_out(self, operations: tuple[Operation, ...]) -> None:
        for each in operations:
            self._clock += self._cost(each)
            match each:
                case Commit(str() as query):
                    self._answered.append(_Answered(query, self._clock))
                    if not query.startswith(_ONE_TIME):
                        self._submit(int(query[1:]))
                case Abort():
                    self._aborts += 1

    def _cost(self, operation: Operation) -> float:
        match operation:
            case Write(update, _):
                checks = self._decision * len(self._scheduler.running)
                return self._rows[update] * self._work.update_row_us / 1e6 + checks
            case Read(query, slot) | Unread(query, slot):
                is_short = query.startswith(_ONE_TIME)
                per_row = self._work.one_time_row_us if is_short else self._work.row_us
                return self._rows[self._version(slot)] * per_row / 1e6 + self._decision
            case _:
                return 0.0

    def _version(self, slot: int) -> int:
        latest, slots = self._scheduler.latest, self._work.subwindows
        return latest - (latest - slot) % slots

    def _figures(self) -> Observed:
        answers = self._scheduler.history.answers
        stale: dict[bool, list[float]] = {True: [], False: []}
        for done, answer in zip(self._answered, answers, strict=True):
            shown = max(0, answer.versions[-1] - self._work.subwindows + 1) * self._work.seconds
            stale[done.query.startswith(_ONE_TIME)].append(done.at - shown)
        waits = [
            each.at - self._arrived[each.query] for each in self._answered if each.query in self._arrived
        ]
        return Observed(
            staleness=fmean(stale[False]) if stale[False] else float(self._work.span),
            one_time_staleness=_mean(stale[True]),
            response=_mean(waits),
            between=_mean(list(self._between())),
            per_second=len(self._answered) / self._clock,
            aborted=self._aborts / max(1, self._aborts + len(self._answered)),
        )

    def _between(self) -> Iterator[float]:
        """The times between two answers of one periodic query."""
        last: dict[str, float] = {}
        for each in self._answered:
            if not each.query.startswith(_ONE_TIME):
                if each.query in last:
                    yield each.at - last[each.query]
                last[each.query] = each.at


def _rows_per_version(workload: Workload, chance: random.Random) -> Iterator[int]:
    """Of all versions the run can see; far more are drawn than that, as the clock may overshoot the end."""
    usual = workload.rows_per_second * workload.seconds
    mean = (_SWING - 1 / _SWING) / 4.605170185988092  # of a number whose logarithm is uniform: ln 100
    for _ in range(4 * workload.subwindows + 16):
        yield round(usual * _SWING ** chance.uniform(-1, 1) / mean)


def _longest(workload: Workload, chance: random.Random) -> int:
    """The window of a group of queries is the longest of theirs: one scan answers them all."""
    return max(chance.randint(1, workload.subwindows) for _ in range(_PER_SCAN))


def _arrivals(workload: Workload, chance: random.Random) -> Iterator[tuple[float, int]]:
    """When one-time queries come, and how many sub-windows they want."""
    at = 0.0
    while workload.per_second and at < workload.span:
        at += chance.expovariate(workload.per_second)
        yield at, chance.randint(1, workload.subwindows)


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None
