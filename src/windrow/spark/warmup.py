"""A new Spark does everything for the first time: it loads classes, and its Python workers load modules.

A small job that needs the same of both is run beside whatever comes next, so that the first real one finds
them there. It is nobody's business how it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

if TYPE_CHECKING:
    from windrow.spark.frames import SparkSession


def warm(spark: SparkSession) -> threading.Thread:
    """Begin to warm up, in the background; an engine need not wait for it."""
    thread = threading.Thread(target=_run, args=(spark,), name="windrow warming", daemon=True)
    thread.start()
    return thread


def _run(spark: SparkSession) -> None:
    with suppress(Exception):  # Spark may be stopped meanwhile
        spark.sparkContext.setJobGroup("windrow warming", "loading what the first jobs need")
        rows = spark.range(0, 64, 1, 2).select((F.col("id") % 8).alias("key"), F.col("id").alias("value"))
        panes = rows.groupBy("key").agg(F.sum("value").alias("value"), F.max("value").alias("most"))
        panes.mapInArrow(_loaded, "key long").toArrow()


def _loaded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the tasks of an epoch need is in this worker from now on."""
    import windrow.execution.close
    import windrow.execution.ingest  # noqa: F401  to have it loaded

    for batch in batches:
        yield batch.select(["key"])
