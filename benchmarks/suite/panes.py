"""Panes on and off: a sliding MAX, by rows per pane and panes per window (No Pane, No Gain, Figure 3).

The same query four ways: rewritten to panes and as it stands, both on the kernels for any plan; on the
kernels for sliding aggregates, which have panes built in; and from a buffer of rows, which is looked
through for every extent. What counts is the ratio of times with panes to times without.
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

    rows: Annotated[int, "How many rows."] = 100_000
    keys: Annotated[int, "How many keys."] = 10
    rows_per_batch: Annotated[int, "How many of them come at once."] = 20_000
    rows_per_pane: Annotated[tuple[int, ...], "SLIDE in rows."] = (20, 100, 500, 2000)
    panes_per_window: Annotated[tuple[int, ...], "RANGE / SLIDE."] = (2, 5, 10, 50)
    groups: Annotated[tuple[int, ...], "Keys, at the middle of both: from how many on panes do not pay."] = (
        1,
        10,
        100,
        1000,
        10_000,
    )


QUICK = Options(
    rows=4000, rows_per_batch=1000, rows_per_pane=(5, 20), panes_per_window=(2, 10), groups=(1, 50)
)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import panes

    return panes.run(setting, options)


BENCHMARK = Benchmark(
    "panes", "Panes on and off, by rows per pane and panes per window.", Options, QUICK, run
)
