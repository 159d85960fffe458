"""Places where a test can end the process, as a power cut would.

A crash point does nothing, unless the environment variable `WINDROW_CRASH_AT` names it. Then the process is
killed right there by SIGKILL: no `finally`, no buffers written. `name:3` means the third passage.

Inside of `crashing_at` a point raises `Crash` instead, for tests that cannot afford a process each.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from windrow.errors import StateError, nearest

VARIABLE = "WINDROW_CRASH_AT"

#: the crash points of a state directory by itself
STATE_POINTS = (
    "owner-temp-written",
    "owner-linked",
    "chunk-partly-written",
    "chunk-written",
    "compaction-written",
    "manifest-temp-written",
    "manifest-linked",
    "before-directory-sync",
    "after-directory-sync",
    "sweep-between-removals",
)
#: every crash point there is
POINTS = (
    *STATE_POINTS,
    "before-commit",
    "after-commit",
    "before-spark-commit",
    "sink-before-write",
    "sink-written",
    "sink-after-rename",
    "sink-delivered",
)

_passed: Counter[str] = Counter()


class Crash(BaseException):
    """The end of a life, where the process has to live on."""


@dataclass
class Crashing:
    """A crash to come, and whether it came."""

    point: str
    passage: int
    last_words: Callable[[], None]
    passed: int = 0

    @property
    def happened(self) -> bool:
        return self.passed >= self.passage

    def reach(self, name: str) -> None:
        """Pass a point. The dead do nothing any more: after the crash every point is one."""
        with _turn:
            before = self.passed
            self.passed += name == self.point
            if before < self.passage == self.passed:
                self.last_words()
            if self.happened:
                raise Crash(name)


_turn = Lock()
_crashing: list[Crashing] = []


@contextmanager
def crashing_at(
    point: str, passage: int = 1, last_words: Callable[[], None] = lambda: None
) -> Iterator[Crashing]:
    """Raise `Crash` at a passage of a point, and at every point after that, to the end of the block.

    `last_words` are said at the crash, before any `finally`: a copy of the directories made there is what a
    killed process would have left.

    >>> with crashing_at("after-commit", 2) as crash:
    ...     crash_point("after-commit")
    ...     crash.happened
    False
    """
    _refuse_unknown(point)
    crash = Crashing(point, passage, last_words)
    _crashing.append(crash)
    try:
        yield crash
    finally:
        _crashing.remove(crash)


def crash_point(name: str) -> None:
    """Kill the process if the environment names this point; do nothing otherwise."""
    for crash in _crashing:
        crash.reach(name)
    wanted = os.environ.get(VARIABLE)
    if wanted:
        _pass(name, wanted)


def forget() -> None:
    """Count the passages from zero again."""
    _passed.clear()


def _pass(name: str, wanted: str) -> None:
    point, _, count = wanted.partition(":")
    _refuse_unknown(point)
    _passed[name] += 1
    if name == point and _passed[name] == int(count or 1):
        _kill()


def _refuse_unknown(point: str) -> None:
    if point not in POINTS:
        raise StateError(f"no crash point `{point}` in {VARIABLE}", hint=nearest(point, POINTS))


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
