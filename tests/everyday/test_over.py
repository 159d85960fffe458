"""Frames of OVER: DuckDB says the same of every row, and executors the same at every cut into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.everyday.database import by_duckdb

from windrow.engine.explain import declared
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.ranks import TAIL
from windrow.language.compile import compile_query
from windrow.testing import Harness

STREAMS = {"s": ("k BIGINT, v BIGINT, n BIGINT", "WATTR n")}
values = st.sampled_from([None, 0, 1, 2])
rows = st.lists(st.tuples(values, values, st.integers(0, 12)), max_size=12)
frames = st.tuples(
    st.sampled_from(["ROWS", "RANGE"]), st.sampled_from(["UNBOUNDED", 0, 1, 2, 3, 5]), st.integers(0, 2)
)
calls = st.sampled_from(
    [
        "COUNT(*)",
        "COUNT(v)",
        "SUM(v)",
        "AVG(v)",
        "MIN(v)",
        "MAX(v)",
        "FIRST_VALUE(v)",
        "LAST_VALUE(k)",
        "MEDIAN(v)",
        "COUNT(DISTINCT v)",
        "SUM(v) FILTER (WHERE k > 0)",
        "BOOL_OR(v > 1)",
        "VAR_POP(v)",
    ]
)
partitions = st.sampled_from(["", "PARTITION BY k ", "PARTITION BY k, v % 2 "])


@st.composite
def overs(draw: st.DrawFn) -> str:
    """One call with OVER, its order so full that a database has no choice among ties."""
    kind, start, stop = draw(frames)
    start = start if start == "UNBOUNDED" else max(start, stop)
    end = f"{stop} PRECEDING" if stop else "CURRENT ROW"
    order = "n"
    return (
        f"{draw(calls)} OVER ({draw(partitions)}ORDER BY {order} {kind} BETWEEN {start} PRECEDING AND {end})"
    )


queries = st.builds(
    lambda first, second, where: f"SELECT k, v, n, {first} AS x, {second} AS y FROM s{where}",
    overs(),
    overs(),
    st.sampled_from(["", " WHERE v > 0", " WHERE k IS NOT NULL"]),
)


def by_database(query: str, rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """In the order of (n, k, v): equal rows are equal also to a database."""
    for kind in ("ROWS", "RANGE"):
        full = "n" if kind == "RANGE" else "n, k NULLS FIRST, v NULLS FIRST"
        query = query.replace(f"ORDER BY n {kind}", f"ORDER BY {full} {kind}")
    return by_duckdb(query, {"s": rows}, STREAMS)


@given(overs(), rows)
def test_a_database_says_the_same_of_every_row(over: str, rows: list[tuple[Any, ...]]) -> None:
    edge = "FIRST_VALUE" in over or "LAST_VALUE" in over
    if edge and "RANGE" in over:  # of rows of one instant a database takes any as the first
        rows = list({row[2]: row for row in rows}.values())
    query = f"SELECT k, v, n, {over} AS x FROM s"
    harness = Harness(query, STREAMS)
    harness.push("s", rows)
    harness.finish()
    changes = harness.take()
    assert all(change.op == "+" and change.at == change.row[2] for change in changes)
    assert rounded(change.row for change in changes) == rounded(by_database(query, rows).elements())


def rounded(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Doubles may differ in the last places: a variance is rounded once, or step by step."""
    return Counter(
        tuple(round(value, 12) if isinstance(value, float) else value for value in row) for row in rows
    )


@pytest.mark.parametrize("executor", ["kernels", "engine"])
@given(query=queries, data=st.data())
def test_executors_agree_with_the_oracle(executor: str, query: str, data: st.DataObject) -> None:
    oracle, other = Harness(query, STREAMS), Harness(query, STREAMS, executor=executor)
    for step in range(data.draw(st.integers(1, 4), "batches")):
        batch = data.draw(rows, "rows")
        for harness in (oracle, other):
            harness.push("s", batch)
            harness.punctuate("s", 4 * step)
        assert other.take() == oracle.take()
    for harness in (oracle, other):
        harness.finish()
    assert other.take() == oracle.take()


@pytest.mark.parametrize(
    ("frame", "most"), [("ROWS 3 PRECEDING", 6), ("RANGE 4 PRECEDING", 10), ("ROWS UNBOUNDED PRECEDING", 2)]
)
def test_what_no_frame_reaches_is_forgotten(frame: str, most: int) -> None:
    """Of each partition the rows within a frame are kept, or one state if it has no beginning."""
    query = f"SELECT SUM(v) OVER (PARTITION BY k ORDER BY n {frame}) FROM s"
    executor = GeneralExecutor(compile_query(query, declared(STREAMS, {})))
    for n in range(0, 100, 10):
        executor.push("s", [(k, n, i) for i in range(n, n + 10) for k in (0, 1)])
        executor.punctuate("s", n + 10)
        executor.take()
    kept = [
        chunk.table.num_rows
        for state in executor.states.values()
        for name in state.chunks
        for chunk in (state.of(name) if name.endswith(TAIL) else ())
    ]
    assert 0 < sum(kept) <= most
