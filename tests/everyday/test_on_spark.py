"""Everyday SQL on the engine with Spark, many queries in one engine; each by itself runs without a JVM."""

from __future__ import annotations

import pytest
from tests.everyday.corpus import answers_together, shown
from tests.everyday.test_golden import PAIRS
from tests.support.snapshots import Pair

pytestmark = [pytest.mark.slow]

#: one of every kind
SAMPLE = (
    "TUMBLE as Flink writes it",
    "CUMULATE grows in steps",
    "SESSION joins rows that are exactly the gap apart",
    "the window of Spark in GROUP BY",
    "NOT IN of a query with a NULL in it holds for nothing",
    "INTERSECT",
    "arrays and texts in the order of time",
    "LEFT JOIN of windows",
    "LEFT JOIN with a table",
    "a total of the time before each row",
    "UNNEST of structs",
    "elements of arrays and values of maps",
    "what each row is of its group",
)


def answered(pair: Pair) -> str:
    """The answers of a triple, behind the canonical form."""
    return "\n".join(line for line in pair.message.splitlines() if not line.startswith("|"))


def check_together(pairs: list[Pair], *, spark: bool) -> None:
    found = answers_together({f"q{place}": pair.text for place, pair in enumerate(pairs)}, spark=spark)
    for changes, pair in zip(found.values(), pairs, strict=True):
        assert shown(changes) == answered(pair), pair.title


@pytest.mark.thorough
def test_an_engine_says_the_same_of_all_at_once() -> None:
    check_together(PAIRS, spark=False)


@pytest.mark.jvm
def test_spark_says_the_same_of_a_sample_at_once(spark: object) -> None:
    chosen = [pair for pair in PAIRS if pair.title in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    check_together(chosen, spark=True)


@pytest.mark.jvm
@pytest.mark.thorough
def test_spark_says_the_same_of_all_at_once(spark: object) -> None:
    check_together(PAIRS, spark=True)
