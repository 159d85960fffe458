"""The operations on the slots of a window.

A version is the number of the update that wrote it: slot i first holds version i, then i + n, then i + 2n.
Each operation prints as in the literature: `rQ1[0]` reads, `w5[0]` writes, `cQ1` commits, `aQ1` aborts. Two
more are of Windrow's own making: `uQ1[0]` takes back what was read of a version that has expired since, and
`pQ1[0]` passes on rows that were put into a slot after the query had read it. Where old versions stay, as
files do, a read names the version it found, whatever the slot holds by then: `rQ1[0:5]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Write:
    """Update `update` replaces what slot `slot` holds."""

    update: int
    slot: int

    def __str__(self) -> str:
        return f"w{self.update}[{self.slot}]"


@dataclass(frozen=True, slots=True)
class Read:
    """A query reads a slot: what it holds, or the version that is named."""

    query: str
    slot: int
    version: int | None = None

    def __str__(self) -> str:
        return f"r{self.query}[{_place(self)}]"


@dataclass(frozen=True, slots=True)
class Unread:
    """A query reads an expired version again, kept for this, and takes its rows out of its answer."""

    query: str
    slot: int
    version: int | None = None

    def __str__(self) -> str:
        return f"u{self.query}[{_place(self)}]"


def _place(read: Read | Unread) -> str:
    return f"{read.slot}" if read.version is None else f"{read.slot}:{read.version}"


@dataclass(frozen=True, slots=True)
class Pass:
    """Rows that update `update` has put into a slot go to a query that had read the slot before."""

    query: str
    slot: int
    update: int

    def __str__(self) -> str:
        return f"p{self.query}[{self.slot}]"


@dataclass(frozen=True, slots=True)
class Commit:
    """A query gives its answer, or an update is there to stay."""

    transaction: str | int

    def __str__(self) -> str:
        return f"c{self.transaction}"


@dataclass(frozen=True, slots=True)
class Abort:
    """A query forgets what it has read, and begins anew."""

    query: str

    def __str__(self) -> str:
        return f"a{self.query}"


Operation: TypeAlias = Write | Read | Unread | Pass | Commit | Abort
