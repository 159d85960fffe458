"""Order and disorder: what window ids save, and how slack trades latency for error (WID, section 8).

Experiment 1 has rows in order: MAX over 4000 rows, by panes and from a buffer, as SLIDE grows. Experiments
2 and 3 have none: AVG over 64 seconds where rows come a few seconds late, COUNT over ten minutes where
blocks of 490 seconds come sorted by another attribute. A stream with SLACK has late rows dropped
(consistent slack) or counted in what is not yet final (generous slack); or its source says itself how far
it is (punctuation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings

if TYPE_CHECKING:
    from benchmarks.setting import Setting


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "Experiment 1: how many rows."] = 20_000
    keys: Annotated[int, "Experiment 1: how many keys."] = 20
    range_rows: Annotated[int, "Experiment 1: RANGE."] = 4000
    slides: Annotated[tuple[int, ...], "Experiment 1: SLIDE."] = (1, 10, 100, 1000, 4000)
    rows_per_batch: Annotated[int, "Experiment 1: rows of a micro-batch."] = 4000
    seconds: Annotated[int, "Experiment 2: how long the stream is."] = 320
    slacks: Annotated[tuple[int, ...], "Experiment 2: SLACK in milliseconds."] = (320, 960, 1600, 2400, 3200)
    small_batch: Annotated[int, "Experiment 2: rows of a micro-batch; 100 rows come in a second."] = 16
    blocks: Annotated[int, "Experiment 3: blocks of 490 seconds."] = 6
    block_slacks: Annotated[tuple[int, ...], "Experiment 3: SLACK in seconds."] = (
        0,
        120,
        240,
        360,
        480,
        491,
        520,
        600,
    )
    block_batch: Annotated[int, "Experiment 3: rows of a micro-batch; 10 rows come in a second."] = 20


QUICK = Options(
    rows=4000,
    keys=5,
    range_rows=400,
    slides=(10, 100),
    rows_per_batch=1000,
    seconds=130,
    slacks=(320, 3200),
    small_batch=64,
    blocks=3,
    block_slacks=(0, 491, 600),
    block_batch=100,
)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import disorder

    return disorder.run(setting, options)


BENCHMARK = Benchmark(
    "disorder", "Panes against buffering, and slack against punctuation.", Options, QUICK, run
)
