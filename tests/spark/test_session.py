"""The session works, is set up as promised, and leaves no trace around it."""

from __future__ import annotations

import os
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from windrow.errors import StateError
from windrow.spark import session as module
from windrow.spark.session import KeptWorkers, start_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession


def test_a_session_has_the_settings_that_answers_need(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_python_workers_run(spark: SparkSession) -> None:
    def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            yield pa.record_batch([pc.multiply(batch["id"], 2)], names=["id"])

    doubled = spark.range(5).mapInArrow(double, "id long").toArrow()
    assert sorted(doubled["id"].to_pylist()) == [0, 2, 4, 6, 8]


def test_workers_of_another_version_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    module.check_workers(spark)
    monkeypatch.setattr(module, "version", lambda _: "99.0")  # in this process, not in theirs
    with pytest.raises(StateError, match=r"have Windrow 0\..*, this process has 99\.0") as refused:
        module.check_workers(spark)
    assert "spark.submit.pyFiles" in str(refused.value)


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    assert start_session() is spark


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "before")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with module._environment({"JAVA_HOME": "during", "SPARK_HOME": "during"}):
        assert os.environ["JAVA_HOME"] == os.environ["SPARK_HOME"] == "during"
    assert os.environ["JAVA_HOME"] == "before"
    assert "SPARK_HOME" not in os.environ


def test_workers_are_kept_as_long_as_they_may_be_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for before Spark would end them, and left alone when nothing came for long."""
    now, asked = [0.0], list[float]()
    monkeypatch.setattr(module, "_in_background", lambda *_: asked.append(now[0]) or Thread())
    kept = KeptWorkers(None, lambda: now[0])  # type: ignore[arg-type]
    kept.keep()
    assert not asked  # nobody needed any
    for at in range(0, 3000, 10):
        now[0] = at
        if at in (0, 100):
            kept.used()
        kept.keep()
    assert asked == [40, 80, *range(140, 700, 40)]


def test_workers_that_are_kept_are_those_of_the_next_job(spark: SparkSession) -> None:
    kept, pids = KeptWorkers(spark, iter([0.0, 0.0, 50.0]).__next__), "pid long"
    kept.keep()
    kept.used()

    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import sys

        import pyarrow as pa

        for _ in batches:
            assert "windrow.execution.close" in sys.modules, "not loaded"
            yield pa.record_batch([[os.getpid()]], names=["pid"])

    kept.keep()
    assert kept._job is not None
    kept._job.join()
    assert spark.range(0, 1, 1, 1).mapInArrow(own, pids).toArrow().num_rows == 1
