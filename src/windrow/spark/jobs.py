"""The two jobs of an epoch.

*Ingest* scans the new rows once (once per native grouping), aggregates what Spark can, and ends in files.
*Close* scans nothing: one task per shard moves state to the new clock. What comes back are reports.
Everything that is counted stands in the reports of tasks: what fails and is tried again counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import SparkContext, TaskContext
from pyspark.sql import DataFrame, SparkSession, functions as F

from windrow.algebra.functions.sql_text import backquoted
from windrow.errors import QueryError, SourceError
from windrow.execution import kept_rows, local, malformed_rows
from windrow.execution.bundle import Arrived, Few, plain_names
from windrow.execution.ingest import FeedTask, LettersTask, shed_sql
from windrow.execution.reports import DONE, SCHEMA, Closed, Ingested, contents
from windrow.physical import native_sql
from windrow.spark import failures, session
from windrow.spark.sources.fit import Fitting, in_jvm

if TYPE_CHECKING:
    from windrow.execution.close import CloseTask
    from windrow.execution.delta_file import WriteTarget
    from windrow.physical.native_sql import Feed


#: streams whose few rows are fetched at the same time
MOST_FETCHES = 4


class SparkJobs:
    """Runs the jobs of epochs on a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        #: the columns of streams, as they are fetched
        self._columns: dict[tuple[str, ...], Fitting] = {}
        self._workers = session.KeptWorkers(spark)
        #: for rows of several streams that are fetched at once
        self._threads = ThreadPoolExecutor(MOST_FETCHES, thread_name_prefix="windrow fetches")

    def ingest(self, batches: Sequence[Arrived], place: WriteTarget, now: int) -> list[Ingested]:
        """Run the ingest job: all batches together, but for those of few rows, which are taken in here."""
        tables = list(self._threads.map(self._few, batches) if len(batches) > 1 else map(self._few, batches))
        pairs = list(zip(batches, tables, strict=True))
        found = [local.ingest_here(batch, rows, place, now) for batch, rows in pairs if rows is not None]
        rest = [self._on_spark(batch) for batch, rows in pairs if rows is None]
        if not rest:
            return found
        self._workers.used()
        return [*found, *ingest(rest, place, now)]

    def _few(self, batch: Arrived) -> pa.Table | None:
        """The rows of a batch in one piece, if they are few; in the source's order if they are numbered."""
        frame = batch.frame
        if not isinstance(frame, pa.Table | Few):
            return None
        count = frame.num_rows if isinstance(frame, pa.Table) else frame.rows
        if not local.is_for_here(batch, count, native=bool(_feeds(batch))):
            return None
        _check_order(batch)
        rows = frame.table() if isinstance(frame, Few) else frame
        if rows is None:
            return self._fetched(batch, frame.frame()) if count <= local.SMALL_ROWS else None
        if batch.numbers_rows:
            rows = rows.sort_by([(name, "ascending") for name in batch.order_key])
        return rows.select(list(batch.stream.schema.names)).combine_chunks()

    def _fetched(self, batch: Arrived, rows: DataFrame) -> pa.Table:
        """Rows that Spark has read."""
        names = (*batch.stream.schema.names, *([malformed_rows.MALFORMED] if batch.hands_on else ()))
        if names not in self._columns:
            self._columns[names] = Fitting([F.col(backquoted(name)) for name in names])
        with _reading(batch.stream.name):
            frame = rows.coalesce(1)
            if batch.numbers_rows:
                frame = frame.sortWithinPartitions(*map(backquoted, batch.order_key))
            return self._columns[names].of(frame).toArrow().combine_chunks()

    def _on_spark(self, batch: Arrived) -> Arrived:
        """Rows that came to the driver are handed to Spark as they are."""
        if isinstance(batch.frame, Few):
            return replace(batch, frame=batch.frame.frame())
        if isinstance(batch.frame, pa.Table):
            return replace(batch, frame=self.spark.createDataFrame(batch.frame))
        return batch

    def close(self, tasks: Sequence[CloseTask]) -> list[Closed]:
        """Run the close job."""
        if local.is_small(tasks):
            return local.close_here(tasks)
        self._workers.used()
        return close(self.spark, tasks)

    def stay_ready(self) -> None:
        """Python workers stay where they were needed not long ago."""
        self._workers.keep()


