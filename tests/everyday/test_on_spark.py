"""A part of the everyday SQL on the engine with Spark; all of it runs on the engine without a JVM."""

from __future__ import annotations

import pytest
from tests.everyday.corpus import answers, shown
from tests.everyday.test_golden import PAIRS
from tests.support.snapshots import Pair

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

TITLES = (
    "TUMBLE as Flink writes it",
    "CUMULATE grows in steps",
    "SESSION joins rows that are exactly the gap apart",
    "the window of Spark in GROUP BY",
    "the highest price of each window, joined to its bids",
    "NOT IN of a query with a NULL in it holds for nothing",
    "INTERSECT",
    "comparison with a query about each row",
    "arrays and texts in the order of time",
    "how two values vary together",
    "bits",
    "the row with the greatest and the least value",
    "LEFT JOIN of windows",
    "LEFT JOIN with a table",
    "a total of the time before each row",
    "the row before, and how many there were",
    "UNNEST of structs",
    "elements of arrays and values of maps",
)


@pytest.mark.parametrize("title", TITLES)
def test_spark_says_the_same(title: str, spark: object) -> None:
    pair: Pair = next(pair for pair in PAIRS if pair.title == title)
    assert shown(answers(pair.text, "spark")) == shown(answers(pair.text, "reference"))
