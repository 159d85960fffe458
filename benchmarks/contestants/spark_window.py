"""Spark's own `window()` in Structured Streaming, on either of its state stores."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome, UnfinishedError, out_of_patience
from benchmarks.disk import size
from benchmarks.spark_settings import settings_of
from benchmarks.workload import COLUMNS
from windrow.spark.session import parallelism

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.job import SlidingJob
    from benchmarks.setting import Setting
    from windrow.spark.frames import DataFrame, SparkSession, StreamingQuery

_STORES = "org.apache.spark.sql.execution.streaming.state"
_STREAMING = "spark.sql.streaming"
_HDFS = {f"{_STREAMING}.stateStore.providerClass": f"{_STORES}.HDFSBackedStateStoreProvider"}
_ROCKSDB = {
    f"{_STREAMING}.stateStore.providerClass": f"{_STORES}.RocksDBStateStoreProvider",
    # both make it faster: commits write what changed, and writes do not look up whether a row is new
    f"{_STREAMING}.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    f"{_STREAMING}.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
STORES = {"hdfs": _HDFS, "rocksdb": _ROCKSDB}


class SparkWindow:
    """Timed from building the query to its end, with all answers on disk."""

    def __init__(self, setting: Setting, store: str) -> None:
        self._setting, self._store = setting, store

    @property
    def name(self) -> str:
        """Which store it is on."""
        return f"spark {self._store}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Those of the query; the session is Windrow's."""
        return {
            "master": str(self._setting.spark.sparkContext.master),
            "driver memory": self._setting.memory,
            "watermark": "0 seconds",
            "answers": "Parquet files, append mode",
            **store_settings(self._setting.spark, self._store),
        }

    def run(self, job: SlidingJob) -> Outcome:
        """Once over what is there; windows that end later stay open."""
        import polars as pl

        out, checkpoint = self._setting.fresh("spark-answers"), self._setting.fresh("spark-checkpoint")
        spark = self._setting.spark
        with settings_of(spark, store_settings(spark, self._store)):
            began = time.perf_counter()
            answers = aggregated(
                stream_of(spark, str(job.readings.folder), job.files_per_batch),
                f"{job.range_seconds} seconds",
                f"{job.slide_seconds} seconds",
            )
            query = (
                answers.writeStream.outputMode("append")
                .format("parquet")
                .option("path", str(out))
                .option("checkpointLocation", str(checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            finish([query], began, self._setting.patience)
            seconds = time.perf_counter() - began
        state_bytes = size(checkpoint / "state")
        return Outcome(seconds, pl.scan_parquet(out / "part-*.parquet"), {"state bytes": state_bytes})


def finish(queries: Sequence[StreamingQuery], began: float, patience: float) -> None:
    """Wait until all are done; stop all if they are not so many seconds after they began."""
    from pyspark.errors import StreamingQueryException

    try:
        for query in queries:
            left = began + patience - time.perf_counter()
            if not query.awaitTermination(max(round(left), 1)):
                raise out_of_patience(patience)
    except StreamingQueryException as error:
        raise UnfinishedError(f"failed after {time.perf_counter() - began:.0f} s") from error
    finally:
        for query in queries:
            query.stop()


def store_settings(spark: SparkSession, store: str) -> dict[str, str]:
    """What a query on this store runs with."""
    return {
        **STORES[store],
        "spark.sql.shuffle.partitions": str(parallelism(spark)),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


def stream_of(spark: SparkSession, folder: str, files_per_batch: int | None = None) -> DataFrame:
    """The readings as Spark streams them."""
    reader = spark.readStream.schema(COLUMNS)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.parquet(folder)


def aggregated(rows: DataFrame, length: str, slide: str, grouping: str = "k") -> DataFrame:
    """The sliding aggregates, with the columns that Windrow's answers have."""
    from pyspark.sql import functions as sql

    window = sql.window("ts", length, slide)
    grouped = rows.withWatermark("ts", "0 seconds").groupBy(window, sql.expr(grouping).alias("k"))
    figures = (sql.max("v").alias("m"), sql.sum("v").alias("t"), sql.count("*").alias("n"))
    return grouped.agg(*figures).select(sql.col("window.end").alias("at"), "k", "m", "t", "n")
