"""Spark's own join of two streams, over windows of the same length, or over all rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.spark_window import SparkWindow, finish, store_settings, stream_of
from benchmarks.contestants.windrow_operators import ASKED_OF_OTHERS, HOT, comparable
from benchmarks.spark_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.workload import Readings


class SparkJoin(SparkWindow):
    """Rows with equal keys that are less than so many seconds apart, in append mode."""

    def join(self, name: str, streams: Sequence[Readings], seconds: int) -> Outcome:
        """Once over what is there."""
        import polars as pl
        from pyspark.sql import functions as sql

        out, checkpoint = self._setting.fresh("spark-answers"), self._setting.fresh("spark-checkpoint")
        spark, windowed = self._setting.spark, "all rows" not in name
        with settings_of(spark, store_settings(spark, self._store)):
            began = time.perf_counter()
            s, t = (stream_of(spark, str(rows.folder), 1) for rows in streams)
            if windowed:
                s, t = (each.withWatermark("ts", "0 seconds") for each in (s, t))
            joined = s.alias("s").join(
                t.alias("t"), sql.expr(condition(name, seconds)), ASKED_OF_OTHERS[name]
            )
            if name.startswith("not exists"):
                joined = joined.where("t.k IS NULL")
            columns = ("greatest(s.ts, t.ts) AS at", "s.ts AS ts", "s.k AS k", "s.v AS v", "t.v AS w")
            writer = joined.selectExpr(*columns).writeStream.outputMode("append").format("parquet")
            writer = writer.option("path", str(out)).option("checkpointLocation", str(checkpoint))
            finish([writer.trigger(availableNow=True).start()], began, self._setting.patience)
            took = time.perf_counter() - began
        answers = pl.scan_parquet(out / "part-*.parquet")
        return Outcome(took, comparable(answers, name, seconds, streams[0].end))


def condition(name: str, seconds: int) -> str:
    """Of a join of s and t, as Spark and Flink both read it.

    >>> condition("join", 65).partition(" AND s.ts")[0]
    "s.k = t.k AND t.ts > s.ts - INTERVAL '0 00:01:05' DAY TO SECOND"
    >>> condition("join of all rows", 5)
    's.k = t.k'
    """
    key = HOT if name.endswith("skewed") else "s.k"
    if "all rows" in name:
        return f"{key} = t.k"
    days, rest = divmod(seconds, 86_400)
    apart = f"INTERVAL '{days} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}' DAY TO SECOND"
    return f"{key} = t.k AND t.ts > s.ts - {apart} AND s.ts > t.ts - {apart}"
