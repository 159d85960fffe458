"""Two links joined on the source, for one protocol: Windrow, and Spark's own join of streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.contestants.spark_window import SparkWindow, store_settings
from benchmarks.contestants.windrow import Windrow
from benchmarks.spark_settings import settings_of
from benchmarks.studies.links_on_disk import LINK_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from benchmarks.studies.links_on_disk import LinksOnDisk

_QUERY = (
    "SELECT ISTREAM(link1.src AS src, link1.dst AS one, link2.dst AS other)"
    " FROM link1 [RANGE {0} SECONDS], link2 [RANGE {0} SECONDS]"
    " WHERE link1.src = link2.src AND link1.protocol = '{1}' AND link2.protocol = '{1}'"
)


class WindrowLinks(Windrow):
    """Timed from opening the engine to closing it, with all answers on disk."""

    def join(self, log: LinksOnDisk, seconds: int, protocol: str) -> Outcome:
        """Once over what is there."""
        import polars as pl

        import windrow as wr

        out, state = self._setting.fresh("windrow-answers"), self._setting.fresh("windrow-state")
        spark = self._setting.spark
        began = time.perf_counter()
        with wr.connect(spark, state=state) as engine:
            for name, folder in log.folders.items():
                source = f"files://{folder}/*.parquet?files_per_batch=1"
                engine.sql(f"CREATE STREAM {name} ({LINK_COLUMNS}) WATTR ts ORDERED FROM '{source}'")
            engine.query("q", _QUERY.format(seconds, protocol), sink=f"files://{out}")
            engine.run(once=True)
        took = time.perf_counter() - began
        return Outcome(took, _comparable(pl.scan_parquet(out / "*.parquet"), log))


class SparkLinks(SparkWindow):
    """An inner join whose rows are less than so many seconds apart, in append mode."""

    def join(self, log: LinksOnDisk, seconds: int, protocol: str) -> Outcome:
        """Once over what is there."""
        import polars as pl
        from pyspark.sql import functions as sql

        out, checkpoint = self._setting.fresh("spark-answers"), self._setting.fresh("spark-checkpoint")
        spark = self._setting.spark
        with settings_of(spark, store_settings(spark, self._store)):
            began = time.perf_counter()
            a, b = (
                spark.readStream.schema(LINK_COLUMNS)
                .option("maxFilesPerTrigger", 1)
                .parquet(str(folder))
                .where(sql.col("protocol") == protocol)
                .withWatermark("ts", "0 seconds")
                .alias(alias)
                for alias, folder in zip("ab", log.folders.values(), strict=True)
            )
            apart = sql.expr(f"INTERVAL {seconds} SECONDS")
            near = (sql.col("b.ts") > sql.col("a.ts") - apart) & (sql.col("a.ts") > sql.col("b.ts") - apart)
            both = a.join(b, (sql.col("a.src") == sql.col("b.src")) & near).select(
                sql.greatest("a.ts", "b.ts").alias("at"),
                "a.src",
                sql.col("a.dst").alias("one"),
                sql.col("b.dst").alias("other"),
            )
            writer = both.writeStream.outputMode("append").format("parquet").option("path", str(out))
            query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
            query.awaitTermination()
            took = time.perf_counter() - began
        return Outcome(took, _comparable(pl.scan_parquet(out / "part-*.parquet"), log))


def _comparable(answers: pl.LazyFrame, log: LinksOnDisk) -> pl.LazyFrame:
    """Under the names that are compared; from the end of a link on, more rows could come: nobody is sure."""
    import polars as pl

    sure = pl.col("at").cast(pl.Datetime("us")).cast(pl.Int64) < log.end
    columns = [pl.col("src").alias("k"), pl.col("one").alias("m"), pl.col("other").alias("t")]
    return answers.filter(sure).select("at", *columns, pl.lit(1).alias("n"))
