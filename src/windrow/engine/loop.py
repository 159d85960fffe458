"""When epochs happen.

Bounded inputs are read by the engine itself, in one epoch, and end. Every other stream is a Spark streaming
query; an epoch takes the batches of all that wait. When nothing comes, time itself may: a tick lets idle
sources be left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from windrow.engine.core import Arrival, Engine, Promise
from windrow.engine.inbox import Inbox, Waiting
from windrow.errors import DataError, SourceError, StateError
from windrow.spark.streaming import StreamFeed, check_files, next_read
from windrow.state.entries import SourceState
from windrow.state.failures import explained
from windrow.state.names import file_name
from windrow.state.store import make_private, remove_folder
from windrow.windows.domain import INFINITY
from windrow.windows.punctuation import OrderedPer

if TYPE_CHECKING:
    from windrow.spark.sources import Source

#: seconds between looks at the clock when no rows come
TICK = 1.0
#: seconds between looks at whether all that was there has been read
SOON = 0.05
#: what is wrong with rows of a batch, not with where they come from
_REFUSED_ROWS = frozenset({"malformed-row", "null-wattr"})


@dataclass
class Loop:
    """One run of the engine over its sources."""

    engine: Engine
    sources: Mapping[str, Source]
    checkpoints: Path
    trigger: str = "0 seconds"
    once: bool = False
    flush: bool = False
    #: called after every epoch
    watch: Callable[[], None] = lambda: None
    promises: list[Promise] = field(default_factory=list)
    #: called between epochs, for tables whose content may have changed
    refresh: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.inbox = Inbox()
        self.stopping = Event()
        self._feeds: list[StreamFeed] = []

    def stop(self) -> None:
        """End after the epoch that runs now. Any thread may call this; it does not wait."""
        self.stopping.set()
        self.inbox.wake()

    def run(self) -> None:
        """Run until the inputs end, `stop` is called or something fails."""
        for name in self.sources:
            self._check(name)
        try:
            self.engine.deliver()
            self.refresh()
            self._read_bounded()
            self._start_feeds()
            self._follow()
            if self.flush and not self.stopping.is_set():
                self._seal()
        except (DataError, SourceError) as error:
            self._stop_feeds()
            if error.code in _REFUSED_ROWS:
                self._forget_plans()
            raise
        finally:
            self._stop_feeds()

    # ------------------------------------------------------------ sources

    def _check(self, name: str) -> None:
        """The source is the one that was read before, and can say how far it is."""
        source, record = self.sources[name], self.engine.streams[name]
        if record.read.fingerprint not in ("", source.fingerprint):
            raise StateError(
                f"stream `{name}` comes from another source than before: {source.fingerprint}",
                code="source-changed",
                hint=f"read it from `{record.read.fingerprint}` again, or use a new state directory",
            )
        check_files(name, record.read)
        self.engine.read_from(name, source)

    def _read_bounded(self) -> None:
        bounded = [name for name, source in self.sources.items() if source.is_bounded]
        new = [name for name in bounded if not self.engine.streams[name].known.sealed]
        if new:
            read = {name: SourceState(fingerprint=self.sources[name].fingerprint) for name in new}
            arrivals = [Arrival(name, self.sources[name].frame, read[name]) for name in new]
            self.engine.epoch(arrivals, seals=new)
            self.watch()

    def _start_feeds(self) -> None:
        with explained("make the directory", self.checkpoints):
            make_private(self.checkpoints)
        for name, source in self.sources.items():
            if not source.is_bounded:
                self._clear_checkpoint(name)
                feed = StreamFeed(name, source, self.checkpoints / file_name(name), self.inbox.hand_over)
                self._feeds.append(feed)
                feed.start(self.trigger, once=self.once)

    def _clear_checkpoint(self, name: str) -> None:
        """Spark has committed batches that no commit knows: they are of a stream that was dropped."""
        folder = file_name(name)
        commits = self.checkpoints / folder / "commits"
        if self.engine.streams[name].read.query_id is None and commits.is_dir() and any(commits.iterdir()):
            with explained("remove", self.checkpoints / folder):
                remove_folder(self.checkpoints, folder)

    def _forget_plans(self) -> None:
        """Rows were refused: their files are to be mended, or taken away, and announced anew."""
        for feed in self._feeds:
            feed.forget_plan(self.engine.streams[feed.stream].read.last_batch)

    def _stop_feeds(self) -> None:
        """Callbacks that wait are sent back first: Spark waits for them."""
        self.inbox.close()
        for feed in self._feeds:
            feed.stop()

    # ------------------------------------------------------------ epochs

    def _follow(self) -> None:
        """Epoch after epoch, until there is nothing left to wait for."""
        looked = time.monotonic()
        while not self.stopping.is_set():
            self.refresh()
            alive = any(feed.is_active for feed in self._feeds)
            waiting = self.inbox.take((SOON if self.once else TICK) if alive else 0.0)
            if waiting or self.promises:
                self._epoch(waiting)
            elif not alive:
                if not self._check_feeds():
                    return
            elif time.monotonic() - looked >= TICK:
                self._tick()
                looked = time.monotonic()
            self._check_feeds()

    def _epoch(self, waiting: list[Waiting]) -> None:
        committed = False
        promises = [self.promises.pop(0) for _ in range(len(self.promises))]  # more may come meanwhile
        try:
            arrivals = [found for each in waiting if (found := self._arrival(each)) is not None]
            self.engine.epoch(arrivals, promises)
            committed = True
        finally:
            for each in waiting:
                each.settle(committed=committed)
        self.watch()

    def _arrival(self, waiting: Waiting) -> Arrival | None:
        batch = waiting.batch
        source, record = self.sources[batch.stream], self.engine.streams[batch.stream]
        read = next_read(batch.stream, record.read, batch, source.fingerprint)
        return None if read is None else Arrival(batch.stream, batch.frame, read, batch.waiting, batch.around)

    def _tick(self) -> None:
        policies = [record.stream.progress.policy for record in self.engine.streams.values()]
        if any(isinstance(policy, OrderedPer) and policy.idle is not None for policy in policies):
            self.engine.epoch()
        self.watch()

    def _check_feeds(self) -> bool:
        """Raises why a feed has failed, if another start cannot help it. Whether one was started again."""
        if self.stopping.is_set():
            return False
        again = [feed for feed in self._feeds if feed.start_again()]
        for feed in self._feeds:
            error = feed.error() if feed not in again else None
            if error is not None:
                raise error
        return bool(again)

    def _seal(self) -> None:
        """Declare the end of every stream that was read."""
        names = [name for name in self.sources if not self.engine.streams[name].known.sealed]
        names += [name for name, table in self.engine.tables.items() if table.progress != INFINITY]
        if names:
            self.engine.epoch(seals=names)
            self.watch()
