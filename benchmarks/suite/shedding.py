"""What load shedding gives up: nested and shared plans, window parameters, and its cost when it is idle.

After section 4 of Tatbul and Zdonik: plans with delay operators, at more load than they can bear. Windows
that are dropped early save more work than answers that are dropped late, so fewer of them are missing.
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

    cycles: Annotated[int, "How many cycles of dropped windows each plan lives through."] = 200
    max_gap: Annotated[int, "MAX GAP: how many windows in a row may be missing."] = 10
    excess: Annotated[tuple[int, ...], "Load above capacity, in percent."] = (10, 25, 50, 75, 100, 200, 400)
    sizes: Annotated[tuple[int, ...], "Windows whose size is varied, in ticks."] = (25, 50, 75, 100)
    slides: Annotated[tuple[int, ...], "Slides of windows of 100 ticks."] = (1, 10, 20, 50, 100)
    slide_excess: Annotated[tuple[int, ...], "Load above capacity for these, in percent."] = (10, 25, 50, 75)
    overhead_rows: Annotated[int, "How many rows the overhead is measured with."] = 400_000
    rows_per_batch: Annotated[int, "How many of them come at once."] = 50_000
    overhead_rounds: Annotated[int, "Rounds for the overhead, if they are more than those asked for."] = 15


QUICK = Options(
    cycles=12,
    excess=(25, 100),
    sizes=(25, 100),
    slides=(10, 100),
    slide_excess=(25,),
    overhead_rows=20_000,
    rows_per_batch=10_000,
    overhead_rounds=2,
)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import shedding

    return shedding.run(setting, options)


BENCHMARK = Benchmark(
    "shedding", "What is given up under overload, by the way windows are dropped.", Options, QUICK, run
)
