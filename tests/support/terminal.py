"""A terminal for programs under test: a pseudo-terminal of a given size, and what is to be seen on it.

Only what our programs use is understood. Any other control sequence is an error, so that a picture is never
wrong silently.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from typing import Any

#: text, and the ways to command a terminal
_TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|[\r\n\x08\x07]|[^\x1b\r\n\x08\x07]+|\x1b")
#: modes that change nothing here: keys of the cursor, wrapping, a blinking cursor, pasted text in brackets
_MODES = ("?1", "?7", "?12", "?2004")


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
        #: what the terminal has to say to the program
        self.replies = ""

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
            case "\x08":
                self._column = max(0, self._column - 1)
            case "\x07" | "\x1b":
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
            case "B":
                self._row = min(len(self._lines) - 1, self._row + int(arguments or 1))
            case "C":
                self._column = min(self.width - 1, self._column + int(arguments or 1))
            case "D":
                self._column = max(0, self._column - int(arguments or 1))
            case "K" if arguments == "2":
                self._lines[self._row] = []
            case "K" | "J" if arguments in ("", "0"):  # from the cursor to the end of the line, or of all
                del self._lines[self._row][self._column :]
                if name == "J":
                    del self._lines[self._row + 1 :]
            case "n" if arguments == "6":  # where the cursor is
                top = max(0, len(self._lines) - self.height)
                self.replies += f"\x1b[{self._row - top + 1};{self._column + 1}R"
            case "h" | "l" if arguments == "?25":
                self.cursor_is_shown = name == "h"
            case "h" | "l" if arguments in _MODES:
                pass
            case _:
                raise AssertionError(f"what does \\x1b[{arguments}{name} do?")


def run_in_terminal(
    command: list[str],
    width: int,
    height: int,
    *,
    patience: float = 120,
    typed: Sequence[tuple[str, str]] = (),
    watch: Callable[[Screen], None] = lambda screen: None,
    **how: Any,
) -> tuple[int, Screen]:
    """The exit code of a program, and what it leaves on a terminal of this size. Once the pattern of a
    pair in `typed` is to be seen, the text is typed; `watch` looks at the screen whenever it has changed.
    """
    left = [*typed]
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    screen, until = Screen(width, height), time.monotonic() + patience
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, **how
    )
    os.close(theirs)
    decoder = codecs.getincrementaldecoder("utf-8")()
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
            screen.feed(decoder.decode(written))
            watch(screen)
            os.write(ours, screen.replies.encode())
            screen.replies = ""
            while left and re.search(left[0][0], "\n".join(screen.lines), re.MULTILINE):
                os.write(ours, left.pop(0)[1].encode())
    finally:
        os.close(ours)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
