"""Cutting a query into shards changes no answer: not what is told, and not how often it is told again.

A periodic answer is told at the reporting instants of the whole query. A shard knows its own rows only, so a
plan is cut where its own rows are enough: they bring all the instants at which they are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, note, settings, strategies as st
from tests.spark.test_relational import assert_engine_agrees, assert_executor_agrees
from tests.support.plans import refused_is_redrawn

from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.language.compile import compile_query
from windrow.physical.partitioning import placement_of
from windrow.testing.spark_executor import SparkExecutor

STREAMS = dict.fromkeys(("r", "s"), ("k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 2"))
TABLES = {"relation": "k BIGINT, v BIGINT", "nrr": "k BIGINT, v BIGINT"}

#: windows that count rows of each k, and others that mind no other row
WINDOWS = [
    "[ROWS 2 PARTITION BY k]",
    "[ROWS 1 SLIDE 1 PARTITION BY k]",
    "[ROWS 2 SLIDE 3 PARTITION BY k]",
    "[ROWS 2 SLIDE 2 ROWS PARTITION BY k]",
    "[ROWS 3 SLIDE 1 ROWS PARTITION BY k]",
    "[SESSION 2 PARTITION BY k]",
    "[RANGE 5]",
    "[RANGE 6 SLIDE 3]",
    "[RANGE 4 SLIDE 6]",
    "[LANDMARK SLIDE 2]",
    "[UNBOUNDED]",
]
SHAPES = [
    "SELECT {word}(k, v) FROM r {0}",
    "SELECT {word}(k, v) FROM r {0} WHERE v > 0",
    "SELECT {word}(k, COUNT(*) AS n, MAX(v) AS most) FROM r {0} GROUP BY k",
    "SELECT DISTINCT {word}(k, v) FROM r {0}",
    "SELECT {word}(k, v, window_end) FROM r {0}",
    "SELECT {word}(x.k, y.v) FROM r {0} x, s {1} y WHERE x.k = y.k",
    "SELECT {word}(x.k, COUNT(*) AS n) FROM r {0} x, s {1} y WHERE x.k = y.k GROUP BY x.k",
    "SELECT {word}(k, v) FROM r {0} x WHERE EXISTS (SELECT * FROM s {1} y WHERE y.k = x.k)",
    "SELECT {word}(k, v) FROM r {0} x WHERE NOT EXISTS (SELECT * FROM s {1} y WHERE y.k = x.k)",
    "SELECT {word}(k, v) FROM (SELECT k, v FROM r {0} UNION ALL SELECT k, v FROM s {1})",
    "SELECT {word}(k, v) FROM (SELECT k, v FROM r {0} EXCEPT ALL SELECT k, v FROM s {1})",
    "SELECT {word}(x.k, y.v) FROM r {0} x, relation y WHERE x.k = y.k",
    "SELECT {word}(x.k, y.v) FROM r {0} x, nrr y WHERE x.k = y.k",
    "SELECT {word}(q.k, q.v) FROM (SELECT k, v FROM r {0}) {1} q",
    "SELECT {word}(q.k, q.v) FROM (SELECT RSTREAM(k, v) FROM r {0}) {1} q",
]
WORDS = ["", "ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM_RESTORE", "RSTREAM_RESTORE"]


def compiled(text: str) -> Emit:
    """A query over the streams and tables above."""
    return compile_query(text, declared(STREAMS, TABLES))


def written(shape: str, windows: Sequence[str], word: str) -> str:
    """The text of a query; without a word there are no brackets after SELECT."""
    plain = shape if word else shape.replace("{word}(", "").replace(") FROM", " FROM", 1)
    return plain.format(*windows, word=word)


@st.composite
def queries(draw: st.DrawFn) -> Emit:
    """A query that is cut into shards; what the language refuses is drawn again."""
    windows = [draw(st.sampled_from(WINDOWS)) for _ in range(2)]
    windows = [f"{each[:-1]} INTERNAL]" if draw(st.integers(0, 5)) == 0 else each for each in windows]
    text = written(draw(st.sampled_from(SHAPES)), windows, draw(st.sampled_from(WORDS)))
    note(text)
    plan = refused_is_redrawn(compiled, text)
    assume(placement_of(plan))
    return plan


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Tables that change, and micro-batches of both streams, with rows of many groups in no order."""
    rows = st.tuples(st.sampled_from([None, 0, 1, 2, 3]), st.integers(0, 2), st.integers(-2, 2))
    content = [(k, k) for k in range(3)]
    steps: list[Any] = [("change", (name, draw(st.integers(-4, 9)), content, [])) for name in TABLES]
    for around in range(0, 5 * draw(st.integers(1, 3)), 5):
        for name in STREAMS:
            batch = draw(st.lists(rows, min_size=2, max_size=5))
            steps += [("push", (name, [(k, v, around + t) for k, v, t in batch]))]
        steps += [("take", ())] if draw(st.booleans()) else []
    return [*steps, ("finish", ()), ("take", ())]


