"""Rows that come out of order, when they come, and what is answered when: latency against error.

Times are milliseconds of the stream, not of the machine: every row has the moment at which it arrives, so
that a run says the same on every machine. An answer's latency is the time from the end of its extent to the
arrival of the last row of the micro-batch that made it final. Lateness is judged by micro-batch, so these
are small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.engine.explain import declared
from windrow.kernels.executor import KernelExecutor
from windrow.language.compile import compile_query
from windrow.spark.sources.generators import MICROS, TRAFFIC, Disorder, Settings

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.plan import Emit
    from windrow.testing.harness import Executor

    Ints = npt.NDArray[np.int64]

_COLUMNS = "segment BIGINT, speed BIGINT, ts BIGINT"
_MILLI = 1000


@dataclass(frozen=True)
class Arrivals:
    """Rows in the order they come, and the moment of each."""

    rows: pl.DataFrame
    moments: Ints

    @property
    def marks(self) -> Ints:
        """Of each row, the least `ts` that comes after it: what a source that knows its rows can promise."""
        times = self.rows["ts"].to_numpy()
        least = np.minimum.accumulate(times[::-1])[::-1]
        return np.append(least[1:], times.max() + 1)


@dataclass(frozen=True)
class Extent:
    """The aggregate and the window that is asked for."""

    aggregate: str
    range: int
    slide: int

    @property
    def text(self) -> str:
        """As a query."""
        return (
            f"SELECT RSTREAM(segment, {self.aggregate} AS a) FROM s"
            f" [RANGE {self.range} SLIDE {self.slide}] GROUP BY segment"
        )


@dataclass
class Told:
    """What was answered, by end of extent and segment, and when the answers about each end came."""

    values: dict[tuple[int, int], float] = field(default_factory=dict)
    moments: dict[int, int] = field(default_factory=dict)

    def latency(self, until: int) -> float:
        """The mean time from the end of an extent to its answer, in seconds; ends up to `until`."""
        waits = [moment - end for end, moment in self.moments.items() if end <= until]
        return float(np.mean(waits)) / _MILLI

    def error(self, truth: Mapping[tuple[int, int], float], until: int) -> float:
        """The mean of |answer - truth| / truth in percent; what is missing is wrong by 100."""
        wrong = [
            abs(self.values.get(key, 0.0) - value) / abs(value)
            for key, value in truth.items()
            if key[0] <= until
        ]
        return 100 * float(np.mean(wrong))

    def incorrect(self, truth: Mapping[tuple[int, int], float], until: int) -> float:
        """The percentage of answers that are not right, or missing."""
        return 100 * float(
            np.mean([self.values.get(key) != value for key, value in truth.items() if key[0] <= until])
        )


def stalling(seconds: int, rate: int, every: int, longest: int, seed: int = 1) -> Arrivals:
    """In order, but now and then the line of one segment stalls: its rows of that time come at the end of it.

    `every` and `longest` are milliseconds; a stall lasts between a sixth of `longest` and all of it.
    """
    rows = _traffic(seconds * rate, Settings(event_rate=rate))
    times, segments = rows["ts"].to_numpy(), rows["segment"].to_numpy()
    random = np.random.default_rng(seed)
    moments = times.copy()
    begin = 0
    while begin < seconds * _MILLI:
        begin += int(random.exponential(every))
        end = begin + int(random.integers(longest // 6, longest + 1))
        stalled = (times >= begin) & (times < end) & (segments == random.integers(0, segments.max() + 1))
        moments[stalled] = end
        begin = end
    return _by_moment(rows, moments)


def delayed(seconds: int, rate: int, longest: int, seed: int = 1) -> Arrivals:
    """Every row is delayed by a random time, up to `longest` milliseconds."""
    rows = _traffic(seconds * rate, Settings(event_rate=rate))
    delays = np.random.default_rng(seed).integers(0, longest + 1, rows.height)
    return _by_moment(rows, rows["ts"].to_numpy() + delays)


def block_sorted(blocks: int, rate: int, block: int) -> Arrivals:
    """Blocks of `block` milliseconds, in each of which rows come sorted by segment."""
    settings = Settings(event_rate=rate, disorder=Disorder.BLOCK, block=block * (MICROS // _MILLI))
    rows = _traffic(blocks * block * rate // _MILLI, settings)
    return Arrivals(rows, np.arange(rows.height, dtype=np.int64) * _MILLI // rate)


def on_kernels(query: Emit) -> Executor:
    """What runs a query if nothing else is said."""
    return KernelExecutor(query, by_group=False)


def told(
    arrivals: Arrivals,
    extent: Extent,
    size: int,
    options: str,
    executor: Callable[[Emit], Executor] = on_kernels,
) -> Told:
    """Push all rows, `size` at a time, to a stream with these options; if none, marks come from outside."""
    running = executor(compile_query(extent.text, declared({"s": (_COLUMNS, options)}, {})))
    rows, marks, found = arrivals.rows.rows(), arrivals.marks, Told()
    for first in range(0, len(rows), size):
        last = min(first + size, len(rows)) - 1
        running.push("s", rows[first : last + 1])
        if not options:
            running.punctuate("s", int(marks[last]))
        for change in running.take():
            found.values[change.at, change.row[0]] = change.row[1]
            found.moments.setdefault(change.at, int(arrivals.moments[last]))
    return found


def truth(arrivals: Arrivals, extent: Extent) -> dict[tuple[int, int], float]:
    """The right answers, from all rows of each extent."""
    rows = arrivals.rows.sort("ts")
    times = rows["ts"].to_numpy()
    value = pl.len() if extent.aggregate.startswith("COUNT") else pl.col("speed").mean()
    found: dict[tuple[int, int], float] = {}
    for end in range(extent.slide, int(times[-1]) + 1, extent.slide):
        first, last = np.searchsorted(times, [end - extent.range, end])
        inside = rows.slice(int(first), int(last - first)).group_by("segment").agg(value.alias("a"))
        found |= {(end, segment): a for segment, a in inside.rows()}
    return found


def _traffic(count: int, settings: Settings) -> pl.DataFrame:
    """Rows with `ts` in milliseconds from 0 on, and tenths of miles per hour."""
    made = pl.from_arrow(TRAFFIC.rows(settings, 0, count, ["segment", "speed", "ts"]))
    assert isinstance(made, pl.DataFrame)
    micros = pl.col("ts").cast(pl.Int64) - settings.start
    return made.with_columns((pl.col("speed") * 10).round().cast(pl.Int64), ts=micros // (MICROS // _MILLI))


def _by_moment(rows: pl.DataFrame, moments: Ints) -> Arrivals:
    order = np.argsort(moments, kind="stable")
    return Arrivals(rows.select(pl.all().gather(pl.Series(order))), moments[order])
