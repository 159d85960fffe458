"""Reading a window that slides meanwhile: sub-window after sub-window.

What is read is decided by a policy of `windrow.archive.isolation`:

    WINDOW   the window of the commit at which the read begins; its files stay as long as somebody reads
    LATEST   the window of the commit that is current when the read ends: sub-windows that are committed
             meanwhile are read too, the one that expires last first, and what has expired is let go of

Commits never wait. They go on in other threads; a read only looks which one is the newest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from windrow.archive.isolation import LATEST as LATEST_LEVEL
from windrow.archive.isolation import SNAPSHOT, UNDOING, Policy
from windrow.errors import QueryError
from windrow.language.once import LATEST, WINDOW

if TYPE_CHECKING:
    import polars as pl

    from windrow.engine.adhoc.access_paths import Part
    from windrow.engine.adhoc.limits import Watch
    from windrow.engine.adhoc.queue import Turns
    from windrow.state.log import CommitLog
    from windrow.state.manifest import Manifest

POLICIES: Mapping[str, Policy] = {WINDOW: SNAPSHOT, LATEST: UNDOING}
#: bytes of sub-windows, as they are in memory, that stay for the next who asks
REMEMBERED = 64 << 20
#: a window that has slid so often while it was read slides faster than it can be read
PATIENCE = 256


class Memory:
    """Sub-windows that were read lately. They never change, so whoever wants one may have it."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most, self._held = most, 0
        self._frames: OrderedDict[str, pl.DataFrame] = OrderedDict()
        self._lock = Lock()

    def get(self, part: Part) -> pl.DataFrame:
        """The rows of a part."""
        with self._lock:
            found = self._frames.get(part.name)
            if found is not None:
                self._frames.move_to_end(part.name)
                return found
        frame = part.fetch()
        size = int(frame.estimated_size())
        with self._lock:
            if part.name not in self._frames and size <= self._most // 4:
                self._frames[part.name] = frame
                self._held += size
                while self._held > self._most:
                    _, gone = self._frames.popitem(last=False)
                    self._held -= int(gone.estimated_size())
        return frame


@dataclass
class Read:
    """What was read: the rows of every part, and the commit they are the state of."""

    manifest: Manifest
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    #: how many parts were read, let go of, and how often all was begun anew
    reads: int = 0
    undone: int = 0
    restarts: int = 0
    #: how many commits were taken in on the way
    slides: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads parts of committed state, each in a turn of its own."""

    log: CommitLog
    turns: Turns
    memory: Memory

    def read(
        self,
        parts_of: Callable[[Manifest], list[Part]],
        policy: Policy,
        watch: Watch,
        priority: int = 0,
    ) -> Read:
        """All parts that `parts_of` names. The caller holds a commit from before."""
        done = Read(self.log.last)
        wanted = _by_end(parts_of(done.manifest))
        while True:
            newest = self.log.last if policy.level is LATEST_LEVEL else done.manifest
            if newest.number != done.manifest.number:
                done.slides += 1
                done.manifest, wanted = newest, _by_end(parts_of(newest))
                self._let_go(done, {part.name for part in wanted}, policy)
            missing = [place for place, part in enumerate(wanted) if part.name not in done.frames]
            if not missing:
                return done
            if done.slides > PATIENCE:
                raise _too_fast()
            first = done.manifest.number  # on a ring, versions go on counting as the window slides
            part = wanted[policy.order([first + place for place in missing], len(wanted)) - first]
            with self.turns.turn(priority, watch.check):
                watch.check()
                watch.has_read(part.bytes)
                done.frames[part.name] = self.memory.get(part)
                done.reads += 1

    def _let_go(self, done: Read, wanted: set[str], policy: Policy) -> None:
        """What was read and has expired since: its rows go, or all is begun anew."""
        expired = done.frames.keys() - wanted
        if not expired:
            return
        if policy.undo:
            done.undone += len(expired)
            done.frames = {name: frame for name, frame in done.frames.items() if name in wanted}
        else:
            done.restarts += 1
            done.frames = {}


def _by_end(parts: list[Part]) -> list[Part]:
    return sorted(parts, key=lambda part: (part.ends, part.name))


def _too_fast() -> QueryError:
    return QueryError(
        f"the window has slid {PATIENCE} times while it was read, and was never read to its end",
        code="too-fast",
        hint="ask about a shorter window, or WITH ISOLATION WINDOW: as it is when the read begins",
    )
