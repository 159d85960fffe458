"""The job most benchmarks give: max, sum and count by key over a sliding window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.bench.workload import Readings


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
