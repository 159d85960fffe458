"""Queries that share, on Spark: their states come from one native aggregation, from several, or from rows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.support.history import COLUMNS, as_rows, rows_of, table_of
from tests.support.oracle import oracle

import windrow as wr
from windrow.engine import engine as core
from windrow.execution import local

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = [(number % 7, (number * 37) % 101 - 50, number // 3) for number in range(900)]
AGGREGATES = ("SUM(v) AS a", "COUNT(*) AS a, MAX(v) AS b", "AVG(v) AS a, MIN(v) FILTER (WHERE v > 0) AS b")
CONDITIONS = ("", "WHERE v > 3", "WHERE NOT v <= 3", "WHERE k IN (1, 2)")


def workload(groupings: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for number in range(24):
        keys = groupings[number % len(groupings)]
        slide = (5, 10, 15)[number % 3]
        window = f"[RANGE {slide * (1 + number % 5)} SLIDE {slide}]"
        what = f"{keys + ' AS g, ' if keys else ''}{AGGREGATES[number % 3]}"
        text = f"SELECT {what} FROM s {window} {CONDITIONS[number % 4]}"
        found[f"q{number}"] = text + (f" GROUP BY {keys}" if keys else "")
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("groupings", "few"),
    [(("k", "", "v % 5", "k, v % 2"), 20_000), (("k", ""), 0), (("k", "", "v % 5"), 0)],
    ids=["aggregated at once", "each by itself after a look", "from rows after a look"],
)
def test_queries_that_share_on_spark(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    groupings: tuple[str, ...],
    few: int,
) -> None:
    monkeypatch.setattr(core, "FEW_STATES", few)
    monkeypatch.setattr(local, "SMALL_ROWS", 0)  # Spark takes in even these few rows
    monkeypatch.setattr(local, "SMALL_NATIVE", 0)
    queries = workload(groupings)
    (tmp_path / "rows").mkdir()
    for number, begin in enumerate(range(0, 900, 300)):
        path = tmp_path / "rows" / f"{number}.parquet"
        pq.write_table(table_of(ROWS[begin : begin + 300]), path)
        os.utime(path, (1e9 + number, 1e9 + number))  # the oldest file is read first
    with wr.connect(spark, state=tmp_path / "state") as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED FROM 'files://{tmp_path}/rows?files_per_batch=1'")
        for name, text in queries.items():
            w.query(name, text)
        w.run(once=True, flush=True)
        assert w._engine._together == {"s": few > 0}
        for name, text in queries.items():
            assert w._engine.queries[name].shares, name
            wanted = as_rows(oracle(text, [ROWS], {"s": (COLUMNS, "WATTR t ORDERED")}))
            assert sorted(rows_of(w.queries[name].results())) == wanted, name
