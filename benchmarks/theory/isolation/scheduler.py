"""The scheduler of queries over a window that slides. Pure: it decides, others read and write.

It is driven by two calls. `slide` says that the next update is there; it happens at once, unless the policy
has it wait, and its effects on running queries are decided then. `step` does the next thing for the queries:
one sub-window for the one with the highest priority, the earliest first. Both give the operations to carry
out, in order.

>>> scheduler = Scheduler(subwindows=5)
>>> scheduler.submit(Query("Q1", 5))
>>> for turn in "step slide step step step slide step".split():
...     print(*getattr(scheduler, turn)())
rQ1[4]
w5[0] c5
rQ1[0]
rQ1[3]
rQ1[2]
w6[1] c6
rQ1[1] cQ1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.theory.isolation.attempt import Attempt, Effect, Query
from benchmarks.theory.isolation.history import History
from benchmarks.theory.isolation.operations import Abort, Commit, Operation, Pass, Read, Unread, Write
from benchmarks.theory.isolation.policies import TIME_TO_UPDATE
from windrow.archive.snapshot import LATEST, IsolationPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable


class Scheduler:
    """Who does what next.

    `has_scattered_inserts`: the window is a materialised result whose slots are by time of expiry (update
    pattern WK). An update still replaces the oldest slot, but puts rows into all others as well; queries that
    have read those already get the rows passed on.
    """

    def __init__(
        self,
        subwindows: int,
        policy: IsolationPolicy = TIME_TO_UPDATE,
        *,
        has_scattered_inserts: bool = False,
    ) -> None:
        if has_scattered_inserts and policy.level is not LATEST:
            raise ValueError("rows are inserted into every slot: only the latest window can be read")
        self.subwindows, self.policy = subwindows, policy
        self.has_scattered_inserts = has_scattered_inserts
        #: the last update that has happened; updates 0 to n-1 have filled the window
        self.latest = subwindows - 1
        #: updates that wait for a query to end
        self.delayed = 0
        self.running: list[Attempt] = []
        self._done: list[Operation] = []

    @property
    def history(self) -> History:
        """All that has happened."""
        return History(tuple(self._done), self.subwindows)

    @property
    def kept(self) -> frozenset[int]:
        """The expired versions that have to be kept, for those who will take them back."""
        return frozenset(version for each in self.running for version in each.undo)

    def submit(self, query: Query) -> None:
        """A query wants to run."""
        if not 1 <= query.length <= self.subwindows:
            raise ValueError(f"{query.name} wants {query.length} of {self.subwindows} sub-windows")
        if self.has_scattered_inserts and query.length < self.subwindows:
            raise ValueError("slots by time of expiry tell nothing of shorter windows")
        if any(each.query.name == query.name for each in self.running):
            raise ValueError(f"{query.name} is running already")
        self.running.append(Attempt(query, self.latest))

    def slide(self) -> tuple[Operation, ...]:
        """The next update is there."""
        if self.policy.updates_wait and any(each.has_begun for each in self.running):
            self.delayed += 1
            return ()
        return self._log(self._update())

    def step(self) -> tuple[Operation, ...]:
        """One more sub-window for the query whose turn it is; nothing if there is none."""
        if not self.running:
            return ()
        attempt = self._next()
        operations = self._read(attempt)
        if attempt.is_done:
            operations.append(Commit(attempt.query.name))
            self.running.remove(attempt)
            while self.delayed:
                self.delayed -= 1
                operations += self._update()
        return self._log(operations)

    def _next(self) -> Attempt:
        begun = [each for each in self.running if each.has_begun]
        if self.policy.updates_wait and begun:
            return begun[0]
        return max(self.running, key=lambda each: each.query.priority)

    def _read(self, attempt: Attempt) -> list[Operation]:
        query = attempt.query.name
        if attempt.undo:
            return [Unread(query, attempt.undo.pop(0) % self.subwindows)]
        version = self.policy.order(attempt.wanted, self.subwindows)
        attempt.read.add(version)
        return [Read(query, version % self.subwindows)]

    def _update(self) -> list[Operation]:
        self.latest += 1
        operations: list[Operation] = [Write(self.latest, self.latest % self.subwindows), Commit(self.latest)]
        for attempt in self.running:
            operations += self._affect(attempt)
        return operations

    def _affect(self, attempt: Attempt) -> Iterable[Operation]:
        """What the update that has just happened does to a query."""
        effect = attempt.slide(self.latest, self.policy.level, self.subwindows)
        if effect is Effect.CONFLICT and self.policy.undo:
            attempt.take_back(self.latest)
        elif effect is not Effect.NONE:
            attempt.restart(self.latest)
            return [Abort(attempt.query.name)]
        if not self.has_scattered_inserts:
            return []
        read = sorted(attempt.read)
        return [Pass(attempt.query.name, version % self.subwindows, self.latest) for version in read]

    def _log(self, operations: list[Operation]) -> tuple[Operation, ...]:
        self._done += operations
        return tuple(operations)
