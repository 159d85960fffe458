"""Runs a query, or several, on Spark, batch by batch, on the whole engine: files, commits and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import polars as pl
import pyarrow as pa

from windrow.algebra import Emit, Scan, TableScan, catalog, expressions, types
from windrow.algebra.values import Change, canonical_rows, instant, not_final
from windrow.engine import engine, tables
from windrow.engine.rescale import rescale
from windrow.errors import DataError, nearest
from windrow.execution.local import HereJobs
from windrow.kernels.columnar.columns import frame_from_arrow, frame_of, published, rows_of, rows_schema
from windrow.kernels.intake import Intake
from windrow.language.catalog import StandingQuery
from windrow.physical.units import SlidingUnit
from windrow.sinks import Delivery, Sink
from windrow.spark import jobs, session, sources
from windrow.spark.sources.source import Offsets
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore
from windrow.windows.domain import INFINITY

Values = tuple[Any, ...]
QUERY = "query"


class SparkExecutor:
    """One standing query over pushed rows. `restart` begins anew from what is on disk.

    The same engine may have others `beside` it, by their names, with which it shares what can be shared.

    Without `spark` the engine's tasks run in this process: everything but Spark itself. `cut` says then how
    the rows of each micro-batch lie in partitions.
    """

    def __init__(
        self,
        emit: Emit,
        folder: Path | None = None,
        *,
        spark: bool = True,
        shards: int = 2,
        cut: Callable[[pa.Table], Sequence[pa.Table]] | None = None,
        beside: Mapping[str, Emit] | None = None,
    ) -> None:
        self.emit = emit
        self._jobs = jobs.SparkJobs(session.prepared(session.start_session())) if spark else HereJobs(cut)
        self._shards = shards
        self.now = 0
        self._folder = folder or Path(mkdtemp(prefix="windrow-"))
        if folder is None:
            finalize(self, rmtree, self._folder, ignore_errors=True)
        self._queries = {QUERY: emit, **(beside or {})}
        self._answers = {name: CollectedAnswers(each) for name, each in self._queries.items()}
        self._late: dict[str, list[Values]] = {}
        self._late_commits: dict[str, set[int]] = {}
        self._start()

    def _start(self) -> None:
        log = CommitLog.open(LocalStore(self._folder))
        self.engine = engine.Engine(self._jobs, log, shards=self._shards, now=lambda: self.now, by_group=True)
        nodes = [node for emit in self._queries.values() for node in emit.walk()]
        for stream in {node.stream.name: node.stream for node in nodes if isinstance(node, Scan)}.values():
            keep = partial(self._keep_late, stream)
            commits = self._late_commits.setdefault(stream.name, set())
            self.engine.add_stream(stream, _Collected(keep, commits))
        for table in {node.table.name: node.table for node in nodes if isinstance(node, TableScan)}.values():
            self.engine.add_table(table)
        for name, emit in self._queries.items():
            self.engine.add_query(StandingQuery(name, emit), self._answers[name])
        self.engine.commit()
        self.engine.deliver()

    def restart(self, shards: int | None = None) -> None:
        """The process ends without warning, and another one begins, perhaps with another number of shards."""
        self.engine.log.close()
        if shards is not None:
            with CommitLog.open(LocalStore(self._folder)) as log:
                rescale(log, shards)
        self._start()

    def close(self) -> None:
        """The end. A folder that was not given is removed with this object."""
        self.engine.close()

    # Events.

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        self.push_all({stream: rows})

    def push_all(self, batches: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        arrivals = []
        for stream, rows in batches.items():
            self._check(stream)
            schema = self.engine.streams[stream].stream.schema
            frame = frame_of(schema, canonical_rows(schema, rows, f"stream `{stream}`"))
            self._count_late(stream, frame)
            table = published(frame.to_arrow(), rows_schema(schema))
            arrivals.append(engine.Arrival(stream, self._framed(stream, table)))
        self.engine.epoch(arrivals)

    def _count_late(self, stream: str, frame: pl.DataFrame) -> None:
        """The engine only counts rows it drops; here they are kept, as other executors do."""
        record = self.engine.streams[stream]
        if record.stream.late is catalog.Late.DROP and frame.height:
            late = Intake(record.stream).judge(record.known, frame, self.now).late
            self._late.setdefault(stream, []).extend(rows_of(late, record.stream.schema))

    def _framed(self, stream: str, table: pa.Table) -> Any:
        if isinstance(self._jobs, HereJobs):
            return table
        record = self.engine.streams[stream]
        source = sources.open_data(self._jobs.spark, record.stream, table)
        self.engine.streams[stream] = replace(record, source=source)
        return source.frame({}, Offsets({}))

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream (or changes of a table) below `progress`."""
        if name not in self.engine.tables:
            self._check(name)
        self.engine.epoch(promises=[engine.WatermarkAdvance(name, progress, where)])

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """A table changes at an instant, which must not lie in what is already answered."""
        if table not in self.engine.tables:
            raise DataError(f"no table `{table}` in this query", hint=nearest(table, self.engine.tables))
        schema, where = self.engine.tables[table].table.schema, f"table `{table}`"
        new, gone = canonical_rows(schema, insert, where), canonical_rows(schema, delete, where)
        self.engine.change([tables.TableUpdate(table, new, gone, at)])

    def advance(self, micros: int) -> None:
        if micros < 0:
            raise DataError(f"time does not go back by {-micros} microseconds", code="bad-value")
        self.now += micros
        self.engine.epoch()

    def finish(self) -> None:
        self.engine.epoch(seals=[*self.engine.streams, *self.engine.tables])

    # Answers.

    def take(self, query: str = QUERY) -> list[Change]:
        record = self.engine.queries[query]
        if record.error is not None:
            raise engine.error_of(record)
        return self._answers[query].take()

    def relation(self, at: int) -> Counter[Values]:
        unit = self.engine.queries[QUERY].bundle.unit
        known = {name: self.engine.streams[name].known for name in unit.streams}
        clock = unit.progress(known, {name: self.engine.tables[name].progress for name in unit.tables})
        if at > clock:
            raise not_final(at, clock)
        if not isinstance(unit, SlidingUnit):
            raise DataError("the engine keeps answers, not relations", hint="use the executor `kernels`")
        cut = unit.program.query.cut
        end = cut.grid.end(cut.grid.last_ending(at))
        answered = self._answers[QUERY].by_instant
        if cut.range is None and clock == INFINITY and answered:
            end = min(end, max(answered))
        return Counter(answered.get(end, []))

    def late(self, stream: str) -> list[Values]:
        self._check(stream)
        return list(self._late.get(stream, []))

    def _check(self, stream: str) -> None:
        if stream not in self.engine.streams:
            raise DataError(f"no stream `{stream}` in this query", hint=nearest(stream, self.engine.streams))

    def _keep_late(self, stream: catalog.Stream, delivery: Delivery) -> None:
        for table in delivery.pieces():
            rows = rows_of(frame_from_arrow(table, stream.schema), stream.schema)
            self._late.setdefault(stream.name, []).extend(rows)


