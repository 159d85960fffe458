"""Windrow over rows that keep coming, its answers handed to a function."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.contestants.windrow import AGGREGATES
from benchmarks.workload import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from benchmarks.live import LiveJob, Visible
    from benchmarks.setting import Setting


class WindrowLive:
    """An answer is visible when it is committed and the function is called."""

    name = "windrow"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it does by itself."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "stream": "ORDERED",
            "answers": "a Python function, after the commit",
        }

    @contextmanager
    def started(self, job: LiveJob, source: Path, visible: Visible) -> Iterator[None]:
        """Runs in the background."""
        import windrow as wr

        window = f"[RANGE {job.range_ms} MILLISECONDS SLIDE {job.slide_ms} MILLISECONDS]"
        with wr.connect(self._setting.spark, state=self._setting.fresh("live-state")) as engine:
            engine.sql(f"CREATE STREAM s ({COLUMNS}) WATTR ts ORDERED FROM 'files://{source}/*.parquet'")
            engine.query(
                "q",
                f"SELECT {AGGREGATES} FROM s {window} GROUP BY k",
                sink=lambda table, commit: visible.take(table),
            )
            engine.start(job.trigger)
            yield
            engine.stop()
