"""How much a SELECT may take, and how it is stopped.

Who reads next. A few read at a time; of those who wait, the highest priority goes first.

A query asks for a turn for each sub-window, so that one of higher priority overtakes it in the middle.

>>> turns = Turns(places=1)
>>> with turns.turn(0):
...     turns.waiting
0
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from threading import Condition

from windrow.errors import QueryError

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


@dataclass(frozen=True)
class Limits:
    """None: no limit. Rows are those of the answer; bytes those that are read, and those of the answer."""

    seconds: float | None = None
    rows: int | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("timeout", self.seconds), ("max_rows", self.rows), ("max_bytes", self.bytes)):
            if value is not None and value <= 0:
                raise QueryError(f"{name} {value} allows nothing", code="bad-value", hint="more than 0")


class SelectWatch:
    """Watches over one SELECT. `check` raises when it has to end."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._ends = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        self._bytes = 0
        self._error: QueryError | None = None
        self._stoppers: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Stop it, from any thread. It ends with an error as soon as it can."""
        self._end(QueryError("the SELECT was cancelled", code="cancelled"))

    def check(self) -> None:
        """Whether to go on; an error if not."""
        if self._ends is not None and time.monotonic() >= self._ends:
            self._end(self._too_long())
        if self._error is not None:
            raise self._error

    def has_read(self, count: int) -> None:
        """So many bytes were read."""
        self._bytes += count
        self._compare(self._bytes, "read")

    def has_answer(self, rows: int, size: int) -> None:
        """The answer is so large."""
        most = self.limits.rows
        if most is not None and rows > most:
            raise QueryError(
                f"the answer has {rows} rows, and {most} are allowed",
                code="too-many-rows",
                hint="ask for less, with WHERE, GROUP BY or LIMIT; or allow more: max_rows",
            )
        self._compare(size, "in the answer")

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Within the block, `stop` ends what is under way elsewhere, if the SELECT has to end."""
        timer = None
        if self._ends is not None:
            timer = threading.Timer(
                max(self._ends - time.monotonic(), 0), lambda: self._end(self._too_long())
            )
            timer.daemon = True
            timer.start()
        with self._lock:
            self._stoppers.append(stop)
        try:
            self.check()
            yield
        except BaseException:
            with suppress(Exception):  # what is raised already says more
                stop()
            if self._error is not None:
                raise self._error from None
            raise
        finally:
            with self._lock:
                self._stoppers.remove(stop)
            if timer is not None:
                timer.cancel()

    def _end(self, error: QueryError) -> None:
        with self._lock:
            self._error = self._error or error
            stoppers = list(self._stoppers)
        for stop in stoppers:
            stop()

    def _too_long(self) -> QueryError:
        return QueryError(
            f"the SELECT has taken longer than {self.limits.seconds} s",
            code="too-long",
            hint="ask for less, or allow more time: timeout",
        )

    def _compare(self, count: int, where: str) -> None:
        most = self.limits.bytes
        if most is not None and count > most:
            raise QueryError(
                f"there are {count} bytes {where}, and {most} are allowed",
                code="too-many-bytes",
                hint="ask about a shorter window, or allow more: max_bytes",
            )
