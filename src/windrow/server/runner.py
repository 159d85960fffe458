"""The run in the background: begun when there is something to read, begun anew when streams come or go.

A run that fails for a reason outside (a broker that is away, a full disk) is tried again, after growing
pauses; one that fails because of rows or a query waits for a statement that changes something.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from windrow.engine.engine import why_ended
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from windrow.session import Windrow

_log = logging.getLogger("windrow.server")

#: seconds before a failed run is tried again: at first, and at most
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: a run this long was a good one: the next failure is the first again
_GOOD = 120.0


class Runner:
    """Runs an engine until `close`. `status` is idle, running, ended (with its inputs) or failed."""

    def __init__(
        self, windrow: Windrow, trigger: str = "1 second", watch: Callable[[], None] = lambda: None
    ) -> None:
        self._windrow, self._trigger, self._watch = windrow, trigger, watch
        self._changed = threading.Event()
        self._closing = threading.Event()
        self._again = False
        self.status = "idle"
        self.error: WindrowError | None = None
        self._thread = threading.Thread(target=self._live, name="windrow epochs", daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def changed(self, *, streams: bool) -> None:
        """Something was registered or dropped; if `streams` were, the run is begun anew with them."""
        self._changed.set()
        if streams and self.status == "running":
            self._again = True
            self._windrow.stop()

    def close(self, timeout: float = 60.0) -> None:
        """End after the epoch that is under way."""
        self._closing.set()
        self._changed.set()
        self._windrow.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _live(self) -> None:
        pause = FIRST_PAUSE
        while not self._closing.is_set():
            self._changed.clear()
            if not self._windrow.streams:
                self._changed.wait()
                continue
            began = time.monotonic()
            failure = self._run()
            self._watch()
            if self._closing.is_set() or (self._again and failure is None):
                self._again = False
                continue
            pause = FIRST_PAUSE if time.monotonic() - began > _GOOD else pause
            if failure is not None and failure.exit_code != 1:
                self._changed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self._changed.wait()

    def _run(self) -> WindrowError | None:
        """One run; why it has ended, if not by itself or because somebody wanted it."""
        self.status, self.error = "running", None
        _log.info("running", extra={"commit": self._windrow.commit})
        raised: WindrowError | None = None
        try:
            self._windrow.run(self._trigger, watch=self._watch)
        except Exception as error:  # noqa: BLE001  whatever it is, the server goes on and tells it
            raised = why_ended(error)
        failure = self._windrow.exception or (raised if self._is_refused(raised) else None)
        if failure is None:
            self.status = "ended"
            return None
        self.status, self.error = "failed", failure
        _log.error("the run has ended: %s", failure.message, extra={"code": failure.code})
        return failure

    def _is_refused(self, raised: WindrowError | None) -> bool:
        """Whether the run did not even begin: what a run raises at its end is told by queries and sinks."""
        told = [each.render() for each in self._windrow.problems]
        return raised is not None and raised.render() not in told
