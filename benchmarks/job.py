"""The job most benchmarks give: max, sum and count by key over a sliding window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.workload import Readings


#: where the answers of many queries are put together, the keys of the n-th are shifted by n times this
KEYS_OF_A_QUERY = 1 << 20


@dataclass(frozen=True)
class SlidingJob:
    """Which rows, in which micro-batches, and which window. It ends when the last row is in: no flush."""

    readings: Readings
    files_per_batch: int
    range_seconds: int
    slide_seconds: int

    @property
    def window(self) -> str:
        """The window as Windrow writes it."""
        return f"[RANGE {self.range_seconds} SECONDS SLIDE {self.slide_seconds} SECONDS]"


@dataclass(frozen=True)
class GroupedJob(SlidingJob):
    """One of many: the same aggregates by an integer that is computed from the key, in any SQL."""

    grouping: str = "k"

    @property
    def refreshes(self) -> int:
        """How many windows end with the rows, or before: each is answered once.

        >>> from pathlib import Path
        >>> from benchmarks.workload import Readings
        >>> GroupedJob(Readings(Path(), 100, 5, seconds=50, rows_per_file=10), 1, 60, 20).refreshes
        2
        """
        return self.readings.seconds // self.slide_seconds
