"""Update patterns: four queries over a connection log, as windows grow (Golab's thesis, 3.6).

    Query 1   links joined on the source, ftp or telnet only
    Query 2   the distinct sources of a link, or pairs of source and destination
    Query 3   the connections of a link whose source is not on another
    Query 4   Query 3 joined with the ftp connections of a third link, in both orders

NT tells every expiry by a negative row, DIRECT looks through lists, UPA keeps state by update pattern. Time
is that of steps after the windows are full; each step takes as many units of time as `rows_per_batch` says,
with about one row on each link in each unit.
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

    windows: Annotated[tuple[int, ...], "RANGE in units of time; a row per unit and link."] = (
        2000,
        20_000,
        200_000,
    )
    telnet_windows: Annotated[tuple[int, ...], "The same for the join of telnet, which has many results."] = (
        2000,
        20_000,
        50_000,
        200_000,
    )
    spark_windows: Annotated[tuple[int, ...], "The same for Query 1 on Spark, with `--with spark`."] = (
        20_000,
        200_000,
    )
    rows_per_batch: Annotated[int, "Units of time in a step: about as many rows on each link."] = 1000
    steps: Annotated[int, "How many steps are timed."] = 6


QUICK = Options(windows=(1000,), telnet_windows=(1000,), spark_windows=(1000,), rows_per_batch=250, steps=3)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import patterns

    return patterns.run(setting, options)


BENCHMARK = Benchmark(
    "patterns",
    "Joins, distinct and negation by update pattern, as windows grow.",
    Options,
    QUICK,
    run,
)
