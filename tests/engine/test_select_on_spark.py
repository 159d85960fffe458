"""Kept rows and questions about them, on Spark: natively aggregated streams keep theirs too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.history import rows_of
from tests.support.oracle import told

from windrow.engine.adhoc.on_spark import OnSpark
from windrow.engine.engine import Arrival, WatermarkAdvance
from windrow.errors import QueryError, StateError
from windrow.execution.kept_rows import span_of
from windrow.session import Windrow
from windrow.state.names import DRIVER, KEPT
from windrow.testing import Harness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

#: a name, a value that may be missing, and an instant, with ties and disorder
ROWS: list[tuple[Any, ...]] = [
    (f"n{n % 5}", None if n % 7 == 0 else float(n % 13), 3 * n - (n % 4) * 2) for n in range(400)
]
COLUMNS = "name STRING, v DOUBLE, t BIGINT"
QUERIES = [
    "SELECT name, COUNT(*) AS n, MAX(v) AS most FROM s [RANGE 300] WHERE v > 2 GROUP BY name",
    "SELECT name, v, t FROM s [ROWS 7]",
    "SELECT name, v FROM s [ROWS 1 PARTITION BY name]",
    "SELECT a.name, COUNT(*) AS n FROM s [RANGE 20] a, s [RANGE 60] b WHERE a.name = b.name GROUP BY a.name",
]


@pytest.fixture(scope="module")
def w(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windrow]:
    columns = list(zip(*ROWS, strict=True))
    table = pa.table({"name": columns[0], "v": columns[1], "t": columns[2]})
    with Windrow(spark, tmp_path_factory.mktemp("state") / "state") as engine:
        engine.stream("s", table, wattr="t", keep="2000")
        engine.query("q", "SELECT name, SUM(v) AS total FROM s [RANGE 100 SLIDE 50] GROUP BY name")
        engine.run(once=True)
        yield engine


@pytest.mark.part(4)
@pytest.mark.parametrize("query", QUERIES)
def test_spark_and_this_process_answer_as_the_oracle_does(w: Windrow, query: str) -> None:
    oracle = told(query, [ROWS], {"s": (COLUMNS, "WATTR t")})
    oracle.finish()
    large, small = _large(w), w._asker.elsewhere
    wanted = oracle.relation(max(row[2] for row in ROWS))
    for elsewhere in (large, small):
        w._asker.elsewhere = elsewhere
        found = rows_of(w.select(query))
        assert len(found) == wanted.total()
        assert set(found) == set(wanted)


def test_a_question_on_spark_leaves_nothing(w: Windrow, tmp_path: Path) -> None:
    large, before = _large(w), w._asker.elsewhere
    w._asker.elsewhere = large
    try:
        with pytest.raises(QueryError) as error:
            w.select(QUERIES[0], timeout=0.05)
    finally:
        w._asker.elsewhere = before
    assert error.value.code == "too-long"
    assert not list((w._folder / "tmp").iterdir())
    assert not w._engine.log.leases._pins
    assert not w.spark.sparkContext._jsc.getPersistentRDDs()


def test_spark_reads_no_kept_rows_that_are_damaged(w: Windrow) -> None:
    """A bit of a value, a place that no decoder of Parquet looks at twice."""
    before, w._asker.elsewhere = w._asker.elsewhere, _large(w)
    path = w._folder / max(w._engine.last.chunks[KEPT], key=span_of).name
    whole = path.read_bytes()
    try:
        for at in (len(whole) // 3, len(whole) - 20):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
            with pytest.raises(StateError, match=path.name) as error:
                w.select(QUERIES[1])
            assert error.value.code == "damaged"
    finally:
        path.write_bytes(whole)
        w._asker.elsewhere = before
    assert w.select(QUERIES[1]).num_rows == 7


def test_synopses_that_spark_aggregates_answer_too(spark: SparkSession, tmp_path: Path) -> None:
    asked = "SELECT name, COUNT(v) AS n, SUM(v) AS total FROM r [RANGE 150] GROUP BY name"
    oracle = Harness(asked, streams={"r": (COLUMNS, "WATTR t ORDERED")})
    with Windrow(spark, tmp_path / "state") as w:
        w.sql(f"CREATE STREAM r ({COLUMNS}) WATTR t ORDERED")
        w.query("q", "SELECT name, SUM(v) AS total FROM r [RANGE 200 SLIDE 100] GROUP BY name")
        for rows, promised in ((ROWS[:60], 200), (ROWS[72:78], 250)):
            columns = dict(zip(("name", "v", "t"), zip(*rows, strict=True), strict=True))
            w._engine.epoch([Arrival("r", spark.createDataFrame(pa.table(columns)))])
            w._engine.epoch(promises=[WatermarkAdvance("r", promised)])
            oracle.push("r", rows)
            oracle.punctuate("r", promised)
        assert [ref for ref in w._engine.last.chunks[DRIVER] if ref.metadata.get("stream") == "r"]
        found = w.select(asked)
        assert found.schema.metadata[b"windrow.at"] == b"249"
        assert Counter(rows_of(found)) == oracle.relation(249)


def test_columns_may_have_the_names_of_what_is_added_to_them(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"__file": ["a", "b", "a"], "__moment": [1, 2, 3], "__rank": [7, 8, 9]}
    with Windrow(spark, tmp_path / "state") as w:
        w.stream("s", pa.table(rows), wattr="__moment", keep="100")
        w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 100 SLIDE 50]")
        w.run(once=True)
        w._asker.elsewhere = _large(w)
        found = w.select("SELECT __file, __moment, __rank FROM s [ROWS 1 PARTITION BY __file]")
    assert set(rows_of(found)) == {("a", 3, 9), ("b", 2, 8)}


def _large(w: Windrow) -> OnSpark:
    return OnSpark(w.spark, w._engine.log, w._folder, w._asker.turns, large=0)
