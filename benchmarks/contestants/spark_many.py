"""Spark with many standing queries: one streaming query each, all on one session, their answers in memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.spark_window import aggregated, finish, store_settings, stream_of
from benchmarks.job import KEYS_OF_A_QUERY
from benchmarks.spark_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from benchmarks.job import GroupedJob
    from benchmarks.setting import Setting
    from windrow.spark.frames import SparkSession, StreamingQuery

_STORE = "rocksdb"


class SparkMany:
    """Timed from building the first query to the end of the last; all run at the same time."""

    name = f"spark {_STORE}"

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    @property
    def settings(self) -> Mapping[str, str]:
        """Those of the queries; the session is Windrow's."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "driver memory": self._setting.memory,
            "watermark": "0 seconds",
            "queries": "one streaming query each, all at once on one session",
            "answers": "in memory, append mode",
            **store_settings(self._setting.spark, _STORE),
        }

    def run(self, jobs: Sequence[GroupedJob]) -> Outcome:
        """Once over what is there; windows that end later stay open."""
        import polars as pl

        spark, names = self._setting.spark, [f"windrow_bench_{number}" for number in range(len(jobs))]
        with settings_of(spark, store_settings(spark, _STORE)):
            began = time.perf_counter()
            running: list[StreamingQuery] = []
            for name, job in zip(names, jobs, strict=True):
                running.append(self._started(spark, name, job))
                if time.perf_counter() - began > self._setting.patience:
                    break  # not even all are started
            finish(running, began, self._setting.patience)
            seconds = time.perf_counter() - began
        answers = [_answers(spark, name, number) for number, name in enumerate(names)]
        return Outcome(seconds, pl.concat(answers).lazy())

    def _started(self, spark: SparkSession, name: str, job: GroupedJob) -> StreamingQuery:
        answers = aggregated(
            stream_of(spark, str(job.readings.folder), job.files_per_batch),
            f"{job.range_seconds} seconds",
            f"{job.slide_seconds} seconds",
            job.grouping,
        )
        checkpoint = self._setting.fresh(f"spark-checkpoints/{name}")
        return (
            answers.writeStream.outputMode("append")
            .format("memory")
            .queryName(name)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )


def _answers(spark: SparkSession, name: str, number: int) -> pl.DataFrame:
    """What a query left in its table, which is then given up."""
    import polars as pl

    frame = pl.from_arrow(spark.table(name).toArrow())
    spark.catalog.dropTempView(name)
    assert isinstance(frame, pl.DataFrame)
    at = pl.col("at").dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return frame.select(at, pl.col("k").cast(pl.Int64) + KEYS_OF_A_QUERY * number, "m", "t", "n")
