"""Questions about a window that slides meanwhile, for real: kept sub-windows on disk, threads that ask.

The window is that of an engine without Spark. An update is an epoch: it writes a sub-window of rows and
commits. Periodic queries ask again as soon as they have their answer; one-time queries come in regular
intervals, and are more urgent. Every sub-window is read from its file each time. Under Serial, a query and an
update keep each other out; otherwise nobody waits for anybody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.live_windows import Observed
from windrow.engine.adhoc.question import Question
from windrow.engine.adhoc.select import Reader, SelectWatch, SubWindowCache, Turns
from windrow.engine.engine import Arrival, Engine
from windrow.errors import QueryError
from windrow.execution.local import HereJobs
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_once, compile_script
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from windrow.archive.snapshot import IsolationPolicy
    from windrow.language.binder.once import Once

_SECOND = 1_000_000
_GROUPS = 50


@dataclass(frozen=True, slots=True)
class RealWork:
    """Who asks what, and for how long it is watched."""

    subwindows: int
    #: how often the window slides
    seconds: float
    periodic: int
    #: one-time queries come at this rate
    per_second: float
    rows: int
    #: how long it is watched
    lasting: float


def measure(policy: IsolationPolicy, work: RealWork) -> Observed:
    """Let updates and queries run side by side."""
    with TemporaryDirectory(prefix="windrow-bench-") as folder:
        return _Run(policy, work, Path(folder)).observed()


@dataclass
class _Heard:
    """What readers noted, from their threads."""

    staleness: list[float] = field(default_factory=list)
    one_time_staleness: list[float] = field(default_factory=list)
    response: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    restarts: int = 0
    answers: int = 0
    failures: list[BaseException] = field(default_factory=list)


class _Run:
    """One engine, one window, many threads."""

    def __init__(self, policy: IsolationPolicy, work: RealWork, folder: Path) -> None:
        self.policy, self.work = policy, work
        self.engine = Engine(HereJobs(), CommitLog.open(LocalStore(folder)), shards=1)
        length = work.subwindows * _SECOND
        catalog = Catalog()
        declared = "CREATE STREAM s (k BIGINT, v DOUBLE, t BIGINT) WATTR t ORDERED"
        compile_script(f"{declared} KEEP {length + _SECOND}", catalog)
        self.engine.add_stream(catalog.streams["s"])
        text = f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE {length}] GROUP BY k"
        self.once = compile_once(text, catalog)
        self.turns, self.stop = Turns(places=1), threading.Event()
        self.alone: AbstractContextManager[Any] = threading.Lock() if policy.updates_wait else nullcontext()
        self.heard, self.random = _Heard(), np.random.default_rng(7)
        #: when the update of each commit was due
        self.due: dict[int, float] = {}
        self.number = 0
        for _ in range(work.subwindows + 1):
            self._update(time.monotonic())

    def observed(self) -> Observed:
        """The averages of all that readers noted."""
        threads = [threading.Thread(target=self._slide)]
        threads += [threading.Thread(target=self._ask_again) for _ in range(self.work.periodic)]
        threads += [threading.Thread(target=self._ask_once)] if self.work.per_second else []
        for thread in threads:
            thread.start()
        time.sleep(self.work.lasting)
        self.stop.set()
        for thread in threads:
            thread.join()
        self.engine.close()
        if self.heard.failures:
            raise self.heard.failures[0]
        heard = self.heard
        return Observed(
            fmean(heard.staleness),
            fmean(heard.one_time_staleness) if heard.one_time_staleness else None,
            fmean(heard.response) if heard.response else None,
            fmean(heard.between) if heard.between else None,
            heard.answers / self.work.lasting,
            heard.restarts / max(1, heard.restarts + heard.answers),
        )

    def _update(self, due: float) -> None:
        """The next sub-window: a second of the stream, and the first row of the next."""
        rows, begin = self.work.rows, self.number * _SECOND
        moments = np.sort(self.random.integers(begin, begin + _SECOND, rows))
        moments[-1] = begin + _SECOND
        table = pa.table(
            {
                "k": self.random.integers(0, _GROUPS, rows),
                "v": self.random.random(rows),
                "t": moments.astype(np.int64),
            }
        )
        self.due[self.engine.last.number + 1] = due
        self.engine.epoch([Arrival("s", table)])
        self.number += 1

    def _slide(self) -> None:
        due = time.monotonic()
        with self._told():
            while not self.stop.is_set():
                with self.alone:
                    self._update(due)
                due += self.work.seconds
                self.stop.wait(max(0.0, due - time.monotonic()))

    def _ask_again(self) -> None:
        last: float | None = None
        with self._told():
            while not self.stop.is_set():
                commit = self._asked(self.once, 0)
                now = time.monotonic()
                self.heard.staleness.append(now - self.due[commit])
                self.heard.between += [now - last] if last is not None else []
                last = now

    def _ask_once(self) -> None:
        with self._told():
            while not self.stop.wait(1 / self.work.per_second):
                began = time.monotonic()
                commit = self._asked(self.once, 1)
                now = time.monotonic()
                self.heard.response.append(now - began)
                self.heard.one_time_staleness.append(now - self.due[commit])

    def _asked(self, once: Once, priority: int) -> int:
        """One answer; the commit it is about."""
        question = Question(once, {}, self.engine.log)
        reader = Reader(self.engine.log, self.turns, SubWindowCache(most=0))
        with self.alone, self.engine.log.reader():
            while True:
                try:
                    read = reader.read(lambda m: question.at(m).parts, self.policy, SelectWatch(), priority)
                    break
                except QueryError as error:
                    if error.code != "too-fast" or self.stop.is_set():
                        raise
            question.at(read.manifest).answer(read.frames)
        self.heard.restarts += read.restarts
        self.heard.answers += 1
        return read.manifest.number

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What fails in a thread is raised by whoever waits for it."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001
            if not self.stop.is_set():
                self.heard.failures.append(error)
                self.stop.set()
