"""What operators cost over each kind of window (Patroumpas and Sellis 2011, Figures 6 to 13).

δ, SUM, MAX and ⋈ over the connections of a link, or two: over windows of time by slide and extent, over
count-based and partitioned ones by size, over landmark windows as they grow. Rows come in waves, all rows
of a wave at one instant; a step is a wave. Windows are full before anything is timed, except for landmarks.
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

    rate: Annotated[int, "Rows of a wave, on each link."] = 1000
    steps: Annotated[int, "How many waves are timed."] = 10
    slides: Annotated[tuple[int, ...], "SLIDE in waves, RANGE is 10."] = (1, 2, 5, 10)
    extents: Annotated[tuple[int, ...], "RANGE in waves, SLIDE is 1."] = (5, 10, 20, 50)
    sizes: Annotated[tuple[int, ...], "ROWS of count-based windows."] = (1000, 5000, 20_000)
    rates: Annotated[tuple[int, ...], "Rows of a wave, for δ over the middle size."] = (500, 1000, 2000, 5000)
    landmarks: Annotated[tuple[int, ...], "Waves in a landmark window."] = (10, 20, 40)


QUICK = Options(
    rate=100,
    steps=2,
    slides=(1, 2),
    extents=(2, 5),
    sizes=(200, 500),
    rates=(50, 100),
    landmarks=(3, 6),
)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import windows

    return windows.run(setting, options)


BENCHMARK = Benchmark(
    "windows",
    "δ, SUM, MAX and joins over each kind of window, by slide, extent, size and rate.",
    Options,
    QUICK,
    run,
)