class _Collected(Sink):
    """A sink that hands everything to a function of this process, each commit once."""

    guarantee = "exactly once while this process runs"

    def __init__(self, keep: Callable[[Delivery], None], delivered: set[int]) -> None:
        self._keep, self._delivered = keep, delivered

    def deliver(self, delivery: Delivery) -> None:
        if delivery.commit not in self._delivered:
            self._keep(delivery)
            self._delivered.add(delivery.commit)


class CollectedAnswers(_Collected):
    """All that one query answers."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(self._add, set())
        self._emit = emit
        self._ready: list[Change] = []
        self.by_instant: dict[int, list[Values]] = {}

    def take(self) -> list[Change]:
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda change: change.place)

    def _add(self, delivery: Delivery) -> None:
        emit, domain = self._emit, self._emit.leaves[0].domain
        op = (expressions.Field("op", types.STRING),) if emit.emits_deletions else ()
        at = expressions.Schema((expressions.Field("at", catalog.instant_type(domain)), *op))
        for table in delivery.pieces():
            known = frame_from_arrow(table.select(at.names), at)
            answers = table.select(range(len(at), table.num_columns)).rename_columns(emit.schema.names)
            rows = rows_of(frame_from_arrow(answers, emit.schema), emit.schema)
            ops = known["op"].to_list() if op else ["+"] * len(rows)
            for end, sign, row in zip(known["at"].to_list(), ops, rows, strict=True):
                moment = instant(end, domain)
                self.by_instant.setdefault(moment, []).append(row)
                self._ready.append(Change(sign, row, moment))
