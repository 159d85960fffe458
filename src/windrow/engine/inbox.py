"""Where micro-batches wait for the next epoch.

Spark hands each batch over in a thread of its own, and takes the return of that call for "this batch is dealt
with". So the call returns normally only when a commit holds the batch; in every other case it raises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Condition, Event
from typing import TYPE_CHECKING

from windrow.spark.streaming import NotCommitted

if TYPE_CHECKING:
    from windrow.spark.streaming import MicroBatch


@dataclass(eq=False)
class Waiting:
    """A micro-batch and the thread that waits for it."""

    batch: MicroBatch
    done: Event = field(default_factory=Event)
    committed: bool = False

    def settle(self, *, committed: bool) -> None:
        """Let the waiting thread go on."""
        self.committed = committed
        self.done.set()


class Inbox:
    """Batches of all streams, in the order they came.

    >>> inbox = Inbox()
    >>> inbox.take(timeout=0.0)
    []
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[Waiting] = []
        self._closed = self._woken = False

    def hand_over(self, batch: MicroBatch) -> None:
        """Wait until a commit holds the batch."""
        waiting = Waiting(batch)
        with self._changed:
            if self._closed:
                raise NotCommitted("the engine is stopping")
            self._waiting.append(waiting)
            self._changed.notify_all()
        waiting.done.wait()
        if not waiting.committed:
            raise NotCommitted("the engine is stopping")

    def take(self, timeout: float) -> list[Waiting]:
        """All batches that wait, once there is one; none if time runs out or somebody calls `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed or self._woken, timeout)
            self._woken = False
            taken, self._waiting = self._waiting, []
            return taken

    def wake(self) -> None:
        """Let `take` return at once."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """No more batches; those that wait are sent back."""
        with self._changed:
            self._closed = True
            waiting, self._waiting = self._waiting, []
            self._changed.notify_all()
        for each in waiting:
            each.settle(committed=False)
