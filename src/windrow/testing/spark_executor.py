"""Runs one query on Spark, micro-batch by micro-batch, on the whole engine: files, commits and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from windrow.algebra.changes import Change
from windrow.algebra.schema import Field, Schema
from windrow.algebra.values import canonical_rows
from windrow.engine.core import Arrival, Engine, Promise, error_of
from windrow.engine.published import published, rows_schema
from windrow.errors import DataError, nearest
from windrow.kernels.columns import frame_from_arrow, frame_of, rows_of
from windrow.language.catalog import StandingQuery
from windrow.spark.here import HereJobs
from windrow.spark.jobs import SparkJobs
from windrow.spark.session import local_session, prepared
from windrow.spark.sinks import Delivery
from windrow.spark.sources import open_data
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.algebra.plan import Emit

Values = tuple[Any, ...]
QUERY = "query"


class SparkExecutor:
    """One standing query over pushed rows. `restart` begins anew from what is on disk.

    Without `spark` the engine's tasks run in this process: everything but Spark itself.
    """

    def __init__(self, emit: Emit, folder: Path | None = None, *, spark: bool = True) -> None:
        self.emit = emit
        self._jobs = SparkJobs(prepared(local_session())) if spark else HereJobs()
        self.now = 0
        self._temporary = None if folder else TemporaryDirectory(prefix="windrow-", ignore_cleanup_errors=True)
        self._folder = folder or Path(self._temporary.name if self._temporary else "")
        self._answered: dict[int, list[Values]] = {}
        self._ready: list[Change] = []
        self._late: list[Values] = []
        self._commits: set[int] = set()
        self._late_commits: set[int] = set()
        self._start()

    def _start(self) -> None:
        log = CommitLog.open(LocalStore(self._folder))
        self.engine = Engine(self._jobs, log, shards=2, now=lambda: self.now, by_group=True)
        record = None
        for node in self.emit.walk():
            stream = getattr(node, "stream", None)
            if stream is not None:
                record = self.engine.add_stream(stream, _Collected(self._keep_late, self._late_commits))
        assert record is not None
        self.stream = record.stream
        self.engine.add_query(StandingQuery(QUERY, self.emit), _Collected(self._keep, self._commits))
        self.engine.commit()
        self.engine.deliver()

    def restart(self) -> None:
        """The process ends without warning, and another one begins."""
        self.engine.log.close()
        self._start()

    def close(self) -> None:
        """The end: nothing is left on the disk."""
        self.engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    # Events.

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        self._check(stream)
        schema = self.stream.schema
        frame = frame_of(schema, canonical_rows(schema, rows, f"stream `{stream}`"))
        table = published(frame.to_arrow(), rows_schema(schema))
        self.engine.epoch([Arrival(stream, self._framed(table))])

    def _framed(self, table: pa.Table) -> Any:
        if isinstance(self._jobs, HereJobs):
            return table
        source = open_data(self._jobs.spark, self.stream, table)
        self.engine.streams[self.stream.name] = replace(self.engine.streams[self.stream.name], source=source)
        return source.frame

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of the stream below `progress`."""
        self._check(name)
        self.engine.epoch(promises=[Promise(name, progress, where)])

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """There are no tables in queries of this class."""
        raise DataError(f"no table `{table}` in this query")

    def advance(self, micros: int) -> None:
        """Let wall-clock time pass."""
        if micros < 0:
            raise DataError(f"time does not go back by {-micros} microseconds", code="bad-value")
        self.now += micros
        self.engine.epoch()

    def finish(self) -> None:
        """The end of all inputs."""
        self.engine.epoch(seals=[self.stream.name])

    # Answers.

    def take(self) -> list[Change]:
        """What became final since the last time, in order of delivery."""
        record = self.engine.queries[QUERY]
        if record.error is not None:
            raise error_of(record)
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda change: change.place)

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        clock = self.engine.streams[self.stream.name].known.progress_on(
            self.stream, self.engine.queries[QUERY].bundle.program.query.attribute
        )
        if at > clock:
            raise DataError(
                f"the answer at {at} is not final yet: the clock is at {clock}",
                code="not-final",
                hint="push, punctuate() or finish() first",
            )
        cut = self.engine.queries[QUERY].bundle.program.query.cut
        end = cut.grid.end(cut.grid.last_ending(at))
        if cut.range is None and clock == INFINITY and self._answered:
            end = min(end, max(self._answered))
        return Counter(self._answered.get(end, []))

    def late(self, stream: str) -> list[Values]:
        """The rows that came too late and went to a sink; dropped ones are only counted."""
        self._check(stream)
        return list(self._late)

    def _check(self, stream: str) -> None:
        if stream != self.stream.name:
            raise DataError(f"no stream `{stream}` in this query", hint=nearest(stream, [self.stream.name]))

    def _keep(self, delivery: Delivery) -> None:
        at = Schema((Field("at", _instants(self.emit)), *self.emit.schema.fields))
        for table in delivery.pieces():
            frame = frame_from_arrow(table.rename_columns([field.name for field in at]), at)
            ends = frame["at"].to_list()
            for end, row in zip(ends, rows_of(frame.drop("at"), self.emit.schema), strict=True):
                self._answered.setdefault(end, []).append(row)
                self._ready.append(Change("+", row, end))

    def _keep_late(self, delivery: Delivery) -> None:
        for table in delivery.pieces():
            self._late += rows_of(frame_from_arrow(table, self.stream.schema), self.stream.schema)


class _Collected:
    """A sink that hands everything to a function of this process, each commit once."""

    guarantee = "exactly once while this process runs"

    def __init__(self, keep: Callable[[Delivery], None], delivered: set[int]) -> None:
        self._keep, self._delivered = keep, delivered

    def deliver(self, delivery: Delivery) -> None:
        if delivery.commit not in self._delivered:
            self._keep(delivery)
            self._delivered.add(delivery.commit)

    def close(self) -> None:
        pass


def _instants(emit: Emit) -> Any:
    from windrow.algebra.types import BIGINT, TIMESTAMP
    from windrow.windows.domain import Domain

    return TIMESTAMP if emit.leaves[0].domain is Domain.TIME else BIGINT
