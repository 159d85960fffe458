"""A run over rows that keep coming, and when each answer was there."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from benchmarks.contestant import Outcome
from benchmarks.feed import Feed
from benchmarks.workload import BEGIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from benchmarks.setting import Setting
    from benchmarks.workload import Readings

#: how long to wait for answers after the last row
_PATIENCE = 60.0
_LOOK_EVERY = 0.05


@dataclass(frozen=True)
class LiveJob:
    """Rows that come as fast as time passes in them, and a window over them."""

    readings: Readings
    range_ms: int
    slide_ms: int
    trigger: str
    #: seconds at the beginning that do not count
    left_out: int = 0

    @property
    def instants(self) -> list[int]:
        """When windows end that the rows complete, in microseconds."""
        slide = self.slide_ms * 1000
        return list(range(BEGIN + slide, self.readings.end + 1, slide))

    @property
    def counted(self) -> list[int]:
        """Those of them that count."""
        return [instant for instant in self.instants if instant > BEGIN + self.left_out * SECOND]


@dataclass
class Visible:
    """Answers as they become visible."""

    tables: list[pa.Table] = field(default_factory=list)
    times: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, table: pa.Table) -> None:
        """Some are there now."""
        import pyarrow as pa
        import pyarrow.compute as pc

        now = time.monotonic()
        instants = pc.unique(table.column("at").cast(pa.timestamp("us")).cast(pa.int64())).to_pylist()
        with self._lock:
            self.tables.append(table.select(["at", "k", "m", "t", "n"]))
            for instant in instants:
                self.times.setdefault(instant, now)


class LiveContestant(Protocol):
    """Someone who answers while rows come."""

    @property
    def name(self) -> str:
        """How tables and plots call it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How it is set up."""

    def started(self, job: LiveJob, source: Path, visible: Visible) -> AbstractContextManager[None]:
        """Runs as long as the context lasts, and tells its answers."""


def run_live(setting: Setting, contestant: LiveContestant, job: LiveJob, settle: float) -> Outcome:
    """One run. Its samples are the latencies of the answers, in seconds."""
    import polars as pl

    visible = Visible()
    feed = Feed(job.readings, setting.fresh("live-rows"))
    feed.put_first()
    with contestant.started(job, setting.scratch / "live-rows", visible):
        time.sleep(settle)
        began = time.monotonic()
        feeding = feed.start()
        feeding.join()
        last, give_up = job.instants[-1], time.monotonic() + _PATIENCE
        while last not in visible.times and time.monotonic() < give_up:
            time.sleep(_LOOK_EVERY)
        seconds = time.monotonic() - began
    found = latencies(job, feed.written, visible.times)
    frames = [frame for table in visible.tables if isinstance(frame := pl.from_arrow(table), pl.DataFrame)]
    # without the last of them, answers are incomplete, and there is nothing to compare
    answers = pl.concat(frames).lazy() if last in visible.times else None
    return Outcome(seconds, answers, {"unanswered": len(job.counted) - len(found)}, tuple(found))


def latencies(job: LiveJob, written: list[float], visible: Mapping[int, float]) -> list[float]:
    """For each window that counts and was answered: from the row that completed it to its answer."""
    return [
        visible[instant] - written[job.readings.file_of(instant)]
        for instant in job.counted
        if instant in visible
    ]
