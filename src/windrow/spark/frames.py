"""Frames of Spark: kept sub-windows, and the rows of them that are in a window, all of it native.

A frame that is staged was read: its rows stay with Spark while it is held, whatever becomes of the files.
Spark's own types are here for those above that name them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import PurePath
from secrets import token_hex

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame as DataFrame, SparkSession as SparkSession, Window, functions as F
from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery

from windrow.algebra.catalog import Stream
from windrow.algebra.functions.sql_text import backquoted
from windrow.execution.bundle import Few
from windrow.physical.native_sql import moment_sql
from windrow.spark.failures import job_failed
from windrow.state.names import RESERVED

_FILE, _MOMENT, _RANK = (f"{RESERVED}{word}" for word in ("file", "moment", "rank"))


def row_count(rows: DataFrame | Few | pa.Table) -> int:
    """How many rows a source has given."""
    if isinstance(rows, pa.Table):
        return len(rows)
    return (rows.frame() if isinstance(rows, Few) else rows).count()


def rows_between(rows: DataFrame | Few | pa.Table, first: int, last: int) -> DataFrame | pa.Table:
    """The rows of a source from one number up to, not including, another: in the order in which one task
    reads them, which is that of a file."""
    if isinstance(rows, pa.Table):
        return rows.slice(first, last - first)
    numbered = (rows.frame() if isinstance(rows, Few) else rows).coalesce(1)
    numbered = numbered.withColumn(_RANK, F.monotonically_increasing_id())
    return numbered.where((F.col(_RANK) >= first) & (F.col(_RANK) < last)).drop(_RANK)


@dataclass(frozen=True)
class KeptRange:
    """Rows of files with first <= attribute <= last, and of these the last `rows` of each partition."""

    files: Sequence[str]
    first: int | None
    last: int
    rows: int | None = None
    partition_by: tuple[str, ...] = ()


class Staging:
    """Reads sub-windows of streams and holds their rows, to the end of the block."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._held = ExitStack()
        self._frames: dict[str, list[DataFrame]] = {}
        #: what was read, by stream
        self.files: dict[str, set[str]] = {}

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    def read(self, stream: Stream, files: Sequence[str], *, hold: bool) -> None:
        """Read files that were not read yet; if they are held, all of them before this returns."""
        if not files:
            return
        name = F.col("_metadata.file_name").alias(_FILE)
        moment = F.expr(moment_sql(stream)).alias(_MOMENT)
        columns = [F.col(backquoted(column)) for column in stream.schema.names]
        frame = self._spark.read.parquet(*files).select(*columns, name, moment)
        if hold:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
            self._held.callback(frame.unpersist)
            with job_failed(f"reading stream `{stream.name}`"):
                frame.count()
        self._frames.setdefault(stream.name, []).append(frame)
        self.files.setdefault(stream.name, set()).update(files)

    def rows(self, stream: Stream, chosen: KeptRange) -> DataFrame:
        """The rows that are in a window."""
        frame = reduce(DataFrame.unionByName, self._frames[stream.name])
        names = [PurePath(file).name for file in chosen.files]
        inside = F.col(_FILE).isin(names) & (F.col(_MOMENT) <= chosen.last)
        if chosen.first is not None:
            inside &= F.col(_MOMENT) >= chosen.first
        frame = frame.filter(inside)
        columns = [F.col(backquoted(column)) for column in stream.schema.names]
        if chosen.rows is not None:
            # the order of rows is by attribute, then by all columns, NULL first and NaN last, as Spark sorts
            order = [F.col(_MOMENT).desc(), *(column.desc() for column in columns)]
            if chosen.partition_by:
                keys = [F.col(backquoted(name)) for name in chosen.partition_by]
                rank = F.row_number().over(Window.partitionBy(*keys).orderBy(*order))
                frame = frame.withColumn(_RANK, rank).filter(F.col(_RANK) <= chosen.rows)
            else:
                frame = frame.orderBy(*order).limit(chosen.rows)
        return frame.select(*columns)


@contextmanager
def own_jobs(spark: SparkSession, what: str) -> Iterator[Callable[[], None]]:
    """Jobs started in the block, by this thread, are a group; what is given cancels them."""
    context, group = spark.sparkContext, f"windrow-{token_hex(8)}"
    before = {name: context.getLocalProperty(name) for name in _GROUP}
    context.setJobGroup(group, what, interruptOnCancel=True)
    try:
        yield lambda: context.cancelJobGroup(group)
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
