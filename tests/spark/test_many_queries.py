"""Many queries on one engine: one scan and one close for all of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa

import windrow as wr
from windrow.testing import Harness

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_a_session_of_the_users_is_left_as_it_was(spark: SparkSession) -> None:
    partitions = "spark.sql.shuffle.partitions"
    before = dict(spark.sparkContext.getConf().getAll()), spark.conf.get(partitions)
    with wr.connect(spark, state=None) as w:
        w.stream("s", pa.table({"k": [1], "ts": [1]}), wattr="ts")
        query = w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]")
        w.run(once=True)
        assert query.to_spark().count() == 1
    assert (dict(spark.sparkContext.getConf().getAll()), spark.conf.get(partitions)) == before
