"""Joins of four windows: the order of joining, and when it is done (Golab's thesis, 5.4).

Orders: four global orders, of which the cost model says how much they differ, each run with and without
hash tables. Algorithms: eager evaluation with expiry at intervals, lazy evaluation, and lazy evaluation
that restores results which came and went in between, as the interval grows.
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

    scale: Annotated[int, "How many times longer the windows are than in the thesis, and values more."] = 1
    order_steps: Annotated[int, "Orders: how many steps are timed."] = 8
    order_batch: Annotated[int, "Orders: units of time in a step; 13 rows come in a unit."] = 10
    intervals: Annotated[tuple[int, ...], "Algorithms: SLIDE and interval of expiry, in units."] = (
        1,
        5,
        20,
    )
    units: Annotated[int, "Algorithms: how many units of time are timed, one in a step."] = 20


QUICK = Options(order_steps=2, order_batch=5, intervals=(5,), units=5)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import joins

    return joins.run(setting, options)


BENCHMARK = Benchmark(
    "joins", "Orders of joining four windows, and eager, lazy and restoring joins.", Options, QUICK, run
)
