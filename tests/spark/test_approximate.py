"""Estimates by the engine, in this process and on Spark: as the oracle defines them, over restarts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from windrow.engine.explain import declared
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor
from windrow.testing.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMS = {"s": ("k BIGINT, x BIGINT, w STRING, ts BIGINT", "WATTR ts SLACK 4")}
QUERIES = (
    "SELECT k, APPROX_COUNT(*, 0.4) AS n, APPROX_SUM(x, 0.2) AS t, MAX(x) AS m FROM s [RANGE 25] GROUP BY k",
    "SELECT APPROX_SUM(x, 0.5) FILTER (WHERE k > 0) AS t FROM s [RANGE 9]",
    "SELECT k, APPROX_FREQUENCY(w, 'b', 0.6) AS b, APPROX_FREQUENCY(x, 3) AS three,"
    " APPROX_COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] GROUP BY k",
    "SELECT APPROX_FREQUENCY(w, 'a', 0.9) AS a, APPROX_TOP_K(w, 2, 3) AS top FROM s [RANGE 12]",
)


def assert_agrees(query: str, *, spark: bool, seed: int) -> None:
    chance = random.Random(seed)
    rows = [
        (
            chance.randint(0, 2),
            chance.choice([None, 0, 1, 3, 50]),
            chance.choice("abcdef"),
            t + chance.randint(0, 4),
        )
        for t in range(0, 90, 2)
    ]
    emit = compile_query(query, declared(STREAMS, {}))
    mine: Any = SparkExecutor(emit, spark=spark)
    oracle = ReferenceExecutor(emit)
    found: list[Any] = []
    expected: list[Any] = []
    try:
        at = 0
        while at < len(rows):
            size = chance.randint(1, 20)
            for executor, changes in ((oracle, expected), (mine, found)):
                executor.push("s", rows[at : at + size])
                changes += executor.take()
            at += size
            if chance.random() < 0.4:
                mine.restart()
        for executor, changes in ((oracle, expected), (mine, found)):
            executor.finish()
            changes += executor.take()
    finally:
        mine.close()
    assert len(expected) > 10
    assert found == expected


@pytest.mark.part(4)
@pytest.mark.parametrize("query", QUERIES)
def test_the_engine_in_this_process_estimates_as_defined(query: str) -> None:
    for seed in range(2):
        assert_agrees(query, spark=False, seed=seed)


@pytest.mark.thorough
def test_spark_estimates_as_defined(spark: SparkSession) -> None:
    for query in QUERIES[:3:2]:
        assert_agrees(query, spark=True, seed=3)
