"""Sink workers: one thread for each sink whose deliveries take time.

A worker is given what commits hold for its sink, and delivers it while the next epochs are made; what it has
delivered, or why it could not, waits until the thread that makes epochs asks. A sink that is away holds up
itself: its answers stay in the outbox, and are given to it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.errors import SinkError
    from windrow.state.manifest import OutboxEntry

#: what waits for a sink of one commit
Waiting = tuple[int, "list[OutboxEntry]"]


@dataclass(frozen=True)
class Acknowledged:
    """What became of a delivery. `trouble` is what no sink is to blame for."""

    commit: int
    entries: Sequence[OutboxEntry]
    failure: SinkError | None = None
    trouble: BaseException | None = None


class SinkWorker(Thread):
    """Delivers to one sink, commit by commit. After a failure all that it was given is forgotten."""

    def __init__(self, name: str, section: str, deliver: Deliver, wake: Callable[[], None]) -> None:
        super().__init__(name=f"windrow delivers to {name}", daemon=True)
        self.sink_name, self.section = name, section
        self._deliver, self._wake = deliver, wake
        self._changed = Condition()
        self._queue: deque[Waiting] = deque()
        #: the commits that are queued, under way, or done and not asked about
        self._given: dict[int, int] = {}
        self._done: list[Acknowledged] = []
        #: after a failure nothing is taken until it was asked about: no commit must overtake another
        self._failed = False
        self._ended = False

    def give(self, waiting: Sequence[Waiting]) -> None:
        """What waits for the sink, oldest first; what it was given already is not given twice."""
        with self._changed:
            for commit, entries in () if self._failed else waiting:
                if commit not in self._given:
                    self._given[commit] = sum(_bytes(entry, self.section) for entry in entries)
                    self._queue.append((commit, entries))
            self._changed.notify_all()

    def acknowledged(self) -> list[Acknowledged]:
        """What has become of deliveries since this was last asked."""
        with self._changed:
            found, self._done = self._done, []
            for each in found:
                self._given.pop(each.commit, None)
            if self._failed:
                self._given, self._failed = {}, False
            return found

    @property
    def waiting(self) -> int:
        """The bytes of all answers that the sink was given and has not taken."""
        with self._changed:
            return sum(self._given.values())

    @property
    def has_failed(self) -> bool:
        """Whether it waits to be given everything again."""
        return self._failed

    def run(self) -> None:
        while (next_one := self._next()) is not None:
            commit, entries = next_one
            found = self._deliver(commit, entries)
            with self._changed:
                self._done.append(found)
                if found.failure or found.trouble:
                    self._failed = True
                    self._queue.clear()
                else:
                    self._given[commit] = 0
            self._wake()
            if found.trouble is not None:
                return

    def _next(self) -> Waiting | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ended)
            return None if self._ended else self._queue.popleft()

    def stop(self) -> None:
        """Nothing more is delivered; a delivery under way is waited for."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self.is_alive():
            self.join()


Deliver = Callable[[int, "list[OutboxEntry]"], Acknowledged]


def _bytes(entry: OutboxEntry, section: str) -> int:
    """The bytes that a section has in an outbox file; those of a file that others fill are not counted."""
    known = entry.ref.operators.get(section)
    return 0 if known is None else known.bytes
