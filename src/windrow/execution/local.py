"""Small work is done in this process, without a job: the same tasks, called instead of sent.

A Spark job with Python workers costs about 0.1 s before it does anything. Where an epoch's panes and the
state it touches are small, the driver has the answer sooner than a worker has the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from windrow.execution import bundle, delta_file, ingest, reports
from windrow.execution.close import CloseTask

#: state and new panes of at most this many bytes, of at most so many queries, are moved on here
SMALL_STATE, FEW_QUERIES = 8 << 20, 8
#: so many queries that are answered together are as much work as one by itself
TOGETHER = 128
#: so many values (rows by columns) of a batch are taken in here if Spark could aggregate them, and so many
#: rows if it could not
SMALL_NATIVE, SMALL_ROWS = 8_000_000, 50_000
#: so many pane states of a batch are fetched and put away here
SMALL_FEED = 100_000


class HereJobs:
    """Runs everything in this process, on Arrow tables: the whole engine, without Spark.

    `cut` says how the rows of a micro-batch lie in partitions, each of which has a task of its own; without
    it, they lie in one. As on Spark, rows that are numbered as they come stay together.
    """

    def __init__(self, cut: Callable[[pa.Table], Sequence[pa.Table]] | None = None) -> None:
        self._cut = cut

    def ingest(
        self, batches: Sequence[bundle.Arrived], place: delta_file.WriteTarget, now: int
    ) -> list[reports.Ingested]:
        """One partition after the other."""
        pieces = [(batch, rows) for batch in batches for rows in self._partitions(batch)]
        return [ingest_here(batch, rows, place, now) for batch, rows in pieces]

    def _partitions(self, batch: bundle.Arrived) -> Sequence[pa.Table]:
        rows = batch.frame.table() if isinstance(batch.frame, bundle.Few) else batch.frame
        return [rows] if self._cut is None or batch.numbers_rows else self._cut(rows)

    def close(self, tasks: Sequence[CloseTask]) -> list[reports.Closed]:
        """One shard after the other."""
        return close_here(tasks)

    def stay_ready(self) -> None:
        """There is nobody who would leave."""


def rows_task(batch: bundle.Arrived, place: delta_file.WriteTarget, now: int) -> ingest.RowsTask:
    """The task that takes the rows of a batch; it is sent without them."""
    return ingest.RowsTask(replace(batch, frame=None), now, place)


def ingest_here(
    batch: bundle.Arrived, rows: pa.Table, place: delta_file.WriteTarget, now: int
) -> reports.Ingested:
    """The ingest job of one partition."""
    return rows_task(batch, place, now).run(rows.to_batches())


def is_for_here(batch: bundle.Arrived, rows: int, *, native: bool) -> bool:
    """Whether the rows of a batch are few, for few queries, and meet only Windrow's own code. Where Spark
    could aggregate them, so can polars, and there may be more of them."""
    ours = not any(query.aggregates for query in batch.queries)
    few = rows * len(batch.stream.schema.names) <= SMALL_NATIVE if native else rows <= SMALL_ROWS
    return few and ours and len(batch.queries) + len(batch.shared_states) <= FEW_QUERIES


def close_here(tasks: Sequence[CloseTask]) -> list[reports.Closed]:
    """The close job, one shard after the other, one stage after the other."""
    shards = tasks[0].place.shards
    rows: list[pa.RecordBatch] = []
    for task in tasks:
        received = _by_target(rows, shards)
        rows = []
        for shard in range(shards):
            mine = received[shard] if task.stage else [pa.RecordBatch.from_pydict({"id": [shard]})]
            turn = replace(task, shard=partial(int, shard)) if task.stage else task
            rows += list(turn(mine))
    return [report for row in rows for report in reports.contents(row, reports.DONE)]


def _by_target(rows: Sequence[pa.RecordBatch], shards: int) -> list[list[pa.RecordBatch]]:
    found: list[list[pa.RecordBatch]] = [[] for _ in range(shards)]
    for row in rows:
        found[row.column("target")[0].as_py() % shards].append(row)
    return found


def is_small(tasks: Sequence[CloseTask]) -> bool:
    """Whether the work of a close job is little, and only Windrow's own code."""
    work, shared = tasks[0].work, tasks[0].shared
    deltas = {ref.name: ref.bytes for each in work for ref in each.deltas}
    deltas |= {ref.name: ref.bytes for each in shared for ref in each.deltas}
    state = {ref.name: ref.live_bytes for refs in tasks[0].files.values() for ref in refs}
    together = sum(-(-len(each.turn.askers) // TOGETHER) for each in shared)
    ours = len(work) + together <= FEW_QUERIES and not any(each.query.aggregates for each in work)
    return ours and sum(deltas.values()) + sum(state.values()) <= SMALL_STATE
