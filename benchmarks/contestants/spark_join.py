"""Spark's own join of two streams, over windows of the same length."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.spark_window import SparkWindow, store_settings, stream_of
from benchmarks.contestants.windrow_operators import comparable
from benchmarks.spark_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.workload import Readings


class SparkJoin(SparkWindow):
    """An inner join whose rows are less than so many seconds apart, in append mode."""

    def join(self, streams: Sequence[Readings], seconds: int) -> Outcome:
        """Once over what is there."""
        import polars as pl
        from pyspark.sql import functions as sql

        out, checkpoint = self._setting.fresh("spark-answers"), self._setting.fresh("spark-checkpoint")
        spark = self._setting.spark
        with settings_of(spark, store_settings(spark, self._store)):
            began = time.perf_counter()
            s, t = (
                stream_of(spark, str(rows.folder), 1).withWatermark("ts", "0 seconds").alias(name)
                for name, rows in zip("st", streams, strict=True)
            )
            apart = sql.expr(f"INTERVAL {seconds} SECONDS")
            near = (sql.col("t.ts") > sql.col("s.ts") - apart) & (sql.col("s.ts") > sql.col("t.ts") - apart)
            later = sql.greatest("s.ts", "t.ts").alias("at")
            both = s.join(t, (sql.col("s.k") == sql.col("t.k")) & near).select(
                later, "s.ts", "s.k", "s.v", sql.col("t.ts").alias("other"), sql.col("t.v").alias("w")
            )
            writer = both.writeStream.outputMode("append").format("parquet").option("path", str(out))
            query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            query.awaitTermination()
            took = time.perf_counter() - began
        answers = pl.scan_parquet(out / "part-*.parquet")
        # at the last instant more rows could come: nobody can be sure of its answers
        sure = answers.filter(pl.col("at").cast(pl.Datetime("us")).cast(pl.Int64) < streams[0].end)
        return Outcome(took, comparable(sure, "join"))
