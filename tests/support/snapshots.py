"""Messages kept as readable pairs: a title, what was written, and what came of it.

    -- a misspelt column
    SELECT prise FROM bids
    =>
    error[unknown-column]: …

With WINDROW_UPDATE_SNAPSHOTS=1 the messages are written anew, and a test whose message changed fails once:
read the difference before you keep it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PAIR = re.compile(r"-- (?P<title>.*)\n(?P<text>(?:.*\n)+?)=>\n(?P<message>(?:.+\n)*)")


@dataclass(frozen=True)
class Pair:
    """One mistake and its message."""

    title: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"-- {self.title}\n{self.text}\n=>\n{self.message}\n"


def read_pairs(file: Path, message_of: Callable[[str], str]) -> list[Pair]:
    """The pairs of a file; where they are to be updated, the file gets the messages of today first."""
    pairs = [
        Pair(found["title"], found["text"].rstrip("\n"), found["message"].rstrip("\n"))
        for found in _PAIR.finditer(file.read_text(encoding="utf-8"))
    ]
    if os.environ.get("WINDROW_UPDATE_SNAPSHOTS"):
        fresh = [Pair(pair.title, pair.text, message_of(pair.text)) for pair in pairs]
        file.write_text("\n\n".join(map(str, fresh)), encoding="utf-8")
    return pairs
