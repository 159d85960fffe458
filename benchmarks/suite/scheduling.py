"""Six ways to schedule the refreshes of many queries that share synopses: how many per second, how late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings

if TYPE_CHECKING:
    from benchmarks.setting import Setting


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    queries: Annotated[tuple[int, ...], "How many queries, in eight groups."] = (40, 80, 160, 240)
    updates: Annotated[int, "Updates of the synopses."] = 600
    trials: Annotated[int, "Runs of each case, with other queries."] = 5


QUICK = Options(queries=(40, 80), updates=100, trials=2)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import scheduling

    return scheduling.run(setting, options)


BENCHMARK = Benchmark(
    "scheduling", "Many queries on shared synopses, refreshed by six techniques.", Options, QUICK, run
)
