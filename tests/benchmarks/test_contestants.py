"""Contestants that need more than Python: a tiny run of a benchmark on Spark."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.benchmark import Findings
from benchmarks.contestant import UnfinishedError
from benchmarks.contestants import flink_worker, pyflink
from benchmarks.contestants.spark_window import SparkWindow
from benchmarks.contestants.windrow_operators import ASKED_OF_OTHERS
from benchmarks.job import SlidingJob
from benchmarks.runs import run
from benchmarks.setting import Setting
from benchmarks.studies.spark_patterns import JOIN, WINDROW, with_spark
from benchmarks.suite import operators, queries
from benchmarks.suite.overlap import BENCHMARK, QUICK
from benchmarks.workload import readings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.thorough
def test_windrow_and_spark_agree_in_a_tiny_run(spark: SparkSession, tmp_path: Path) -> None:
    options = replace(
        QUICK, rows=2000, seconds=100, rows_per_batch=(1000,), overlaps=(3,), spark_overlaps=(3,)
    )
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    report = run(BENCHMARK, options, setting, is_quick=True)
    answers = {(each["contestant"], each["overlap"]): each["answers"] for each in report.measurements}
    # twenty keys, a window every ten seconds up to the last row
    assert answers[("windrow", 3)] == 200
    assert answers[("spark rocksdb", 3)] == answers[("spark hdfs", 3)] == 200
    assert answers[("scan", 3)] is None
    assert {"windrow", "spark hdfs", "spark rocksdb", "scan"} <= set(report.contestants)
    assert any("PyFlink was left out" in note for note in report.notes)


@pytest.mark.thorough
def test_many_queries_of_windrow_and_spark_agree_in_a_tiny_run(spark: SparkSession, tmp_path: Path) -> None:
    options = replace(
        queries.QUICK,
        rows=2000,
        seconds=200,
        rows_per_batch=1000,
        queries=(1, 5),
        more_queries=(6,),
        more_groupings=6,
        spark_queries=(5,),
    )
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    report = run(queries.BENCHMARK, options, setting, is_quick=True)
    answers = {(each["contestant"], each["queries"]): each["answers"] for each in report.measurements}
    assert answers["windrow", 5] == answers["spark rocksdb", 5] > answers["windrow", 1] > 0
    assert ("windrow", 6) in answers
    assert any("PyFlink was left out" in note for note in report.notes)


@pytest.mark.thorough
def test_joins_of_windrow_and_spark_agree_in_a_tiny_run(spark: SparkSession, tmp_path: Path) -> None:
    options = replace(operators.QUICK, rows=4000, keys=300, rows_per_batch=1000, window_rows=1000, windows=0)
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    report = run(operators.BENCHMARK, options, setting, is_quick=True)
    answers = {(each["contestant"], each["operator"]): each["answers"] for each in report.measurements}
    for name in ASKED_OF_OTHERS:  # that they are the same is checked while it runs
        assert answers["windrow", name] == answers["spark rocksdb", name] > 0
    assert answers["windrow", "outer join"] > answers["windrow", "join"]
    assert any("PyFlink was left out" in note for note in report.notes)


@pytest.mark.thorough
def test_a_stream_of_spark_that_takes_too_long_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(tmp_path / "data", tmp_path / "scratch", 1, given_spark=spark, patience=0.5)
    rows = readings(setting.data, rows=2000, keys=5, seconds=100, rows_per_file=10)
    with pytest.raises(UnfinishedError, match=r"stopped after 0\.5 s"):
        SparkWindow(setting, "hdfs").run(SlidingJob(rows, 1, 60, 10))
    assert not spark.streams.active


@pytest.mark.thorough
def test_a_stream_of_spark_that_fails_is_left(spark: SparkSession, tmp_path: Path) -> None:
    setting = Setting(tmp_path / "data", tmp_path / "scratch", 1, given_spark=spark)
    rows = readings(setting.data, rows=20, keys=5, seconds=100, rows_per_file=10)
    rows.files[0].write_text("no Parquet")
    with pytest.raises(UnfinishedError, match=r"failed after \d+ s"):
        SparkWindow(setting, "hdfs").run(SlidingJob(rows, 1, 60, 10))
    assert not spark.streams.active


@pytest.mark.parametrize(
    ("does", "told"),
    [("time.sleep(60)", "stopped after 2 s"), ("sys.exit('no memory')", r"failed after [01] s")],
)
def test_a_pyflink_that_gives_no_answer_is_left_and_started_anew(
    does: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    lines = [
        "import sys, time",
        "for line in sys.stdin:",
        f"    if 'slow' in line: {does}",
        f"    print({(flink_worker.ANSWER + json.dumps({'seconds': 7}))!r}, flush=True)",
    ]
    worker.write_text("\n".join(lines))
    monkeypatch.setattr(flink_worker, "__file__", str(worker))
    monkeypatch.setattr(pyflink, "flink_python", lambda *_: sys.executable)
    flink = pyflink.Flink(Setting(tmp_path, tmp_path / "scratch", 1, patience=2))
    try:
        with pytest.raises(UnfinishedError, match=told):
            flink.do([], ["slow"])
        assert flink.do([], ["quick"]) == 7.0
    finally:
        flink.close()


@pytest.mark.thorough
def test_joins_of_links_by_windrow_and_spark_agree(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.studies.links_on_disk.FILES", 2)
    setting = Setting(data=tmp_path, scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    findings = with_spark(Findings({}, [], [], []), setting, (1000,))
    found = {(each.variant["protocol"], each.contestant): each.answers for each in findings.measurements}
    assert set(found) == {(protocol, who) for protocol in ("ftp", "telnet") for who in (WINDROW, JOIN)}
    assert found["telnet", WINDROW] == found["telnet", JOIN]
    assert found["telnet", JOIN]
    assert all(target.found is not None for target in findings.targets)
