"""`windrow` and `python -m windrow`: the command line, which Ctrl-C also ends while it is being loaded.

Loading takes a second, and several on a busy machine; nothing has begun by then that must end in order.
"""

from __future__ import annotations

import os
import signal
from importlib import import_module

_INTERRUPTED = 130


def main() -> None:
    """Load the command line, and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else somebody has chosen what becomes of it
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    command_line = import_module("windrow.cli.main").main
    signal.signal(signal.SIGINT, before)
    command_line()


if __name__ == "__main__":
    main()
