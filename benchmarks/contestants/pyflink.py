"""PyFlink: SQL with the windowing function HOP, and joins, in streaming mode, in a process of its own.

Its package reads no Parquet, so it is given the same rows as CSV, striped over as many files as there are
tasks, each in order: every task then reads one file, and nothing is late. What reading that costs is measured
apart.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contestant import Outcome, UnfinishedError, out_of_patience
from benchmarks.contestants import flink_worker
from benchmarks.contestants.flink_environment import flink_python, flink_version
from benchmarks.contestants.spark_join import condition
from benchmarks.contestants.windrow_operators import ASKED_OF_OTHERS, comparable
from benchmarks.job import KEYS_OF_A_QUERY
from benchmarks.workload import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from benchmarks.job import GroupedJob, SlidingJob
    from benchmarks.setting import Setting
    from benchmarks.workload import Readings

_HEAP = "-Xmx{memory}"
#: seconds its process has to end by itself
_PATIENCE = 30
_SOURCE = """
CREATE TEMPORARY TABLE {name} (
  us BIGINT, k INT, v DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(us / 1000, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
_SINK = """
CREATE TEMPORARY TABLE answers (`at` TIMESTAMP(3), k INT, m DOUBLE, t DOUBLE, n BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
_INSERT = """
INSERT INTO answers SELECT window_end, {key}, MAX(v), SUM(v), COUNT(*)
FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND(5), INTERVAL '{range}' SECOND(5)))
GROUP BY window_start, window_end, {grouping} HAVING window_end <= TIMESTAMP '{last}'
"""
_PAIRS = """
CREATE TEMPORARY TABLE answers (`at` BIGINT, ts BIGINT, k INT, v DOUBLE, w DOUBLE)
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
_JOIN = """
INSERT INTO answers SELECT CASE WHEN t.us > s.us THEN t.us ELSE s.us END, s.us, s.k, s.v, t.v
FROM s {kind} JOIN t ON {condition} {where}
"""
_NOWHERE = "CREATE TEMPORARY TABLE answers (us BIGINT, k INT, v DOUBLE) WITH ('connector' = 'blackhole')"
_INSERT_ALL = "INSERT INTO answers SELECT us, k, v FROM s"
_AFTER = [f"DROP TEMPORARY TABLE IF EXISTS {name}" for name in ("answers", "s", "t")]


class Flink:
    """The process, started when it is first needed, and shared by the two contestants below."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self.python = flink_python(setting.data, setting.say)
        self._process: subprocess.Popen[str] | None = None

    @property
    def tasks(self) -> int:
        """How many run at once: as many as Spark's."""
        return (os.cpu_count() or 1) if self._setting.cores == "*" else int(self._setting.cores)

    @property
    def settings(self) -> dict[str, str]:
        """Those of its jobs."""
        return {
            "parallelism.default": str(self.tasks),
            "pipeline.object-reuse": "true",
            "state.backend.type": "hashmap",
            # files of the sink are complete when a checkpoint is
            "execution.checkpointing.interval": "10 s",
            "table.local-time-zone": "UTC",
        }

    @property
    def about(self) -> dict[str, str]:
        """Settings, and what is not a setting."""
        version = flink_version(self.python)
        return {"version": version, "heap": self._setting.memory, "rows": "the same as CSV", **self.settings}

    def do(self, before: list[str], inserts: list[str]) -> float:
        """Run one job, a set of statements; gives its seconds."""
        job = {"settings": self.settings, "before": before, "inserts": inserts, "after": _AFTER}
        process, began = self._started(), time.perf_counter()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        stopping = threading.Timer(self._setting.patience, process.kill)
        stopping.start()
        try:
            for line in process.stdout:
                if line.startswith(flink_worker.ANSWER):
                    told: dict[str, Any] = json.loads(line.removeprefix(flink_worker.ANSWER))
                    return float(told["seconds"])
        finally:
            stopping.cancel()
        self.close()  # the next job starts another
        took = time.perf_counter() - began
        if took >= self._setting.patience:
            raise out_of_patience(self._setting.patience)
        raise UnfinishedError(f"failed after {took:.0f} s", "see " + str(self._log))

    def rows(self, readings: Readings) -> Path:
        """The rows as Flink reads them, made once."""
        folder = readings.folder.with_name(f"{readings.folder.name}-csv-{self.tasks}")
        if not folder.exists():
            _write_csv(readings, folder, self.tasks)
        return folder

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            with self._process as process:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
            self._process = None

    @property
    def _log(self) -> Path:
        return self._setting.data / "pyflink.log"

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            from windrow.spark.java import find_java

            # isolated, so that the modules beside the script do not hide packages of the same name
            command = [str(self.python), "-I", str(Path(flink_worker.__file__))]
            environment = {
                **os.environ,
                "JAVA_HOME": str(find_java().home),
                "JVM_ARGS": _HEAP.format(memory=self._setting.memory),
            }
            with self._log.open("a") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=environment,
                )
        return self._process


