"""Gaps of a billion slides between two rows: time and memory follow the rows, not the slides between them."""

from __future__ import annotations

import pytest
from tests.support.life import Life

from windrow.errors import DataError, QueryError
from windrow.testing import Harness

STREAMS = {"s": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED")}
GAP = 10**12
QUERIES = [
    "SELECT k, SUM(v) AS s FROM s [RANGE 10 SLIDE 1] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 10 SLIDE 1]",
    "SELECT k, window_start FROM s [RANGE 10 SLIDE 1]",
    "SELECT a.k FROM s [RANGE 10 SLIDE 1] AS a, s [RANGE 5 SLIDE 1] AS b WHERE a.k = b.k",
    "SELECT ISTREAM(k, COUNT(*) AS n) FROM s [LANDMARK SLIDE 1] GROUP BY k",
    "SELECT ISTREAM(COUNT(*)) FROM s [ROWS 3 SLIDE 1]",
    "SELECT MAX(s) FROM (SELECT SUM(v) AS s FROM s [RANGE 4 SLIDE 2]) [RANGE 10 SLIDE 5]",
    "SELECT k, COUNT(*) AS n FROM s [CUMULATE 10 SLIDE 1] GROUP BY k",
    "SELECT ISTREAM(k, COUNT(*) AS n) FROM s [RANGE 5 SLIDE 1 LAG 3] GROUP BY k",
]


@pytest.mark.part(2)
@pytest.mark.parametrize("executor", ["kernels", "engine"])
@pytest.mark.parametrize("query", QUERIES)
def test_answers_of_a_gap_are_those_of_a_short_one(query: str, executor: str) -> None:
    """The same answers as over a gap that the oracle can walk through, later."""

    def told(gap: int, which: str) -> list[tuple[str, tuple[object, ...], int]]:
        harness = Harness(query, STREAMS, executor=which)
        harness.push("s", [(1, 5, 0), (2, 6, 3)])
        harness.push("s", [(1, 7, gap), (1, 7, gap + 30)])
        harness.finish()
        return [
            (change.op, tuple(x - gap if type(x) is int and x > gap // 2 else x for x in change.row), at)
            for change in harness.take()
            for at in [change.at - gap if change.at > gap // 2 else change.at]
        ]

    assert told(GAP, executor) == told(200, "reference")


@pytest.mark.parametrize("what", ["DISTINCT k", "COUNT(*)"])
def test_answers_for_each_slide_of_a_gap_are_an_error_of_that_query(what: str) -> None:
    harness = Harness(f"SELECT {what} FROM s [LANDMARK SLIDE 1]", STREAMS, executor="kernels")

    def told() -> None:
        harness.push("s", [(1, 5, 0)])
        harness.push("s", [(1, 5, GAP)])
        harness.take()

    with pytest.raises(DataError, match="too many at once") as refused:
        told()
    assert refused.value.code == "too-many-answers"


def test_a_query_that_would_answer_all_day_says_so_when_it_is_registered(tmp_path) -> None:
    w = Life(tmp_path)
    w.sql("CREATE STREAM t (k BIGINT, ts TIMESTAMP) WATTR ts ORDERED")
    with pytest.raises(QueryError, match="would answer 86,400,000,000 times a day") as refused:
        w.sql("CREATE QUERY q AS SELECT COUNT(*) FROM t [LANDMARK SLIDE 1 MICROSECOND]")
    assert refused.value.code == "too-many-answers"
    w.sql("CREATE QUERY q AS SELECT ISTREAM(COUNT(*)) FROM t [LANDMARK SLIDE 1 MICROSECOND]")
    w.sql("CREATE QUERY often AS SELECT COUNT(*) FROM t [LANDMARK SLIDE 1 SECOND]")
    assert "told again at every SLIDE, 86,400 times a day" in str(w.queries["often"].explain())
    w.close()
