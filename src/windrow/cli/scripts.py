"""What the commands that take a script have in common: reading it, and errors that name its file.

`--trigger`: how often micro-batches are taken.
"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator


_FORM = re.compile(r"\d+ (millisecond|second|minute|hour)s?", re.IGNORECASE)


def trigger_text(text: str) -> str:
    """The option's value, checked before anything is started.

    >>> trigger_text("1 second")
    '1 second'
    """
    if _FORM.fullmatch(text.strip()) is None:
        raise typer.BadParameter(f"`{text}` is no span of time: write a number and a unit, as in '5 seconds'")
    return text.strip()


STDIN = Path("-")


def read_script(file: Path) -> str:
    """The text of a script; `-` is standard input."""
    content = sys.stdin.buffer.read() if file == STDIN else _content(file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise QueryError(
            f"{name_of(file)} is not UTF-8 text: byte {error.start} is {content[error.start]:#04x}",
            code="not-text",
            hint="save the script in the encoding UTF-8",
        ) from None


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read '{file}': {error.strerror}") from None


def name_of(file: Path) -> str:
    """What a script is called in messages."""
    return "<stdin>" if file == STDIN else str(file)


@contextmanager
def within(name: str) -> Iterator[None]:
    """Errors raised inside say that they are about `name`."""
    try:
        yield
    except QueryError as error:
        error.file = error.file or name
        raise
