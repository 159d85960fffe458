"""One attempt of a query to read its window: what it has, what it wants, and what an update does to it.

The window of a query of length k, at update m, are the versions m-k+1 to m. Update j lets version j-k expire
from it, whether or not the slot of that version is the one that is overwritten: this is the slot numbered
(j + n - k) mod n in Algorithms 7 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from windrow.archive.snapshot import LATEST, IsolationLevel


@dataclass(frozen=True, slots=True)
class Query:
    """Who wants to read: the youngest `length` sub-windows. Higher priorities overtake lower ones."""

    name: str
    length: int
    priority: int = 0


class Effect(Enum):
    """What an update means to an attempt."""

    NONE = auto()
    #: a version that was read has expired
    CONFLICT = auto()
    #: a version that is still wanted is overwritten
    LOST = auto()


@dataclass
class Attempt:
    """A query under way. `target` is the update after which the window is as the answer will show it."""

    query: Query
    target: int
    read: set[int] = field(default_factory=set)
    #: expired versions that were read and must be taken back
    undo: list[int] = field(default_factory=list)
    #: how often it had to begin anew
    restarts: int = 0
    #: an update is hidden already, so all later ones have to be
    is_pinned: bool = False

    @property
    def wanted(self) -> tuple[int, ...]:
        """The versions it has still to read, ascending."""
        window = range(self.target - self.query.length + 1, self.target + 1)
        return tuple(version for version in window if version not in self.read)

    @property
    def has_begun(self) -> bool:
        """Whether it would lose anything by beginning anew."""
        return bool(self.read)

    @property
    def is_done(self) -> bool:
        """Whether it has read all there is to read."""
        return not self.undo and not self.wanted

    def slide(self, update: int, level: IsolationLevel, subwindows: int) -> Effect:
        """Take in an update, as far as the level of isolation lets it be seen."""
        expired = update - self.query.length
        if level is LATEST:
            self.target = update
            return Effect.CONFLICT if expired in self.read else Effect.NONE
        if expired in self.read:
            self.is_pinned = True
        if not self.is_pinned:
            self.target = update
        return Effect.LOST if update - subwindows in self.wanted else Effect.NONE

    def take_back(self, update: int) -> None:
        """Plan to undo the version that the update has let expire."""
        expired = update - self.query.length
        self.read.discard(expired)
        self.undo.append(expired)

    def restart(self, latest: int) -> None:
        """Begin anew, on the window as it is now."""
        self.target, self.is_pinned = latest, False
        self.read.clear()
        self.undo.clear()
        self.restarts += 1
