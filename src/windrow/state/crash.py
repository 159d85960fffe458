"""Places where a test can end the process, as a power cut would.

A crash point does nothing, unless the environment variable `WINDROW_CRASH_AT` names it. Then the process is
killed right there by SIGKILL: no `finally`, no buffers written. `name:3` means the third passage.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

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
    "before-source-told",
    "before-spark-commit",
    "sink-before-write",
    "sink-written",
    "sink-after-rename",
    "sink-delivered",
)

_passed: Counter[str] = Counter()


#: told of every point that is passed, for tests that cannot afford a process each
watching: list[Callable[[str], None]] = []


def crash_point(name: str) -> None:
    """Kill the process if the environment names this point; do nothing otherwise."""
    for watch in watching:
        watch(name)
    wanted = os.environ.get(VARIABLE)
    if wanted:
        point, _, count = wanted.partition(":")
        refuse_unknown(point)
        _passed[name] += 1
        if name == point and _passed[name] == int(count or 1):
            _kill()


def refuse_unknown(point: str) -> None:
    """Say so where a name is no point."""
    if point not in POINTS:
        raise StateError(f"no crash point `{point}` in {VARIABLE}", hint=nearest(point, POINTS))


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
