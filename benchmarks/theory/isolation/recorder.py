"""A recorder of what a running engine does: real reads and real updates, as a history to be judged.

The stream is cut into sub-windows by its instants: version j are the rows from j·step on, below (j+1)·step,
and update j is the commit that brings them. A commit is noted at the moment from which readers see it, a read
when the rows are there; which versions they are is read from the rows themselves, since files may hold
several. A query that looks for a newer commit, and finds none, commits by that: what comes after the look is
after it. Files never change, so a read names the version it found, wherever the ring is by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.theory.isolation.history import History
from benchmarks.theory.isolation.operations import Abort, Commit, Operation, Pass, Read, Unread, Write
from windrow.archive.snapshot import LATEST
from windrow.engine.adhoc.select import Read as Done, Reader, SubWindowCache
from windrow.state.log import CommitLog

if TYPE_CHECKING:
    import polars as pl

    from windrow.archive.snapshot import IsolationPolicy
    from windrow.engine.adhoc.access_paths import SubWindow
    from windrow.engine.adhoc.select import SelectWatch
    from windrow.state.manifest import Manifest


@dataclass
class _Asking:
    """A query under way, in its thread: the versions it holds by part, and where it looked last."""

    query: str
    held: dict[str, frozenset[int]] = field(default_factory=dict)
    #: its reads, as places in what is written down
    noted: list[int] = field(default_factory=list)
    looked: int = 0
    #: the commit it says it is about
    about: Manifest | None = None


class Recorder:
    """Writes down operations, in the order in which they happen to the engine."""

    def __init__(self, subwindows: int, step: int, wattr: str, version_of: Callable[[Manifest], int]) -> None:
        self.subwindows, self.step, self._wattr, self._version_of = subwindows, step, wattr, version_of
        self.lock = threading.RLock()
        self.latest = -1
        self._done: list[tuple[int, Operation]] = []
        self._here = threading.local()
        self._queries = 0

    @property
    def history(self) -> History:
        """All that has happened since the window was full."""
        with self.lock:
            return History(tuple(each for _, each in sorted(self._done, key=lambda e: e[0])), self.subwindows)

    def committed(self, manifest: Manifest) -> None:
        """Readers see a commit from now on; those that bring no sub-window are no updates."""
        version = self._version_of(manifest)
        if version > self.latest:
            self.latest = version
            if version >= self.subwindows:
                self._note(Write(version, version % self.subwindows))
                self._note(Commit(version))

    def looked(self) -> None:
        """A thread has seen which commit is the newest."""
        asking: _Asking | None = getattr(self._here, "asking", None)
        if asking is not None:
            asking.looked = len(self._done)

    @contextmanager
    def query(self, policy: IsolationPolicy) -> Iterator[_Asking]:
        """What the thread reads inside is one query. It commits at its last look; if it need not look, here.

        Rows that a file holds beside those of the window are not read for it.
        """
        with self.lock:
            self._queries += 1
            asking = self._here.asking = _Asking(f"Q{self._queries}")
        try:
            yield asking
        finally:
            self._here.asking = None
        with self.lock:
            if asking.about is not None:
                self._forget(asking, self._version_of(asking.about) - self.subwindows)
            place = asking.looked if policy.level is LATEST and not policy.updates_wait else len(self._done)
            self._done.append((place, Commit(asking.query)))

    def read(self, part: str, rows: pl.DataFrame) -> None:
        """A part is read."""
        asking = self._here.asking
        found = frozenset(int(each) // self.step for each in rows[self._wattr].unique())
        with self.lock:
            new = found - {version for versions in asking.held.values() for version in versions}
            asking.held[part] = found
            for version in sorted(new):
                asking.noted.append(len(self._done))
                self._note(Read(asking.query, version % self.subwindows, version))

    def let_go(self, parts: set[str], *, anew: bool) -> None:
        """Parts that have expired are taken back, or all is begun anew."""
        asking = self._here.asking
        with self.lock:
            if anew:
                asking.held.clear()
                self._note(Abort(asking.query))
                return
            gone = frozenset(v for part in parts for v in asking.held.pop(part, ()))
            for version in sorted(gone - {v for versions in asking.held.values() for v in versions}):
                asking.noted.append(len(self._done))
                self._note(Unread(asking.query, version % self.subwindows, version))

    def _forget(self, asking: _Asking, last: int) -> None:
        """Without what a query has read of versions up to one."""
        for at in asking.noted:
            place, each = self._done[at]
            if isinstance(each, Read | Unread) and each.version is not None and each.version <= last:
                self._done[at] = place, Pass(each.query, each.slot, each.version)

    def _note(self, operation: Operation) -> None:
        self._done.append((len(self._done), operation))


class RecordedLog(CommitLog):
    """A commit log that tells a recorder what becomes visible, and who looks."""

    recorder: Recorder

    @property
    def last(self) -> Manifest:
        """The newest commit."""
        with self.recorder.lock:
            self.recorder.looked()
            return self._last

    @last.setter
    def last(self, manifest: Manifest) -> None:
        with self.recorder.lock:
            self._last = manifest
            self.recorder.committed(manifest)


@dataclass(frozen=True)
class RecordedReader(Reader):
    """The engine's reader of windows, with every part it reads or lets go of told."""

    def read(
        self,
        parts_of: Callable[[Manifest], list[SubWindow]],
        policy: IsolationPolicy,
        watch: SelectWatch,
        priority: int = 0,
    ) -> Done:
        assert isinstance(self.log, RecordedLog)
        recorder = self.log.recorder
        told = _ToldMemory(self.memory, recorder)
        reader = RecordedReader(self.log, self.turns, told)
        with recorder.query(policy) as asking:
            done = super(RecordedReader, reader).read(parts_of, policy, watch, priority)
            asking.about = done.manifest
            return done

    def _let_go(self, done: Done, wanted: set[str], policy: IsolationPolicy) -> None:
        assert isinstance(self.log, RecordedLog)
        before, restarts = set(done.frames), done.restarts
        super()._let_go(done, wanted, policy)
        gone = before - set(done.frames)
        if gone:
            self.log.recorder.let_go(gone, anew=done.restarts > restarts)


class _ToldMemory(SubWindowCache):
    """A memory of sub-windows that tells what is taken from it."""

    def __init__(self, memory: SubWindowCache, recorder: Recorder) -> None:
        self._inner, self._recorder = memory, recorder

    def get(self, part: SubWindow) -> pl.DataFrame:
        found = self._inner.get(part)
        self._recorder.read(part.name, found)
        return found
