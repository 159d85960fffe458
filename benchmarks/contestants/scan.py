"""A plain scan: Spark streams the same files in the same micro-batches, and throws the rows away.

Nothing over this input on Spark can be faster.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.spark_window import stream_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.job import SlidingJob
    from benchmarks.setting import Setting
    from windrow.spark.frames import DataFrame


class Scan:
    """Answers nothing."""

    name = "scan"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it does with the rows."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "rows": "foreachBatch, written to noop",
        }

    def run(self, job: SlidingJob) -> Outcome:
        """Once over what is there."""
        checkpoint = self._setting.fresh("scan-checkpoint")
        spark = self._setting.spark
        began = time.perf_counter()
        query = (
            stream_of(spark, str(job.readings.folder), job.files_per_batch)
            .writeStream.foreachBatch(_throw_away)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return Outcome(time.perf_counter() - began)


def _throw_away(rows: DataFrame, _batch: int) -> None:
    rows.write.format("noop").mode("overwrite").save()
