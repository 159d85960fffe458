"""Who reads next. A few read at a time; of those who wait, the highest priority goes first.

A query asks for a turn for each sub-window, so that one of higher priority overtakes it in the middle.

>>> turns = Turns(places=1)
>>> with turns.turn(0):
...     turns.waiting
0
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition

#: seconds between looks at whether a waiting query was cancelled
_LOOK = 0.05


class Turns:
    """Turns for readers in many threads."""

    def __init__(self, places: int = 2) -> None:
        self._free = places
        self._changed = Condition()
        self._waiting: list[tuple[int, int]] = []
        self._tickets = count()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @contextmanager
    def turn(self, priority: int, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        """A turn, to the end of the block. `check` is called while waiting; it raises to give up."""
        ticket = (-priority, next(self._tickets))
        with self._changed:
            heapq.heappush(self._waiting, ticket)
            try:
                while not (self._free and self._waiting[0] == ticket):
                    self._changed.wait(_LOOK)
                    check()
                self._free -= 1
            finally:
                self._waiting.remove(ticket)
                heapq.heapify(self._waiting)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._changed.notify_all()
