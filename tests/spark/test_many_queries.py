"""Many queries on one engine: one scan and one close for all of them."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.testing import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.thorough
def test_a_hundred_queries_of_one_grouping_run_in_two_jobs(spark: SparkSession) -> None:
    chance = random.Random(5)
    rows = [(chance.randrange(4), chance.randrange(100), t // 3) for t in range(600)]
    table = pa.table({name: [row[place] for row in rows] for place, name in enumerate(("k", "v", "ts"))})
    windows = [(chance.randint(1, 40), chance.randint(1, 20)) for _ in range(100)]
    texts = {
        f"q{number}": f"SELECT k, MAX(v) AS m, SUM(v) AS s, COUNT(*) AS n FROM s [RANGE {r} SLIDE {s}]"
        f" WHERE v > {number % 3} GROUP BY k"
        for number, (r, s) in enumerate(windows)
    }
    tracker = spark.sparkContext.statusTracker()
    with wr.connect(spark, state=None) as w:
        w.stream("s", table, wattr="ts")
        for name, text in texts.items():
            w.query(name, text)
        before = set(tracker.getJobIdsForGroup())
        w.run(once=True)
        jobs = set(tracker.getJobIdsForGroup()) - before
        assert len(jobs) == 2, "one job to take the rows in, one to answer"
        for name in chance.sample(sorted(texts), 12):
            harness = Harness(texts[name], {"s": "k BIGINT, v BIGINT, ts BIGINT"}, executor="kernels")
            harness.push("s", rows)
            harness.finish()
            expected = [(change.at, *change.row) for change in harness.take()]
            assert [tuple(row.values()) for row in w.queries[name].results().to_pylist()] == expected


def test_queries_that_cut_time_differently_share_what_spark_has_aggregated(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In several epochs: panes of the one query are several of the feed that it shares with the other."""
    chance = random.Random(1)
    rows = [(chance.randrange(3), chance.randrange(50), t) for t in range(300)]
    for number in range(3):
        part = rows[number * 100 : (number + 1) * 100]
        columns = {
            name: pa.array([row[place] for row in part]) for place, name in enumerate(("k", "v", "ts"))
        }
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
        os.utime(tmp_path / f"{number}.parquet", (1e9 + number, 1e9 + number))
    columns_of = "k BIGINT, v BIGINT, ts BIGINT"
    texts = {
        f"q{r}_{s}": f"SELECT k, SUM(v) AS s, MAX(v) AS m FROM s [RANGE {r} SLIDE {s}] GROUP BY k"
        for r, s in ((60, 30), (20, 5), (7, 3), (400, 10))
    }
    with wr.connect(spark, state=None) as w:
        source = f"files://{tmp_path}/*.parquet?files_per_batch=1"
        w.sql(f"CREATE STREAM s ({columns_of}) WATTR ts ORDERED FROM '{source}'")
        for name, text in texts.items():
            w.query(name, text)
        w.run(once=True, flush=True)
        for name, text in texts.items():
            harness = Harness(text, {"s": (columns_of, "WATTR ts ORDERED")})
            harness.push("s", rows)
            harness.finish()
            expected = [(change.at, *change.row) for change in harness.take()]
            assert [tuple(row.values()) for row in w.queries[name].results().to_pylist()] == expected, name


def test_a_session_of_the_users_is_left_as_it_was(spark: SparkSession) -> None:
    partitions = "spark.sql.shuffle.partitions"
    before = dict(spark.sparkContext.getConf().getAll()), spark.conf.get(partitions)
    with wr.connect(spark, state=None) as w:
        w.stream("s", pa.table({"k": [1], "ts": [1]}), wattr="ts")
        query = w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]")
        w.run(once=True)
        assert query.to_spark().count() == 1
    assert (dict(spark.sparkContext.getConf().getAll()), spark.conf.get(partitions)) == before
