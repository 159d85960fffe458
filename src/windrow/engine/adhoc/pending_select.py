"""A SELECT that is answered in the background: wait for it, or cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from windrow.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engine.adhoc.limits import Watch


class Asked:
    """What `w.ask` gives."""

    def __init__(self, answer: Callable[[], pa.Table], watch: Watch) -> None:
        self._answer, self._watch = answer, watch
        self._table: pa.Table | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="windrow select", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether there is an answer, or an error."""
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Stop it; `result` then raises. What was read is let go of."""
        self._watch.cancel()

    def result(self, timeout: float | None = None) -> pa.Table:
        """The answer; an error after so many seconds without one, while it goes on."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise QueryError(f"no answer after {timeout} s", code="not-yet", hint="wait longer, or cancel()")
        if self._error is not None:
            raise self._error
        return self._table

    def _run(self) -> None:
        try:
            self._table = self._answer()
        except BaseException as error:  # noqa: BLE001  it is raised again by whoever wants the answer
            self._error = error
