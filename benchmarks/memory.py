"""The most memory this process and its children hold at once: samples of what `ps` tells."""

from __future__ import annotations

import os
import subprocess
import threading
from collections import defaultdict
from dataclasses import dataclass, replace
from shutil import which
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.contestant import Outcome

_EVERY_SECONDS = 0.5
_MEBI = 1024


@dataclass
class PeakMemory:
    """As a context, watches. Without `ps` there is nothing to see, and it stays at 0."""

    java: float = 0.0
    python: float = 0.0

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            java, python = memory_now()
            self.java, self.python = max(self.java, java), max(self.python, python)
            if self._over.wait(_EVERY_SECONDS):
                return


def watched(work: Callable[[], Outcome]) -> Outcome:
    """A run, with the most memory of Java and of Python among its figures."""
    with PeakMemory() as peak:
        done = work()
    return replace(done, figures={**done.figures, "java MiB": peak.java, "python MiB": peak.python})


def shown(figures: Mapping[str, float]) -> tuple[str, str]:
    """The memory of Python and of Java, as cells of a table."""
    held = (figures.get("python MiB"), figures.get("java MiB"))
    python, java = (f"{each:.0f} MB" if each else "–" for each in held)
    return python, java


def memory_now() -> tuple[float, float]:
    """The MiB of Java and of Python in this process and its children, at this moment."""
    if which("ps") is None:
        return 0.0, 0.0
    told = subprocess.run(["ps", "-eo", "pid,ppid,rss,comm"], capture_output=True, text=True, check=False)
    return memory_held(told.stdout, os.getpid())


def memory_held(told: str, root: int) -> tuple[float, float]:
    """The MiB of Java and of Python among a process and its descendants.

    >>> memory_held("PID PPID RSS COMMAND\\n7 1 2048 python\\n8 7 4096 java\\n9 8 1024 python3", 7)
    (4.0, 3.0)
    """
    children: dict[int, list[int]] = defaultdict(list)
    sizes: dict[int, tuple[float, str]] = {}
    for line in told.splitlines()[1:]:
        number, parent, held, command = line.split(None, 3)
        children[int(parent)].append(int(number))
        sizes[int(number)] = (int(held) / _MEBI, command)
    java = python = 0.0
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        waiting += children[pid]
        size, command = sizes.get(pid, (0.0, ""))
        if "java" in command:
            java += size
        elif "python" in command:
            python += size
    return java, python
