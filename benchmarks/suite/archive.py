"""Windows on disk, cut in different ways: what an update, a search and a scan take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings

if TYPE_CHECKING:
    from benchmarks.setting import Setting


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    sides: Annotated[tuple[int, ...], "A grid has so many parts each way."] = (2, 3, 4, 5)
    small: Annotated[int, "Rows of an update, small."] = 2000
    large: Annotated[int, "Rows of an update, large; 0 leaves it out."] = 20_000
    updates: Annotated[int, "Updates of the small one."] = 18
    large_updates: Annotated[int, "Updates of the large one."] = 6
    probes: Annotated[int, "Searches after each update."] = 3


QUICK = Options(sides=(2, 3), small=300, large=0, updates=3, probes=1)


def run(setting: Setting, options: Options) -> Findings:
    """Load what it takes, and run it."""
    from benchmarks.studies import archive

    return archive.run(setting, options)


BENCHMARK = Benchmark("archive", "Windows on disk: updates, searches and scans.", Options, QUICK, run)
