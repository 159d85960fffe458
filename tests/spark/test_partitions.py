"""How the rows of a micro-batch lie in partitions changes no answer.

Rows are told apart where a row that leaves takes results with it: in aggregates and distinct values of joins
over windows whose rows leave when others come, and over INTERNAL windows. What tells them apart must not come
from the place of a row in its partition, since every partition has a first row.
"""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, note, settings, strategies as st
from tests.spark.test_relational import assert_engine_agrees, assert_executor_agrees
from tests.support.plans import refused_is_redrawn

import windrow as wr
from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.language.compile import compile_query
from windrow.testing import Harness
from windrow.testing.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAMS = dict.fromkeys(("r", "s"), ("k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 2"))

#: windows whose rows leave when others come, and two in which a row knows when it leaves
WINDOWS = [
    "[ROWS 4]",
    "[ROWS 2 PARTITION BY k]",
    "[ROWS 4 SLIDE 2 ROWS]",
    "[ROWS 3 SLIDE 4]",
    "[RANGE 5 RATTR t SLIDE 2 ROWS SATTR rank(t)]",
    "[SESSION 2 PARTITION BY k]",
    "[RANGE 5]",
    "[RANGE 6 SLIDE 3]",
]
SHAPES = [
    "SELECT x.k, COUNT(*) AS n FROM r {0} x, s {1} y WHERE x.k = y.k GROUP BY x.k",
    "SELECT SUM(x.v) AS total, MAX(y.v) AS most FROM r {0} x, s {1} y WHERE x.k = y.k",
    "SELECT DISTINCT x.k, y.v FROM r {0} x, s {1} y WHERE x.k = y.k",
    "SELECT DISTINCT y.v FROM r {0} x, s {1} y WHERE x.v < y.v",
    "SELECT x.k, COUNT(*) AS n FROM r {0} x, s {1} y, r {2} z WHERE x.k = y.k AND y.k = z.k GROUP BY x.k",
    "SELECT RSTREAM(x.v, y.v) FROM r {0} x, s {1} y WHERE x.k = y.k",
    "SELECT x.k, y.v FROM r {0} x, s {1} y WHERE x.k = y.k",
    "SELECT x.k, COUNT(*) AS n FROM (SELECT k, v FROM r UNION ALL SELECT k, v FROM s) {0} x, s {1} y"
    " WHERE x.k = y.k GROUP BY x.k",
    "SELECT v, COUNT(*) AS n FROM r {0} x WHERE EXISTS (SELECT * FROM s {1} y WHERE y.k = x.k) GROUP BY v",
]
INTERNAL = {text: f"{text[:-1]} INTERNAL]" for text in WINDOWS if "SESSION" not in text}


def compiled(text: str) -> Emit:
    """A query over r and s."""
    return compile_query(text, declared(STREAMS, {}))


