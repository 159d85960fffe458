"""Ctrl-C while an engine runs in this thread: the epoch under way is finished, then everything stops.

Spark's own handler would cancel all jobs instead. A second Ctrl-C ends at once, as it would anywhere.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StandingHere:
    """Calls `stop` at the first signal, for the length of a block."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._on_signal) for each in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)
