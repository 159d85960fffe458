"""A terminal for programs under test: a pseudo-terminal of a given size, and what is to be seen on it.

Only what our programs use is understood. Any other control sequence is an error, so that a picture is never
wrong silently.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import Any

#: text, and the ways to command a terminal
_TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|[\r\n\x08\x07]|[^\x1b\r\n\x08\x07]+|\x1b")


class Screen:
    """Lines of a terminal, those that have scrolled away included.

    >>> screen = Screen(10, 2)
    >>> screen.feed("one\\r\\ntwo\\r\\nthree\\r\\x1b[1A\\x1b[2KTWO")
    >>> screen.lines, screen.visible
    (['one', 'TWO', 'three'], ['TWO', 'three'])
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._lines: list[list[str]] = [[]]
        self._row = self._column = 0
        self._unfinished = ""
        self.cursor_is_shown = True

    @property
    def lines(self) -> list[str]:
        """All that was ever shown and not drawn over, without the empty lines at the end."""
        lines = ["".join(line).rstrip() for line in self._lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def visible(self) -> list[str]:
        """What is on the screen."""
        return ["".join(line).rstrip() for line in self._lines[-self.height :]]

    def feed(self, text: str) -> None:
        """What a program writes; a sequence may be cut in two anywhere."""
        text = self._unfinished + text
        cut = re.search(r"\x1b(\[[?0-9;]*)?$", text)
        self._unfinished = cut[0] if cut else ""
        for found in _TOKEN.finditer(text[: cut.start()] if cut else text):
            if found[2]:
                self._command(found[1], found[2])
            else:
                self._write(found[0])

    def _write(self, text: str) -> None:
        match text:
            case "\r":
                self._column = 0
            case "\n":
                self._down()
            case "\x07" | "\x08" | "\x1b":
                raise AssertionError(f"what does {text!r} do?")
            case _:
                for character in text:
                    self._put(character)

    def _put(self, character: str) -> None:
        if self._column == self.width:  # the last column wraps only when there is more
            self._column = 0
            self._down()
        line = self._lines[self._row]
        line += " " * (self._column + 1 - len(line))
        line[self._column] = character
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append([])

    def _command(self, arguments: str, name: str) -> None:
        match name:
            case "m":  # colours
                pass
            case "A":  # up, at most to the top of the screen
                top = max(0, len(self._lines) - self.height)
                self._row = max(top, self._row - int(arguments or 1))
            case "K" if arguments == "2":
                self._lines[self._row] = []
            case "h" | "l" if arguments == "?25":
                self.cursor_is_shown = name == "h"
            case _:
                raise AssertionError(f"what does \\x1b[{arguments}{name} do?")


def run_in_terminal(
    command: list[str],
    width: int,
    height: int,
    *,
    patience: float = 120,
    typed: tuple[str, str] | None = None,
    **how: Any,
) -> tuple[int, Screen]:
    """The exit code of a program, and what it leaves on a terminal of this size. Once the first text of
    `typed` is to be seen, the second is typed.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    screen, until = Screen(width, height), time.monotonic() + patience
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **how
    )
    os.close(theirs)
    try:
        while True:
            ready, _, _ = select.select([ours], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"the program hangs:\n{screen.lines}"
            try:
                written = os.read(ours, 1 << 16)
            except OSError:  # Linux's way to say that everybody has closed the other end
                written = b""
            if not written:
                return process.wait(patience), screen
            screen.feed(written.decode())
            if typed is not None and any(typed[0] in line for line in screen.lines):
                os.write(ours, typed[1].encode())
                typed = None
    finally:
        os.close(ours)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