@st.composite
def queries(draw: st.DrawFn) -> Emit:
    """A query of this kind; what the language refuses is drawn again."""
    windows = [draw(st.sampled_from(WINDOWS)) for _ in range(3)]
    if draw(st.integers(0, 4)) == 0:
        windows = [INTERNAL.get(window, window) for window in windows]
    text = draw(st.sampled_from(SHAPES)).format(*windows)
    note(text)
    return refused_is_redrawn(compiled, text)


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Micro-batches of both streams, each of several rows in no order."""
    rows = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(-2, 2))
    steps: list[Any] = []
    for around in range(0, 5 * draw(st.integers(1, 4)), 5):
        for name in ("r", "s"):
            batch = draw(st.lists(rows, min_size=2, max_size=6))
            steps += [("push", (name, [(k, v, around + t) for k, v, t in batch]))]
        steps += [("take", ())]
    return [*steps, ("finish", ()), ("take", ())]


@pytest.mark.deep
@given(plan=queries(), script=histories(), seed=st.integers(0, 1 << 16))
@settings(max_examples=40)
def test_rows_that_leave_take_their_own_results_with_them(plan: Emit, script: list[Any], seed: int) -> None:
    assert_engine_agrees(plan, script, seed, spark=False)


#: in each of these a row of some window leaves when others come, and takes results with it
JOINS = [
    "SELECT x.k, COUNT(*) AS n FROM r [ROWS 12] x, s [ROWS 15] y WHERE x.k = y.k GROUP BY x.k",
    "SELECT DISTINCT x.v, y.v FROM r [ROWS 3 PARTITION BY k] x, s [RANGE 9] y WHERE x.k = y.k",
    "SELECT COUNT(*) AS n FROM r [RANGE 8 RATTR t SLIDE 2 ROWS SATTR rank(t)] x, s [ROWS 6 SLIDE 3 ROWS] y"
    " WHERE x.k = y.k",
]


def scripted(batches: int = 4, size: int = 8) -> list[Any]:
    """Batches of both streams, large enough to lie in several partitions."""
    chance, steps = Random(7), []
    for around in range(0, 5 * batches, 5):
        for name in ("r", "s"):
            rows = [(chance.randint(0, 2), chance.randint(0, 3), around + n // 2) for n in range(size)]
            steps.append(("push", (name, rows)))
        steps.append(("take", ()))
    return [*steps, ("finish", ()), ("take", ())]


def each_by_itself(table: pa.Table) -> list[pa.Table]:
    """Every row in a partition of its own."""
    return [table[place : place + 1] for place in range(table.num_rows)]


@pytest.mark.parametrize("text", JOINS)
def test_every_row_in_a_partition_of_its_own(text: str) -> None:
    executor = SparkExecutor(compiled(text), spark=False, cut=each_by_itself)
    assert assert_executor_agrees(executor, scripted()) > 5


@pytest.mark.parametrize("window", ["[UNBOUNDED]", "[LANDMARK FROM 3]", "[NOW]"])
def test_rows_that_are_numbered_as_they_come_are_numbered_by_one_task(window: str) -> None:
    """Also where no window counts them, since the stream's progress is their number."""
    numbered = declared({"r": ("k BIGINT, v BIGINT, t BIGINT", "WATTR row_num ORDERED")}, {})
    plan = compile_query(f"SELECT k, COUNT(*) AS n FROM r {window} GROUP BY k", numbered)
    script = [step for step in scripted() if step[1][:1] != ("s",)]
    executor = SparkExecutor(plan, spark=False, cut=each_by_itself)
    assert assert_executor_agrees(executor, script) > 5


def test_partitions_of_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    partitions: list[int] = []
    framed = SparkExecutor._framed

    def counted(self: SparkExecutor, stream: str, table: pa.Table) -> Any:
        frame = framed(self, stream, table)
        partitions.append(frame.rdd.getNumPartitions())
        return frame

    monkeypatch.setattr(SparkExecutor, "_framed", counted)
    for text in JOINS:
        assert assert_executor_agrees(SparkExecutor(compiled(text)), scripted(batches=3)) > 5
    assert min(partitions) > 1


@pytest.mark.parametrize("files_per_batch", [1, 2])
def test_files_of_a_micro_batch_on_spark(spark: SparkSession, tmp_path: Path, files_per_batch: int) -> None:
    """Each file is a partition of its batch."""
    pushed = [values for verb, values in scripted() if verb == "push"]
    for number, (name, rows) in enumerate(pushed):
        path = tmp_path / name / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(dict(zip("kvt", zip(*rows, strict=True), strict=True))), path)
        os.utime(path, (1e9 + number, 1e9 + number))  # the oldest file is read first
    with wr.connect(spark, state=None) as w:
        for name, (columns, options) in STREAMS.items():
            source = f"files://{tmp_path}/{name}/*.parquet?files_per_batch={files_per_batch}"
            w.sql(f"CREATE STREAM {name} ({columns}) {options} FROM '{source}'")
        queries = [w.query(f"q{place}", text) for place, text in enumerate(JOINS)]
        w.run(once=True, flush=True)
        found = [each.results().to_pylist() for each in queries]
    for text, results in zip(JOINS, found, strict=True):
        harness = Harness(text, STREAMS)
        for name, each in pushed:
            harness.push(name, each)
        harness.finish()
        told = sorted((row.pop("at"), row.pop("op", "+"), *row.values()) for row in results)
        assert told == sorted((change.at, change.op, *change.row) for change in harness.take()), text
