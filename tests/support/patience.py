"""How long tests wait for what must happen: as long as a busy machine takes, and no longer than needed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: seconds after which something that has not happened will not
PATIENCE = 300
_PAUSE = 0.05


def wait_until(happened: Callable[[], bool], still: Callable[[], str | None] = lambda: None) -> None:
    """Wait for an event. `still` is asked meanwhile, and tells why it cannot happen any more, if so."""
    until = time.monotonic() + PATIENCE
    while not happened():
        reason = still()
        assert reason is None, reason
        assert time.monotonic() < until, "nothing happens"
        time.sleep(_PAUSE)
