"""Spark's `window()` over rows that keep coming, its answers handed to a function."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.contestants.spark_window import aggregated, store_settings, stream_of
from benchmarks.spark_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from benchmarks.live import LiveJob, Visible
    from benchmarks.setting import Setting
    from windrow.spark.frames import DataFrame

_STORE = "rocksdb"


class SparkLive:
    """Answers are visible when `foreachBatch` has them. Spark closes windows a micro-batch late."""

    name = "spark rocksdb"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """Those of the query; the session is Windrow's."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "watermark": "0 seconds",
            "answers": "a Python function, by foreachBatch in append mode",
            **store_settings(self._setting.spark, _STORE),
        }

    @contextmanager
    def started(self, job: LiveJob, source: Path, visible: Visible) -> Iterator[None]:
        """Runs in the background."""
        spark = self._setting.spark

        def take(rows: DataFrame, _batch: int) -> None:
            table = rows.toArrow()
            if table.num_rows:
                visible.take(table)

        with settings_of(spark, store_settings(spark, _STORE)):
            answers = aggregated(
                stream_of(spark, str(source)), f"{job.range_ms} milliseconds", f"{job.slide_ms} milliseconds"
            )
            query = (
                answers.writeStream.outputMode("append")
                .foreachBatch(take)
                .option("checkpointLocation", str(self._setting.fresh("live-checkpoint")))
                .trigger(processingTime=job.trigger)
                .start()
            )
            try:
                yield
            finally:
                failure = query.exception()
                query.stop()
        if failure is not None:
            raise failure
