"""A burst on Spark: rows that come calmly, then for a while far too fast, then calmly again.

The query calls an aggregate that keeps the processor busy for each row, so that what can be worked on is a
matter of rows and not of the machine's mood. Files appear by the clock; when each window's last file was in
place and when its answer came are both written down.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from benchmarks.feed import Feed
from benchmarks.memory import memory_now
from benchmarks.workload import BEGIN, SECOND, Readings
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from benchmarks.setting import Setting

FILES_PER_SECOND = 4
#: so long is waited for the first rows, and for the last ones
_PATIENCE = 900.0
_LOOK_EVERY = 0.1
_COLUMNS = "ts TIMESTAMP, k INT, v BIGINT"
_KEYS = 10


@dataclass(frozen=True)
class Part:
    """Rows at one rate for some seconds."""

    seconds: int
    rate: int


@dataclass(frozen=True)
class Query:
    """Tumbling windows of so many milliseconds, each row of which keeps a processor busy for a while."""

    window_ms: int
    busy_us: int
    #: how many windows in a row may be missing; None: no shedding
    max_gap: int | None = None

    def start(self, engine: Any, source: Path, take: Any) -> None:
        """Declare the stream and the query."""
        may, gap = ("SHEDDABLE", self.max_gap) if self.max_gap is not None else ("", None)
        engine.sql(f"CREATE STREAM s ({_COLUMNS}) WATTR ts ORDERED {may} FROM 'files://{source}/*.parquet'")
        busy_sum(self.busy_us)
        window = f"[RANGE {self.window_ms} MILLISECONDS SLIDE {self.window_ms} MILLISECONDS]"
        text = f"SELECT k, busy_sum(v) AS total, COUNT(*) AS n FROM s {window} GROUP BY k"
        engine.query("q", text, sink=take, max_gap=gap)


@dataclass
class Seen:
    """What a run gave: answers, when each window's was there, and memory, all by seconds since its start."""

    began: float = 0.0
    tables: list[pa.Table] = field(default_factory=list)
    times: dict[int, float] = field(default_factory=dict)
    memory: list[tuple[float, float]] = field(default_factory=list)
    shed: int = 0
    suspended: bool = False
    seconds: float = 0.0
    #: when each file was in place
    written: list[float] = field(default_factory=list)

    def take(self, table: pa.Table, _commit: int) -> None:
        """Answers are there."""
        import pyarrow as pa

        now = time.monotonic()
        self.tables.append(table)
        for instant in table["at"].cast(pa.timestamp("us")).cast(pa.int64()).unique().to_pylist():
            self.times.setdefault(instant, now)

    @property
    def answers(self) -> pl.DataFrame:
        """All of them."""
        import polars as pl

        frames = [frame for each in self.tables if isinstance(frame := pl.from_arrow(each), pl.DataFrame)]
        return pl.concat(frames)

    def latencies(self) -> list[tuple[float, float]]:
        """For each window that was answered: when it was complete, and how much later its answer came."""
        found = []
        for instant, visible in sorted(self.times.items()):
            file = (instant - BEGIN) * FILES_PER_SECOND // SECOND - 1
            if 0 < file < len(self.written):  # the first file is there before anything runs
                done = self.written[file]
                found.append((done - self.began, visible - done))
        return found


def busy_sum(micros: int) -> None:
    """Register SUM as an aggregate that takes so long for each row."""
    import windrow as wr

    def step(total: int, value: int) -> int:
        if micros:
            end = time.perf_counter_ns() + 1000 * micros
            while time.perf_counter_ns() < end:
                pass
        return total + value

    wr.aggregate(
        name="busy_sum",
        returns="BIGINT",
        takes="BIGINT",
        init=int,
        step=step,
        merge=lambda a, b: a + b,
        final=lambda total: total,
    )


def rows_of(folder: Path, parts: list[Part]) -> Readings:
    """Files of rows, a quarter of a second in each; the last row of a file completes the windows up to it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    random, span = np.random.default_rng(1), SECOND // FILES_PER_SECOND
    rates = [part.rate for part in parts for _ in range(part.seconds * FILES_PER_SECOND)]
    total = 0
    for number, rate in enumerate(rates):
        count = max(1, rate // FILES_PER_SECOND)
        times = BEGIN + number * span + (np.arange(count, dtype=np.int64) + 1) * span // count
        columns = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(random.integers(0, _KEYS, count), pa.int32()),
            "v": pa.array(random.integers(0, 1000, count)),
        }
        pq.write_table(pa.table(columns), folder / f"{number:06}.parquet")
        total += count
    return Readings(folder, total, _KEYS, sum(part.seconds for part in parts), rows_per_file=0)


def capacity(setting: Setting, query: Query, rows: int) -> float:
    """Rows per second that can be worked on, beyond what a run costs without rows. The first run warms up."""
    few, many = (
        rows_of(setting.fresh(f"burst-probe-{count}"), [Part(2, count // 2)]) for count in (rows // 10, rows)
    )
    _at_leisure(setting, query, few)
    least, most = (_at_leisure(setting, query, each).seconds for each in (few, many))
    return (many.rows - few.rows) / max(most - least, most / 10)


def exact(setting: Setting, query: Query, readings: Readings) -> pl.DataFrame:
    """The answers over the same rows, without any hurry, and without being busy for longer than it takes."""
    return _at_leisure(setting, Query(query.window_ms, 0), readings).answers


def _at_leisure(setting: Setting, query: Query, readings: Readings) -> Seen:
    import windrow as wr

    seen = Seen()
    with wr.connect(setting.spark, state=setting.fresh("burst-leisure")) as engine:
        query.start(engine, readings.folder, seen.take)
        began = time.monotonic()
        engine.run(once=True)
        seen.seconds = time.monotonic() - began
    return seen


def live(setting: Setting, query: Query, readings: Readings) -> Seen:
    """The rows by the clock."""
    import windrow as wr

    seen = Seen()
    source = setting.fresh("burst-rows")
    feed = Feed(readings, source)
    feed.put_first()
    with wr.connect(setting.spark, state=setting.fresh("burst-state")) as engine:
        query.start(engine, source, seen.take)
        engine.start()
        _wait(lambda: engine.streams["s"].progress.accepted > 0)
        seen.began = time.monotonic()
        with _memory(seen):
            feed.start()
            _wait(lambda: engine.streams["s"].progress.accepted == readings.rows)
            seen.seconds = time.monotonic() - seen.began
        engine.stop()
        seen.shed = engine.streams["s"].progress.shed
        seen.suspended = any(engine.queries["q"].gaps["suspended"].to_pylist())
    seen.written = feed.written
    return seen


def _wait(is_done: Any) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not is_done():
        if time.monotonic() > give_up:
            raise WindrowError("the rows were not worked on in time", code="too-slow")
        time.sleep(_LOOK_EVERY)


@contextmanager
def _memory(seen: Seen) -> Iterator[None]:
    over = Event()

    def watch() -> None:
        while not over.wait(1.0):
            seen.memory.append((time.monotonic() - seen.began, sum(memory_now())))

    thread = Thread(target=watch, name="memory of a burst", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
