"""Contestants that need more than Python: a tiny run of a benchmark on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.bench.benchmarks.overlap import BENCHMARK, QUICK
from windrow.bench.running import run
from windrow.bench.setting import Setting

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
