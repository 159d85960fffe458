"""A burst: the rows it is made of, what is measured, and that wrong answers end it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from benchmarks.burst_runs import FILES_PER_SECOND, Part, Seen, rows_of
from benchmarks.suite.burst import KEEPING, SHEDDING, _check, _last_missing
from benchmarks.workload import BEGIN, SECOND
from windrow.errors import WindrowError


def test_rows_come_at_their_rates_and_complete_each_quarter(tmp_path: Path) -> None:
    made = rows_of(tmp_path / "rows", [Part(1, 40), Part(2, 400)])
    files = [pl.read_parquet(path) for path in made.files]
    assert [file.height for file in files] == [10] * 4 + [100] * 8
    assert (made.rows, made.seconds) == (840, 3)
    ends = [file["ts"].dt.timestamp("us").max() for file in files]
    assert ends == [BEGIN + (n + 1) * SECOND // FILES_PER_SECOND for n in range(12)]
    times = pl.concat(files)["ts"]
    assert times.is_sorted()


def answers(*ends: float, total: int = 1) -> pa.Table:
    at = [datetime.fromtimestamp(BEGIN / SECOND + end, UTC) for end in ends]
    return pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC")), "total": [total] * len(at)})


def test_latency_is_from_the_file_that_completes_a_window() -> None:
    seen = Seen(began=100.0, written=[99.0, 100.25, 100.5, 100.75, 101.0])
    seen.times = {BEGIN + SECOND // 2: 101.25, BEGIN + SECOND: 102.75, BEGIN + SECOND // 4: 100.0}
    assert seen.latencies() == [(0.25, 1.0), (0.75, 2.0)]


def test_answers_must_be_exact_and_without_shedding_complete() -> None:
    exact = pl.DataFrame(answers(0.5, 1.0, 1.5))
    some, all_, other = (
        Seen(tables=[table]) for table in (answers(0.5, 1.5), answers(0.5, 1.0, 1.5), answers(0.5, total=2))
    )
    _check(SHEDDING, some, exact)
    _check(KEEPING, all_, exact)
    assert (_last_missing(some, exact), _last_missing(all_, exact)) == (1.0, None)
    for name, seen in ((KEEPING, some), (SHEDDING, other), (SHEDDING, Seen(tables=[answers(0.5, 0.5)]))):
        with pytest.raises(WindrowError, match="not exact"):
            _check(name, seen, exact)
