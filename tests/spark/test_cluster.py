"""A real cluster, of which executors, a worker and the driver are killed: the answers are the oracle's.

Run by `make test-cluster`: it starts a standalone master and two workers.
"""

from __future__ import annotations

import csv
import logging
import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.cluster import Cluster, Driver, python_without_windrow, wheel_as_zip
from tests.support.history import rows_in
from tests.support.oracle import oracle
from tests.support.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.integration,
    pytest.mark.process,
    pytest.mark.skipif("WINDROW_INTEGRATION" not in os.environ, reason="run by make test-cluster"),
]

tell = logging.getLogger("cluster")

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 8"
TABLE = "k BIGINT, name STRING, KEY (k)"
NAMES = [(1, "one"), (2, "two"), (4, "four")]
#: a query for each family of operators
QUERIES = {
    "panes": "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k",
    "joined": "SELECT s.k, s.v, r.v AS w FROM s [RANGE 10] JOIN r [RANGE 15] ON s.k = r.k",
    "apart": "SELECT DISTINCT k FROM s [RANGE 12]",
    "alone": (
        "SELECT s.k, s.v FROM s [RANGE 10] WHERE NOT EXISTS (SELECT 1 FROM r [RANGE 10] WHERE r.k = s.k)"
    ),
    "counted": "SELECT k, MAX(v) AS m FROM s [ROWS 4 PARTITION BY k] GROUP BY k",
    "visits": "SELECT k, COUNT(*) AS n, MIN(v) AS least FROM s [SESSION 7 PARTITION BY k] GROUP BY k",
    "outer_joined": "SELECT s.k, s.v, r.v AS w FROM s [RANGE 6] LEFT JOIN r [RANGE 6] ON s.k = r.k",
    "nested": (
        "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k)"
        " [RANGE 20 SLIDE 20]"
    ),
    "behind": "SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY t ROWS 2 PRECEDING) AS total FROM s",
    "named": "SELECT s.k, n.name FROM s [RANGE 5] JOIN names n ON n.k = s.k",
}


class Inputs:
    """Two streams in files, a batch each, a table, a script, and what is to come out."""

    def __init__(self, folder: Path, batches: int, queries: dict[str, str]) -> None:
        chance = random.Random(7)
        self.folder, self.queries, self.rows = folder, queries, {"s": [], "r": []}
        for name, taken in self.rows.items():
            (folder / name).mkdir()
            for batch in range(batches):
                times = chance.sample(range(batch * 12, batch * 12 + 18), 10)  # late by six at most
                rows = [(chance.randint(1, 4), chance.randint(-9, 99), time) for time in times]
                self._write(folder / name / f"{batch:03d}.parquet", rows, batch)
                taken.append(rows)
        with (folder / "names.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("k", "name"), *NAMES])
        (folder / "script.cql").write_text(self._script())

    def _write(self, path: Path, rows: list[Any], batch: int) -> None:
        columns = dict(zip("kvt", zip(*rows, strict=True), strict=True))
        pq.write_table(pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()}), path)
        os.utime(path, (1_700_000_000 + batch,) * 2)

    def _script(self) -> str:
        streams = [
            f"CREATE STREAM {name} ({COLUMNS}) {OPTIONS}"
            f" FROM 'files://{self.folder}/{name}/*.parquet?files_per_batch=1';"
            for name in self.rows
        ]
        table = f"CREATE TABLE names ({TABLE}) NRR FROM 'files://{self.folder}/names.csv';"
        queries = [
            f"CREATE QUERY {name} AS {text} INTO 'files://{self.folder}/out';"
            for name, text in self.queries.items()
        ]
        return "\n".join([*streams, table, *queries])

    def expected(self, name: str) -> Counter[Any]:
        """What the oracle says."""
        streams = dict.fromkeys(self.rows, (COLUMNS, OPTIONS))
        batches = [(stream, rows) for stream, taken in self.rows.items() for rows in taken]
        return oracle(self.queries[name], [("names", None, NAMES, []), *batches], streams, {"names": TABLE})

    def found(self, name: str) -> Counter[Any]:
        """What the sink has."""
        return rows_in(self.folder / "out", f"{name}-*.parquet")

    def check(self) -> None:
        """Each answer of the oracle is in the sink, and once."""
        for name in self.queries:
            expected = self.expected(name)
            assert expected
            assert self.found(name) == expected, name


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers."""
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as found:
        yield found


def test_executors_a_worker_and_the_driver_die_and_nothing_is_lost_or_doubled(
    cluster: Cluster, tmp_path: Path
) -> None:
    inputs = Inputs(tmp_path, 8, QUERIES)
    driver = Driver.start(cluster.url, tmp_path)
    try:
        driver.wait_for(3)
        tell.info("commit %s: %s executors are killed", driver.commits, cluster.kill_executors())
        driver.wait_for(6)
        processes = cluster.kill_worker("localhost")
        tell.info("commit %s: a worker is killed, %s processes", driver.commits, processes)
        driver.wait_for(8)
        before = driver.commits
        tell.info("commit %s: the driver is killed, %s processes", before, driver.kill())
        cluster.add("localhost")
        driver = Driver.start(cluster.url, tmp_path)
        driver.wait_for(before + 2)
        tell.info("commit %s: %s executors are killed", driver.commits, cluster.kill_executors())
        assert driver.process.wait(PATIENCE) == 0, driver.log
        tell.info("commit %s: the end", driver.commits)
    finally:
        driver.kill()
    inputs.check()
    tell.info("as the oracle has them: %s", {name: inputs.found(name).total() for name in QUERIES})


def test_of_two_attempts_of_a_task_one_is_committed(tmp_path: Path) -> None:
    """Every first task writes its files and waits until Spark has made another attempt, which wins. Several
    stages run at once, and their first tasks must leave room for others.
    """
    inputs = Inputs(tmp_path, 2, {name: QUERIES[name] for name in ("panes", "joined", "nested")})
    (tmp_path / "attempts").mkdir()
    (tmp_path / "cluster").mkdir()
    tasks = 4
    conf = {
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.efficiency.enabled": "false",
        "spark.speculation.task.duration.threshold": "200ms",
        "spark.executor.cores": str(tasks),
        "spark.cores.max": str(2 * tasks),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE}s",
    }
    with Cluster(tmp_path / "cluster", tasks) as cluster:
        driver = Driver.start(cluster.url, tmp_path, conf, twice=tmp_path / "attempts")
        try:
            assert driver.process.wait(PATIENCE) == 0, driver.log
        finally:
            driver.kill()
    second = list((tmp_path / "attempts").glob("*-0.1"))
    tell.info("%s tasks were made twice", len(second))
    assert second
    inputs.check()


def test_workers_without_windrow_are_refused_until_it_is_shipped(cluster: Cluster, tmp_path: Path) -> None:
    inputs = Inputs(tmp_path, 2, {"panes": QUERIES["panes"]})
    conf = {"spark.pyspark.python": str(python_without_windrow(tmp_path))}
    driver = Driver.start(cluster.url, tmp_path, conf)
    assert driver.process.wait(PATIENCE) == 3, driver.log
    assert "the cluster's workers cannot run a task of Windrow" in driver.log
    assert "have no module `windrow`" in driver.log
    assert "spark.submit.pyFiles" in driver.log
    driver = Driver.start(
        cluster.url, tmp_path, {**conf, "spark.submit.pyFiles": str(wheel_as_zip(tmp_path))}
    )
    assert driver.process.wait(PATIENCE) == 0, driver.log
    inputs.check()
