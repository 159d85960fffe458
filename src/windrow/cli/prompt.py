"""What a user types, put together to statements: several lines up to a semicolon, or one dot-command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from windrow.errors import QueryError
from windrow.language.scanner import scan
from windrow.redaction import redacted

_PROMPT, _MORE = "windrow> ", "      -> "
_HISTORY = ".windrow_history"


class Lines:
    """The statements and commands that are typed, one after the other.

    >>> typed = iter([".help", "CREATE STREAM s", "  (a INT); -- done", "SHOW STREAMS"])
    >>> list(Lines(is_typed=False, read=lambda prompt: next(typed, None)))
    ['.help', 'CREATE STREAM s\\n  (a INT); -- done', 'SHOW STREAMS']
    """

    def __init__(self, *, is_typed: bool, read: Callable[[str], str | None] | None = None) -> None:
        self._read = read or (_typed if is_typed else _piped)

    def __iter__(self) -> Iterator[str]:
        parts: list[str] = []
        while True:
            try:
                line = self._read(_MORE if parts else _PROMPT)
            except KeyboardInterrupt:  # forget what was begun
                print()
                parts = []
                continue
            if line is None:
                break
            if not parts and line.strip().startswith("."):
                yield line.strip()
                continue
            if parts or line.strip():
                parts.append(line)
            if parts and is_complete("\n".join(parts)):
                yield "\n".join(parts)
                parts = []
        if parts:
            yield "\n".join(parts)


def is_complete(text: str) -> bool:
    """Whether the last thing in the text is a semicolon; one in a text or a comment is none.

    >>> is_complete("SELECT 1;  -- ;"), is_complete("SELECT ';'"), is_complete("SELECT 1 -- ;")
    (True, False, False)
    """
    try:
        tokens = scan(text).items
    except QueryError:  # a text that is not closed yet; if it never is, the next semicolon at an end will do
        return text.rstrip().endswith(";")
    return not tokens or tokens[-1].text == ";"


def _typed(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        print()
        return None


def _piped(prompt: str) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


@contextmanager
def remembered(*, is_typed: bool) -> Iterator[None]:
    """What was typed is there again in the next shell, where the system has readline."""
    try:
        import readline
    except ImportError:
        is_typed = False
    if not is_typed:
        yield
        return
    history = Path.home() / _HISTORY
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with suppress(OSError):
            _forget_secrets(readline)
            readline.set_history_length(1000)
            readline.write_history_file(history)


def _forget_secrets(readline: Any) -> None:
    """What was typed and refused because of a secret in it is not kept as it was."""
    for place in range(readline.get_current_history_length()):
        line = readline.get_history_item(place + 1) or ""
        if (shown := redacted(line)) != line:
            readline.replace_history_item(place, shown)
