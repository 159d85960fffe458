"""Rows at a fixed rate: files that were made before appear one by one, each when its last row is due."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.workload import Readings


class Feed:
    """Puts files into a directory, whole, and remembers when each was there."""

    def __init__(self, readings: Readings, into: Path) -> None:
        self._files = readings.files
        self._every = readings.seconds / len(self._files)
        self._into = into
        self.written: list[float] = []
        into.mkdir(parents=True)

    def put_first(self) -> None:
        """The first file, so that there is something to start with."""
        self._put()

    def run(self) -> None:
        """All others, by the clock; late ones follow at once."""
        began = time.monotonic()
        first = len(self.written)
        for number in range(first, len(self._files)):
            due = began + (number - first + 1) * self._every
            time.sleep(max(0.0, due - time.monotonic()))
            self._put()

    def start(self) -> threading.Thread:
        """The same, in a thread of its own."""
        thread = threading.Thread(target=self.run, name="feed", daemon=True)
        thread.start()
        return thread

    def _put(self) -> None:
        file = self._files[len(self.written)]
        hidden = self._into / f".{file.name}"
        shutil.copyfile(file, hidden)
        hidden.rename(self._into / file.name)
        self.written.append(time.monotonic())
