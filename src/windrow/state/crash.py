"""Places where a test can end the process, as a power cut would.

A crash point does nothing, unless the environment variable `WINDROW_CRASH_AT` names it. Then the process is
killed right there by SIGKILL: no `finally`, no buffers written. `name:3` means the third passage.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

from windrow.errors import StateError, nearest

VARIABLE = "WINDROW_CRASH_AT"

#: every crash point there is, in the order of an engine's life
POINTS = (
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

_passed: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Kill the process if the environment names this point; do nothing otherwise."""
    wanted = os.environ.get(VARIABLE)
    if wanted:
        _pass(name, wanted)


def forget() -> None:
    """Count the passages from zero again."""
    _passed.clear()


def _pass(name: str, wanted: str) -> None:
    point, _, count = wanted.partition(":")
    if point not in POINTS:
        raise StateError(f"no crash point `{point}` in {VARIABLE}", hint=nearest(point, POINTS))
    _passed[name] += 1
    if name == point and _passed[name] == int(count or 1):
        _kill()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
