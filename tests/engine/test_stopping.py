"""An engine that is stopped in the middle, and user code that tries to end the process."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.spark_world import Files
from tests.support.history import BATCHES, COLUMNS, OPTIONS, STREAM, SUMS, as_rows, rows_of
from tests.support.life import Life
from tests.support.oracle import oracle

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.errors import DataError, SinkError
from windrow.session import Windrow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def own_names() -> Iterator[None]:
    yield
    for name in user.names():
        user.forget(name)


def test_stopped_in_the_middle_of_a_job_a_new_start_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:4])
    with files.connect(spark) as w:
        jobs, under_way = w._engine.jobs, threading.Event()

        class Watched:
            def ingest(self, *arguments: Any) -> Any:
                under_way.set()
                return jobs.ingest(*arguments)

            def close(self, *arguments: Any) -> Any:
                return jobs.close(*arguments)

            def stay_ready(self) -> None:
                jobs.stay_ready()

        w._engine.jobs = Watched()
        w.start()
        assert under_way.wait(60)
        w.stop()
        assert not w.is_running
        assert w.streams["s"].progress.accepted == len(BATCHES[0])  # the epoch under way was finished
    files.run(spark)
    files.check()


def test_a_callback_that_exits_ends_nothing_and_loses_nothing(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    heard: list[Any] = []

    def leave(*_: object) -> None:
        sys.exit("I am leaving")

    for sink in (leave, lambda table, _: heard.extend(rows_of(table))):
        with files.connect(spark) as w:
            w.query("called", SUMS, sink=sink)
            if sink is leave:
                with pytest.raises(SinkError, match="SystemExit: I am leaving") as told:
                    w.run(once=True, flush=True)
                assert told.value.code == "callback-failed"
            else:
                w.run(once=True, flush=True)
    assert Counter(heard) == oracle(SUMS, BATCHES[:3])
    files.check()


def test_an_aggregate_that_exits_ends_its_own_query_only(
    tmp_path: Path, spark: SparkSession, own_names: None
) -> None:
    def step(state: int, v: int) -> int:
        raise SystemExit(f"at {v}")

    parts = {"init": lambda: 0, "merge": lambda a, b: a + b, "final": lambda state: state}
    wr.aggregate(name="leaving", returns="BIGINT", takes="BIGINT", step=step, **parts)
    query = "SELECT k, leaving(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k"
    files = Files(tmp_path, BATCHES[:2])
    with files.connect(spark) as w:
        left, sums = w.query("left", query), w.queries["sums"]
        with pytest.raises(DataError, match="leaving failed in step: SystemExit: at"):
            w.run(once=True, flush=True)
        assert (left.progress.status, sums.progress.status) == ("failed", "running")
    files.check()


@pytest.mark.thorough
def test_a_row_that_kills_workers_is_found_by_its_file(
    tmp_path: Path, spark: SparkSession, own_names: None
) -> None:
    """Whatever it is that they die of: of eight files that come at once, the one is named, and the line in it
    that the row is."""

    here = os.getpid()

    def step(state: int, v: int) -> int:
        assert os.getpid() != here
        if v == 666:
            os.kill(os.getpid(), signal.SIGKILL)
        return state + v

    parts = {"init": lambda: 0, "merge": lambda a, b: a + b, "final": lambda state: state}
    wr.aggregate(name="deadly", returns="BIGINT", takes="BIGINT", step=step, **parts)
    (tmp_path / "in").mkdir()
    for number in range(8):
        row = {"k": 1, "v": 666 if number == 5 else number, "t": 10 * number}
        before = [{"k": 1, "v": 1, "t": 0}] * (5 if number == 5 else 0)
        lines = "\n\n".join(map(json.dumps, [*before, row, *before]))
        (tmp_path / "in" / f"{number}.json").write_text(lines + "\n")
        os.utime(tmp_path / "in" / f"{number}.json", (1_700_000_000 + number,) * 2)

    def run() -> list[Any]:
        with Windrow(spark, tmp_path / "state") as w:
            w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM 'files://{tmp_path}/in/*.json'")
            w.query("q", "SELECT deadly(v) AS total FROM s [RANGE 1000 SLIDE 1000]")
            w.run(once=True, flush=True)
            return rows_of(w.queries["q"].results())

    with pytest.raises(
        DataError, match=r"workers die of file .*/in/5\.json of stream `s` at line 11: "
    ) as told:
        run()
    assert told.value.code == "poison-row"
    (tmp_path / "in" / "5.json").unlink()
    assert run() == [(1000, 1 + 2 + 3 + 4 + 6 + 7)]


def test_an_interrupt_between_commit_and_delivery_loses_nothing(tmp_path: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    w = Life(tmp_path / "state")
    w.sql(STREAM)
    w.query("q", SUMS, sink=interrupted)
    with pytest.raises(KeyboardInterrupt):
        w.push(*BATCHES[0], *BATCHES[1], number=0)
    assert w.engine.last.streams["s"].source.offsets == {"batch": 0}
    w.vanish()
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        w.engine.deliver()
        w.end()
        assert w.rows("q") == as_rows(oracle(SUMS, [(*BATCHES[0], *BATCHES[1])]))
