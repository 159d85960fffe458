"""Contestants that need more than Python: a tiny run of a benchmark on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windrow.bench.benchmark import Findings
from windrow.bench.benchmarks import queries
from windrow.bench.benchmarks.overlap import BENCHMARK, QUICK
from windrow.bench.running import run
from windrow.bench.setting import Setting
from windrow.bench.studies.spark_patterns import JOIN, WINDROW, with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_windrow_and_spark_agree_in_a_tiny_run(spark: SparkSession, tmp_path: Path) -> None:
    options = replace(
        QUICK, rows=2000, seconds=100, rows_per_batch=(1000,), overlaps=(1, 3), spark_overlaps=(3,)
    )
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    report = run(BENCHMARK, options, setting, is_quick=True)
    answers = {(each["contestant"], each["overlap"]): each["answers"] for each in report.measurements}
    # twenty keys, a window every ten seconds up to the last row
    assert answers[("windrow", 1)] == answers[("windrow", 3)] == 200
    assert answers[("spark rocksdb", 3)] == answers[("spark hdfs", 3)] == 200
    assert answers[("scan", 1)] is None
    assert {"windrow", "spark hdfs", "spark rocksdb", "scan"} <= set(report.contestants)
    assert any("PyFlink was left out" in note for note in report.notes)


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


def test_joins_of_links_by_windrow_and_spark_agree(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.bench.studies.links_on_disk.FILES", 2)
    setting = Setting(data=tmp_path, scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    findings = with_spark(Findings({}, [], [], []), setting, (1000,))
    found = {(each.variant["protocol"], each.contestant): each.answers for each in findings.measurements}
    assert set(found) == {(protocol, who) for protocol in ("ftp", "telnet") for who in (WINDROW, JOIN)}
    assert found["telnet", WINDROW] == found["telnet", JOIN]
    assert found["telnet", JOIN]
    assert all(target.found is not None for target in findings.targets)
