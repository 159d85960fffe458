"""Crashes inside of a process that lives on: a crash point raises instead of killing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from windrow.state.crash import refuse_unknown, watching


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


@contextmanager
def crashing_at(
    point: str, passage: int = 1, last_words: Callable[[], None] = lambda: None
) -> Iterator[Crashing]:
    """Raise `Crash` at a passage of a point, and at every point after that, to the end of the block.

    `last_words` are said at the crash, before any `finally`: a copy of the directories made there is what a
    killed process would have left.

    >>> from windrow.state.crash import crash_point
    >>> with crashing_at("after-commit", 2) as crash:
    ...     crash_point("after-commit")
    ...     crash.happened
    False
    """
    refuse_unknown(point)
    crash = Crashing(point, passage, last_words)
    watching.append(crash.reach)
    try:
        yield crash
    finally:
        watching.remove(crash.reach)
