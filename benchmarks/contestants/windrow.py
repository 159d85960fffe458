"""Windrow itself: one standing query, its answers in Parquet files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.disk import size
from benchmarks.workload import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.job import SlidingJob
    from benchmarks.setting import Setting
    from benchmarks.workload import Readings

AGGREGATES = "k, MAX(v) AS m, SUM(v) AS t, COUNT(*) AS n"


class Windrow:
    """Timed from opening the engine to closing it, with all answers on disk."""

    name = "windrow"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """Windrow has nothing to set; this is what it does by itself."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "driver memory": self._setting.memory,
            "stream": "ORDERED",
            "state": "a directory, every commit synchronised to disk",
            "answers": "Parquet files, exactly once",
        }

    def run(self, job: SlidingJob) -> Outcome:
        """Once over what is there; nothing is flushed."""
        import polars as pl

        import windrow as wr

        out, state = self._setting.fresh("windrow-answers"), self._setting.fresh("windrow-state")
        spark = self._setting.awake()
        began = time.perf_counter()
        with wr.connect(spark, state=state) as engine:
            engine.sql(declaration(job.readings, job.files_per_batch))
            engine.query("q", f"SELECT {AGGREGATES} FROM s {job.window} GROUP BY k", sink=f"files://{out}")
            engine.run(once=True)
        seconds = time.perf_counter() - began
        state_bytes = size(state, without=("checkpoints", "outbox"))
        return Outcome(seconds, pl.scan_parquet(out / "*.parquet"), {"state bytes": state_bytes})


def declaration(readings: Readings, files_per_batch: int) -> str:
    """The stream of the readings."""
    source = f"files://{readings.folder}/*.parquet?files_per_batch={files_per_batch}"
    return f"CREATE STREAM s ({COLUMNS}) WATTR ts ORDERED FROM '{source}'"
