"""Echo of a terminal: what is typed while a region is drawn would come to stand in it, Ctrl-C as `^C`.

Drawn at the end of a line, it would even move the region down by one.
"""

from __future__ import annotations

import os
import sys
import termios
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCAL_MODES = 3
#: how the terminal was, while it is silent
_before: list[tuple[int, list[Any]]] = []


@contextmanager
def silent() -> Iterator[None]:
    """What is typed is not shown; Ctrl-C still interrupts."""
    with suppress(AttributeError, OSError, ValueError, termios.error):  # there is no terminal
        terminal = sys.__stdin__.fileno()  # type: ignore[union-attr]
        if not _is_background(terminal):
            modes = termios.tcgetattr(terminal)
            _before.append((terminal, [*modes]))
            modes[_LOCAL_MODES] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSADRAIN, modes)
    try:
        yield
    finally:
        restore()


def restore() -> None:
    """The terminal as it was; for those who leave at once, too."""
    while _before:
        terminal, modes = _before.pop()
        with suppress(OSError, termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, modes)


def _is_background(terminal: int) -> bool:
    """Whether this is a job that would be stopped if it touched the terminal."""
    try:
        return os.tcgetpgrp(terminal) != os.getpgrp()
    except OSError:  # a terminal that controls nobody
        return False
