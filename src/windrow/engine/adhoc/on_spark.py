"""A SELECT over more rows than one process should hold, on Spark.

Spark finds the rows that are in the windows. What is asked of them is a standing query of its own, in an
engine of its own, among the temporary files of the state: one epoch takes all rows and closes the one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from windrow.algebra.plan import Scan, Window
from windrow.archive.snapshot import LATEST, IsolationPolicy
from windrow.engine.adhoc import access_paths, select
from windrow.engine.adhoc.question import Answer, Question, Situation
from windrow.engine.adhoc.snapshot import END, QuestionSnapshot, WindowLeaf, needs_of
from windrow.engine.engine import Arrival, Engine, WatermarkAdvance, error_of
from windrow.engine.output.outbox import published_schema
from windrow.kernels.columnar.columns import frame_from_arrow
from windrow.language.catalog import StandingQuery
from windrow.sinks import MemorySink
from windrow.spark import frames, jobs
from windrow.spark.session import parallelism
from windrow.state.log import CommitLog
from windrow.state.names import TEMPORARY
from windrow.state.store import LocalStore
from windrow.windows import domain, lifetime, rows, session

#: with less than this to read, Spark's jobs would take longer than the reading
LARGE = 32 << 20
_QUERY = "select"
#: files whose checksums are compared at the same time
_AT_ONCE = 4


@dataclass(frozen=True)
class OnSpark:
    """Answers questions on a session, if they are large and Spark can do all of it."""

    spark: frames.SparkSession
    log: CommitLog
    folder: Path
    turns: select.Turns
    large: int = LARGE

    def __call__(
        self, question: Question, watch: select.SelectWatch, policy: IsolationPolicy
    ) -> Answer | None:
        """The answer; None if it is better found here."""
        first = self.log.last
        if not can_run(question.snapshot) or _bytes(question.at(first)) < self.large:
            return None
        session = self.spark.newSession()
        turn = self.turns.turn(question.once.priority, watch.check)
        with (
            turn,
            frames.Staging(session) as staging,
            frames.own_jobs(session, "SELECT") as cancel,
            watch.stopping(cancel),
        ):
            situation = self._stage(question.at(first), staging, policy, watch)
            table = self._evaluated(situation, staging, session)
        names = question.snapshot.plan.schema
        found = frame_from_arrow(table.drop_columns(["at"]).rename_columns(list(names.names)), names)
        assert situation.present is not None
        return Answer(situation.manifest.number, situation.present.shown, found)

    def _stage(
        self,
        situation: Situation,
        staging: frames.Staging,
        policy: IsolationPolicy,
        watch: select.SelectWatch,
    ) -> Situation:
        """Read what is needed; for the latest window, until nothing newer is there."""
        is_latest = policy.level is LATEST
        while True:
            new = False
            for stream, files in _files(situation).items():
                missing = sorted(files.keys() - staging.files.get(stream, set()))
                watch.has_read(sum(files[name].bytes for name in missing))
                _check([files[name] for name in missing])
                staging.read(situation.streams[stream].stream, missing, hold=is_latest)
                new = new or bool(missing)
            watch.check()
            if not is_latest or (not new and self.log.last.number == situation.manifest.number):
                return situation
            situation = situation.question.at(self.log.last)

    def _evaluated(
        self, situation: Situation, staging: frames.Staging, session: frames.SparkSession
    ) -> pa.Table:
        snapshot = situation.question.snapshot
        rows = {leaf.name: _rows(situation, leaf, staging) for leaf in snapshot.leaves}
        place = self.folder / TEMPORARY
        sink = MemorySink()
        with TemporaryDirectory(prefix="select-", dir=place, ignore_cleanup_errors=True) as folder:
            log = CommitLog.open(LocalStore(Path(folder)))
            with closing(Engine(jobs.SparkJobs(session), log, parallelism(session))) as engine:
                for window in [node for node in snapshot.plan.walk() if isinstance(node, Window)]:
                    for stream in window.streams:
                        engine.add_stream(stream)
                engine.add_query(StandingQuery(_QUERY, snapshot.plan), sink)
                arrivals = [Arrival(name, frame) for name, frame in rows.items() if frame is not None]
                engine.epoch(arrivals, [WatermarkAdvance(name, END) for name in rows])
                record = engine.queries[_QUERY]
                if record.error is not None:
                    raise error_of(record)
        table = sink.table()
        return table if table.num_columns else published_schema(snapshot.plan).empty_table()


def can_run(snapshot: QuestionSnapshot) -> bool:
    """Whether Spark can do all of it: windows that are filters of rows, and no tables or answers."""
    scans = [node for node in snapshot.plan.walk() if isinstance(node, Scan)]
    plain = not any(scan.pseudo or scan.stream.wattr == domain.ARRIVAL_TS for scan in scans)
    specs = [leaf.spec for leaf in snapshot.leaves]
    filters = not any(
        isinstance(spec, session.SessionWindow | lifetime.LifetimeWindow)
        or (isinstance(spec, rows.RowsWindow) and spec.slide_rows is not None)
        for spec in specs
    )
    nested = any(field.type.fields for leaf in snapshot.leaves for field in leaf.stream.schema)
    return snapshot.is_at_once and plain and filters and not nested and not snapshot.tables


def _bytes(situation: Situation) -> int:
    once = situation.question.once
    if once.answers or once.tables or situation.present is None or situation.same_as is not None:
        return 0
    if any(part.file is None for part in situation.parts):
        return 0
    return sum(part.bytes for part in situation.parts)


def _files(situation: Situation) -> dict[str, dict[str, access_paths.SubWindow]]:
    found: dict[str, dict[str, access_paths.SubWindow]] = {}
    for leaf in situation.question.snapshot.leaves:
        mine = found.setdefault(leaf.stream.name, {})
        mine |= {part.file: part for part in situation.ways[leaf.name].parts if part.file is not None}
    return found


def _check(parts: Sequence[access_paths.SubWindow]) -> None:
    """Spark knows nothing of our checksums, so they are compared before it reads; several files at once."""
    checks = [part.check for part in parts if part.check is not None]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(lambda check: check(), checks))  # raises what a check raises


def _rows(situation: Situation, leaf: WindowLeaf, staging: frames.Staging) -> frames.DataFrame | None:
    """The rows of a leaf; None if there is no file of them."""
    files = [part.file for part in situation.ways[leaf.name].parts if part.file is not None]
    if not files:
        return None
    assert situation.present is not None
    needs = needs_of(leaf.spec, situation.present.at)
    first = None if needs.begin == -domain.INFINITY else int(needs.begin)
    spec = leaf.spec
    counted = (spec.rows, spec.partition_by) if isinstance(spec, rows.RowsWindow) else (None, ())
    return staging.rows(leaf.stream, frames.KeptRange(files, first, int(needs.end), *counted))