def ingest(batches: Sequence[Arrived], place: WriteTarget, now: int) -> list[Ingested]:
    """Run the ingest job: all batches together. Where Spark has met malformed rows that it only counted, and
    a sink is to have them, another job fetches them: they are few, as a rule none."""
    if len(batches) == 1 and (alone := _panes_here(batches[0], place)) is not None:
        reports = [alone]
    else:
        job = reduce(DataFrame.union, (part for batch in batches for part in _parts(batch, place, now)))
        with _few_partitions(job, place.shards), _reading(*(batch.stream.name for batch in batches)):
            reports = list(contents(job.toArrow(), DONE))
    counted = {report.stream for report in reports if report.malformed and report.outbox is None}
    wanted = [(b, b.malformed_sink) for b in batches if b.stream.name in counted and b.malformed_sink]
    for batch, section in wanted:
        rows = batch.frame.where(f"`{malformed_rows.MALFORMED}` IS NOT NULL").select(malformed_rows.MALFORMED)
        job = rows.mapInArrow(LettersTask(batch.stream.name, section, place), SCHEMA)
        with _reading(batch.stream.name):
            reports += contents(job.toArrow(), DONE)
    return reports


def close(spark: SparkSession, tasks: Sequence[CloseTask]) -> list[Closed]:
    """Run the close job: one stage for each level of the deepest query."""
    shards = tasks[0].place.shards
    job = spark.range(0, shards, 1, shards).mapInArrow(tasks[0], SCHEMA)
    for task in tasks[1:]:
        stage = replace(task, shard=_partition)
        job = job.repartitionById(shards, F.col("target")).mapInArrow(stage, SCHEMA)
    with failures.job_failed("moving the windows on"):
        return list(contents(job.toArrow(), DONE))


def _partition() -> int:
    """The number of the partition that this task computes."""
    context: Any = TaskContext.get()
    return int(context.partitionId())


def _parts(batch: Arrived, place: WriteTarget, now: int) -> Iterator[DataFrame]:
    feeds = _feeds(batch)
    if not feeds:
        yield _rows(batch, place, now)
        return
    for number, feed in enumerate(feeds):
        task = FeedTask(batch.stream, feed, place, batch.queries, observes=number == 0)
        yield _aggregated(batch, feed).mapInArrow(task, SCHEMA)
    if batch.stream.keep is not None:
        yield _columns(batch, is_whole=False).mapInArrow(
            kept_rows.KeepTask(batch.stream, batch.known, now, place), SCHEMA
        )


def _panes_here(batch: Arrived, place: WriteTarget) -> Ingested | None:
    """The panes of a batch with one feed, put away without workers if they are few."""
    if (batch.panes or local.SMALL_FEED) >= local.SMALL_FEED or batch.stream.keep:
        return None
    feeds = _feeds(batch)
    if not feeds or len(feeds) > 1:
        return None
    panes = _aggregated(batch, feeds[0])
    with _few_partitions(panes, place.shards), _reading(batch.stream.name):
        table = panes.toArrow()
    return FeedTask(batch.stream, feeds[0], place, batch.queries).run(table.to_batches())


def _feeds(batch: Arrived) -> list[Feed] | None:
    """What Spark aggregates for the queries of a batch; None if they, or archives, need the rows, or if
    sources have a progress of their own, by which rows are judged one by one."""
    if batch.archived or batch.known.per is not None:
        return None
    programs = [query.program for query in batch.queries]
    known = [program for program in programs if program is not None]
    feeds = native_sql.feeds_of(known, batch.shared_states) if len(known) == len(programs) else None
    if feeds is None or len(feeds) <= 1:
        return feeds
    common = native_sql.together(feeds) if batch.together else None
    if common is not None:
        return [common]
    return feeds if len(feeds) <= native_sql.MOST_FEEDS else None