@pytest.mark.deep
@given(plan=queries(), script=histories(), seed=st.integers(0, 1 << 16).map(lambda n: 3 * n + 2))
@settings(max_examples=30)
def test_shards_together_tell_what_one_tells(plan: Emit, script: list[Any], seed: int) -> None:
    assert_engine_agrees(plan, script, seed, spark=False)  # by this seed in three shards


#: what a shard would have to know of the others to tell its answers
TOGETHER = {
    "the last report, for rows that stay until others come": (
        "SELECT k, v FROM r [ROWS 1 SLIDE 1 PARTITION BY k]"
    ),
    "the last report, for the values of groups": (
        "SELECT k, COUNT(*) AS n FROM r [ROWS 2 SLIDE 3 PARTITION BY k] GROUP BY k"
    ),
    "the last report, for rows that match nothing": (
        "SELECT k, v FROM r [ROWS 1 SLIDE 1 PARTITION BY k] x"
        " WHERE NOT EXISTS (SELECT * FROM s [RANGE 4 SLIDE 6] y WHERE y.k = x.k)"
    ),
    "the last report, for results that outlive their window": (
        "SELECT RSTREAM(k, v) FROM r [RANGE 6 SLIDE 3 INTERNAL]"
    ),
    "the last report of a nested query": (
        "SELECT q.k, q.v FROM (SELECT RSTREAM(k, v) FROM r [ROWS 1 SLIDE 1 PARTITION BY k])"
        " [RANGE 4 SLIDE 2] q"
    ),
    "each extent of rows that never leave": "SELECT ISTREAM(k, v, window_end) FROM r [LANDMARK SLIDE 2]",
    "the rows that move windows of other groups": (
        "SELECT x.k, y.v FROM r [ROWS 2 SLIDE 2 ROWS PARTITION BY k] x, s [RANGE 6 SLIDE 3] y WHERE x.k = y.k"
    ),
    "the reports at which a value becomes a result": (
        "SELECT ISTREAM(x.k, COUNT(*) AS n) FROM r [ROWS 3 SLIDE 1 ROWS PARTITION BY k INTERNAL] x,"
        " s [ROWS 3 SLIDE 1 ROWS PARTITION BY k] y WHERE x.k = y.k GROUP BY x.k"
    ),
}
#: what a shard can tell by itself
APART = {
    "changes come with rows": "SELECT ISTREAM(k, v) FROM r [ROWS 1 SLIDE 1 PARTITION BY k]",
    "rows leave by themselves": "SELECT k, v FROM r [RANGE 6 SLIDE 3]",
    "results leave with the first of their rows": (
        "SELECT x.k, y.v FROM r [RANGE 6 SLIDE 3] x, s [ROWS 1 SLIDE 1 PARTITION BY k] y WHERE x.k = y.k"
    ),
    "each extent is reported by itself": "SELECT k, v FROM r [ROWS 2 SLIDE 2 ROWS PARTITION BY k]",
    "new rows of what only grows": "SELECT ISTREAM(k, v) FROM r [LANDMARK SLIDE 2]",
    "new results that stay": (
        "SELECT ISTREAM(x.k, y.v) FROM r [RANGE 6 SLIDE 3 INTERNAL] x, s [RANGE 4 SLIDE 6 INTERNAL] y"
        " WHERE x.k = y.k"
    ),
}


def scripted() -> list[Any]:
    """Groups that end at different times, so that no shard has all reports."""
    rows = [(k, n % 3, n) for n, k in enumerate([None, 0, 0, 1, 1, 2, 2, 3, 3, 0, 4, 4, 4, 5, 5, 5])]
    pushed = [("push", (name, each)) for each in (rows[:9], rows[9:]) for name in STREAMS]
    return [*pushed[:2], ("take", ()), *pushed[2:], ("take", ()), ("finish", ()), ("take", ())]


@pytest.mark.parametrize("text", [*TOGETHER.values(), *APART.values()], ids=[*TOGETHER, *APART])
def test_what_is_told_again_is_told_by_every_shard(text: str) -> None:
    plan = compiled(text)
    assert bool(placement_of(plan)) == (text in APART.values())
    assert assert_executor_agrees(SparkExecutor(plan, spark=False, shards=3), scripted()) > 5
