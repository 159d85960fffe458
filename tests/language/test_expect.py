"""EXPECT: what a declaration tells the planner of a stream."""

from __future__ import annotations

import pytest

from windrow.algebra.catalog import Expected
from windrow.engine.explain import declared
from windrow.errors import QueryError
from windrow.language.compile import compile_query, declare_stream
from windrow.optimizer.flows import Statistics
from windrow.physical import plan_query

COLUMNS = "k BIGINT, v BIGINT, ts TIMESTAMP"


def test_a_stream_says_what_to_expect() -> None:
    stream = declare_stream("s", COLUMNS, "WATTR ts EXPECT 500 ROWS (k 1000, V 20) ORDERED")
    assert stream.expected == Expected(500.0, (("k", 1000), ("v", 20)))
    assert declare_stream("s", COLUMNS, "EXPECT 5 ROWS").expected == Expected(5.0)
    assert declare_stream("s", COLUMNS, "").expected is None


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("EXPECT ROWS", "how many rows come per second"),
        ("EXPECT 5", "ROWS"),
        ("EXPECT 5 ROWS (k)", "how many different values"),
        ("EXPECT 5 ROWS (k 5", r"\)|closed|bracket"),
        ("EXPECT 0 ROWS", "EXPECT is about rows that come"),
        ("EXPECT 5 ROWS (x 5)", "no column `x`"),
    ],
)
def test_what_is_no_expectation_is_refused(option: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        declare_stream("s", COLUMNS, option)


def test_what_is_declared_decides_before_what_was_seen() -> None:
    query = (
        "SELECT a.k, c.v FROM a [RANGE 1 HOUR], c [RANGE 1 HOUR] WHERE a.k = c.k"
        " AND NOT EXISTS (SELECT * FROM b [RANGE 1 HOUR] WHERE b.k = a.k)"
    )
    rare = dict.fromkeys("abc", (COLUMNS, "EXPECT 1 ROWS (k 1000000)"))
    often = dict.fromkeys("abc", (COLUMNS, "EXPECT 100 ROWS (k 10)"))
    seen = Statistics(rates=dict.fromkeys("abc", 10), distinct={f"{name}.k": 10 for name in "abc"})
    plans = [plan_query(compile_query(query, declared(each, {})), seen) for each in (rare, often)]
    names = [plan.chosen.name for plan in plans if plan.chosen is not None]
    assert names == ["the rules alone", "push_down_negation"]