class PyFlink:
    """Sliding windows."""

    name = "pyflink"

    def __init__(self, flink: Flink, setting: Setting) -> None:
        self._flink, self._setting = flink, setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it runs with."""
        return self._flink.about

    def run(self, job: SlidingJob) -> Outcome:
        """One job over all rows, its answers as CSV."""
        source, out = self._flink.rows(job.readings), self._setting.fresh("pyflink-answers")
        insert = _insert(job, "k", "k")
        seconds = self._flink.do([_SOURCE.format(name="s", path=source), _SINK.format(path=out)], [insert])
        return Outcome(seconds, _sliding(out))


class PyFlinkMany:
    """Many sliding windows: one set of statements, which read the rows once and write into one table."""

    name = "pyflink"

    def __init__(self, flink: Flink, setting: Setting) -> None:
        self._flink, self._setting = flink, setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it runs with."""
        return {**self._flink.about, "queries": "one statement set", "answers": "CSV files"}

    def run(self, jobs: Sequence[GroupedJob]) -> Outcome:
        """All at once; the answers say which query they are of."""
        source, out = self._flink.rows(jobs[0].readings), self._setting.fresh("pyflink-answers")
        inserts = [
            _insert(job, f"({job.grouping}) + {KEYS_OF_A_QUERY * number}", job.grouping)
            for number, job in enumerate(jobs)
        ]
        seconds = self._flink.do([_SOURCE.format(name="s", path=source), _SINK.format(path=out)], inserts)
        return Outcome(seconds, _sliding(out))


class PyFlinkJoin:
    """Joins: by an interval of time, its state ending with the watermark, or of all rows, a regular one."""

    name = "pyflink"

    def __init__(self, flink: Flink, setting: Setting) -> None:
        self._flink, self._setting = flink, setting

    @property
    def settings(self) -> Mapping[str, str]:
        """What it runs with."""
        return {**self._flink.about, "answers": "CSV files"}

    def join(self, name: str, streams: Sequence[Readings], seconds: int) -> Outcome:
        """One job over all rows."""
        import polars as pl

        out = self._setting.fresh("pyflink-answers")
        sources = [
            _SOURCE.format(name=table, path=self._flink.rows(rows))
            for table, rows in zip("st", streams, strict=True)
        ]
        where = "WHERE t.k IS NULL" if name.startswith("not exists") else ""
        insert = _JOIN.format(kind=ASKED_OF_OTHERS[name], condition=condition(name, seconds), where=where)
        took = self._flink.do([*sources, _PAIRS.format(path=out)], [insert])
        kinds = {"at": pl.Int64, "ts": pl.Int64, "k": pl.Int64, "v": pl.Float64, "w": pl.Float64}
        return Outcome(took, comparable(_read_csv(out, kinds), name, seconds, streams[0].end))


class PyFlinkScan:
    """Its own plain scan, to tell what reading CSV costs."""

    name = "pyflink scan"

    def __init__(self, flink: Flink) -> None:
        self._flink = flink

    @property
    def settings(self) -> Mapping[str, str]:
        """What it runs with."""
        return {"rows": "the same as CSV, into a blackhole"}

    def run(self, job: SlidingJob) -> Outcome:
        """All rows, thrown away."""
        return Outcome(
            self._flink.do(
                [_SOURCE.format(name="s", path=self._flink.rows(job.readings)), _NOWHERE], [_INSERT_ALL]
            )
        )


def _insert(job: SlidingJob, key: str, grouping: str) -> str:
    last = datetime.fromtimestamp(job.readings.end / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return _INSERT.format(
        slide=job.slide_seconds, range=job.range_seconds, last=last, key=key, grouping=grouping
    )


def _write_csv(readings: Readings, folder: Path, parts: int) -> None:
    import polars as pl

    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    rows = (
        pl.scan_parquet(readings.folder / "*.parquet").select(pl.col("ts").dt.epoch("us"), "k", "v").collect()
    )
    for part in range(parts):
        rows.gather_every(parts, part).write_csv(beside / f"{part}.csv", include_header=False)
    beside.rename(folder)


def _read_csv(folder: Path, kinds: Mapping[str, Any]) -> pl.LazyFrame:
    import polars as pl

    files = sorted(path for path in folder.rglob("part-*") if path.is_file() and path.stat().st_size)
    return pl.scan_csv(files, has_header=False, schema=dict(kinds)) if files else pl.LazyFrame(schema=kinds)


def _sliding(folder: Path) -> pl.LazyFrame:
    import polars as pl

    kinds = {"at": pl.String, "k": pl.Int64, "m": pl.Float64, "t": pl.Float64, "n": pl.Int64}
    return _read_csv(folder, kinds).with_columns(pl.col("at").str.to_datetime(time_unit="us"))