def _rows(batch: Arrived, place: WriteTarget, now: int) -> DataFrame:
    """The rows themselves; where queries ask for row numbers, all in one task and in the source's order."""
    _check_order(batch)
    frame = batch.frame
    if batch.numbers_rows:
        frame = frame.coalesce(1).sortWithinPartitions(*map(backquoted, batch.order_key))
    ingested: DataFrame = _columns(batch, frame).mapInArrow(local.rows_task(batch, place, now), SCHEMA)
    return ingested


def _columns(batch: Arrived, frame: DataFrame | None = None, *, is_whole: bool = True) -> DataFrame:
    """The columns of the stream, and no others, as workers are sent them; malformed rows come along if it is
    to be the whole batch."""
    plain = zip(batch.stream.schema.names, plain_names(batch.stream.schema), strict=True)
    rows = batch.frame if frame is None else frame
    sent = [F.col(backquoted(name)).alias(sent) for name, sent in plain]
    if not batch.hands_on:
        return rows.select(*sent)
    return (
        rows.select(*sent, malformed_rows.MALFORMED)
        if is_whole
        else rows.where(f"`{malformed_rows.MALFORMED}` IS NULL").select(*sent)
    )


def _check_order(batch: Arrived) -> None:
    name = batch.stream.name
    if batch.numbers_rows and not batch.order_key:
        raise QueryError(
            f"a query counts rows of stream `{name}` as they arrive, but its source has no order of arrival",
            code="no-order",
            hint="use Kafka, Parquet files, a generator or a table in memory; or count in the order of WATTR",
        )


def _aggregated(batch: Arrived, feed: Feed) -> DataFrame:
    """The native aggregation of a feed. Late rows are in no pane."""
    sheds, malformed = bool(batch.shed), malformed_rows.MALFORMED if batch.hands_on else ""
    what = native_sql.aggregation(feed, native_sql.moment_sql(batch.stream), sheds=sheds, malformed=malformed)
    promised = native_sql.promised_sql(batch.known.progress.progress)
    pane = native_sql.pane_sql(feed, promised, sheds=sheds, malformed=malformed)
    known: Any = batch.frame
    moments, keys, groups, first, rest = _prepared(what, SparkContext._jvm)
    rows = known._jdf.select(moments)
    if batch.shed:  # it is looked at once for each row, before anything else is computed from it
        rows = rows.select(in_jvm(["*", _named(native_sql.IS_SHED, shed_sql(batch.shed, native_sql.MOMENT))]))
    rows = rows.select(in_jvm(["*", _named(native_sql.PANE_OF_ROW, pane), *keys]))
    return DataFrame(rows.groupBy(groups).agg(first, rest), known.sparkSession)


@lru_cache(maxsize=64)
def _prepared(what: native_sql.Aggregation, jvm: object) -> Any:
    """The columns of an aggregation, made once for all batches: each is some calls of the JVM, and each batch
    only four. They are of one JVM: what was made in another is nothing here."""
    keys = [_named(name, text) for name, text in what.keys]
    groups = [_named(f"k{place}", f"`{name}`") for place, (name, _) in enumerate(what.keys)]
    first, *rest = (_named(name, text) for name, text in what.states)
    moments = in_jvm(["*", _named(native_sql.MOMENT, what.moment)])
    return (
        moments,
        keys,
        in_jvm([_named(native_sql.BEGIN, native_sql.PANE_OF_ROW), *groups]),
        first._jc,
        in_jvm(rest),
    )


def _named(name: str, text: str) -> Any:
    return F.expr(text).alias(name.strip("`"))


@contextmanager
def _few_partitions(frame: DataFrame, count: int) -> Iterator[None]:
    """As many partitions after a shuffle as there are shards, for this job only."""
    conf, name = frame.sparkSession.conf, "spark.sql.shuffle.partitions"
    before = conf.get(name)
    conf.set(name, str(count))
    try:
        yield
    finally:
        if before is not None:
            conf.set(name, before)


@contextmanager
def _reading(*streams: str) -> Iterator[None]:
    """Errors of a job tell which streams it has read; that of a source whose it is, if there is only one."""
    try:
        with failures.job_failed(f"reading {', '.join(f'stream `{name}`' for name in streams)}"):
            yield
    except SourceError as error:
        if len(streams) == 1:
            error.stream = error.stream or streams[0]
        raise
