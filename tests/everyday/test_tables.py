"""Outer joins with tables, and queries over tables in WHERE, against DuckDB and between executors."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.everyday.database import by_duckdb

from windrow.errors import QueryError
from windrow.testing import Harness

STREAMS = dict.fromkeys(("s", "r"), ("k BIGINT, v BIGINT, n BIGINT", "WATTR n"))
LAST = 12
few = st.sampled_from([None, 0, 1, 2])
rows = st.lists(st.tuples(few, few, st.integers(0, LAST)), max_size=6)
#: at each of some instants rows come, and some of those that are there leave
histories = st.lists(
    st.tuples(st.integers(0, LAST), st.lists(st.tuples(few, few), max_size=2), st.integers(0, 7)), max_size=4
)
Row = tuple[Any, ...]

QUERIES = {
    "left join": "SELECT s.k, s.v, t.k AS tk, t.w FROM s LEFT JOIN t ON t.k = s.k",
    "left join with more": "SELECT s.k, t.w FROM s LEFT JOIN t ON t.k = s.k AND t.w > s.v WHERE s.v < 2",
    "left join without equality": "SELECT s.k, t.w FROM s LEFT JOIN t ON t.w > s.v",
    "right join": "SELECT s.k, t.w FROM t RIGHT JOIN s ON t.k = s.k",
    "groups": "SELECT s.k, COUNT(t.w) AS c FROM s LEFT JOIN t ON t.k = s.k GROUP BY s.k",
    "inner, then left": "SELECT s.k, r.v, t.w FROM s JOIN r ON r.k = s.k LEFT JOIN t ON t.k = s.v",
    "in": "SELECT k, v FROM s WHERE k IN (SELECT k FROM t)",
    "in, of pairs": "SELECT k FROM s WHERE (k, v) IN (SELECT k, w FROM t)",
    "in, correlated": "SELECT k, v FROM s WHERE k IN (SELECT k FROM t WHERE t.w > s.v)",
    "not in": "SELECT k, v FROM s WHERE k NOT IN (SELECT k FROM t)",
    "not in, filtered": "SELECT k, v FROM s WHERE k NOT IN (SELECT k FROM t WHERE w > 0)",
    "exists": "SELECT k, v FROM s WHERE EXISTS (SELECT 1 FROM t WHERE t.k = s.k AND t.w > 0)",
    "not exists": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k)",
    "rows of the table": "SELECT s.v, t.k, t.w FROM s RIGHT JOIN t ON t.k = s.k",
    "rows of both": "SELECT s.k, s.v, t.w FROM s FULL JOIN t ON t.k = s.k AND t.w > s.v",
    "groups of the table": "SELECT t.k, COUNT(s.k) AS c FROM t LEFT JOIN s ON t.k = s.k GROUP BY t.k",
    "rows of the table beside two": "SELECT s.v, t.w FROM s JOIN r ON r.k = s.k RIGHT JOIN t ON t.k = s.k",
    "both": "SELECT k FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k) AND k IN (SELECT k FROM t)",
}


#: rows of the table are kept, from when a window has had a row
KEPT = frozenset({"rows of the table", "rows of both", "groups of the table", "rows of the table beside two"})


def windowed(query: str, window: str) -> str:
    for name in STREAMS:
        for word in ("FROM", "JOIN"):
            query = query.replace(f"{word} {name} ", f"{word} {name} {window} ")
    return query


def changed(harness: Harness, history: list[tuple[int, list[Row], int]]) -> list[tuple[int, Counter[Row]]]:
    """Give the changes to a harness; what the table holds after each."""
    there: Counter[Row] = Counter()
    found = []
    for at, new, picks in sorted(history, key=lambda change: change[0]):
        gone = [row for place, row in enumerate(there.elements()) if picks >> place & 1]
        harness.update("t", at, insert=new, delete=gone)
        there = there - Counter(gone) + Counter(new)
        found.append((at, there))
    return found


@pytest.mark.part(3)
@pytest.mark.cases
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_a_relation_is_what_a_database_has_at_the_instant(name: str, data: st.DataObject) -> None:
    harness = Harness(
        windowed(QUERIES[name], "[RANGE 4]"), STREAMS, {"t": ("k BIGINT, w BIGINT", "RELATION")}
    )
    states = changed(harness, data.draw(histories, "table"))
    streams = {stream: data.draw(rows, stream) for stream in STREAMS}
    read = {node.stream.name for node in harness.plan.walk() if hasattr(node, "stream")}
    for stream in read:
        harness.push(stream, streams[stream])
    harness.finish()
    for instant in data.draw(st.sets(st.integers(0, LAST + 3), min_size=3, max_size=5), "instants"):
        held = {name: [row for row in streams[name] if instant - 4 < row[2] <= instant] for name in STREAMS}
        table = [there for at, there in states if at <= instant]
        held["t"] = list(table[-1].elements()) if table else []
        if name in KEPT and not any(row[2] <= instant for stream in read for row in streams[stream]):
            held["t"] = []
        assert harness.relation(instant) == by_duckdb(
            QUERIES[name], held, {**STREAMS, "t": ("k BIGINT, w BIGINT", "")}
        ), instant


@pytest.mark.cases
@pytest.mark.part(5)
@pytest.mark.parametrize("executor", ["kernels", "engine"])
@pytest.mark.parametrize("kind", ["RELATION", "NRR"])
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_executors_agree_with_the_oracle(name: str, kind: str, executor: str, data: st.DataObject) -> None:
    if kind == "NRR" and (name.startswith("not in") or name in KEPT):
        return
    window = data.draw(st.sampled_from(["[RANGE 4]", "[RANGE 4 SLIDE 2]", "[RANGE 3 SLIDE 2]"]), "window")
    tables = {"t": ("k BIGINT, w BIGINT", kind)}
    query = windowed(QUERIES[name], window)
    both = [Harness(query, STREAMS, tables), Harness(query, STREAMS, tables, executor)]
    history = data.draw(histories, "table")
    batches = {stream: [data.draw(rows, stream) for _ in range(2)] for stream in STREAMS}
    answers = []
    for harness in both:
        changed(harness, history)
        read = sorted({node.stream.name for node in harness.plan.walk() if hasattr(node, "stream")})
        for turn in range(2):
            for stream in read:
                harness.push(stream, batches[stream][turn])
        harness.finish()
        answers.append(harness.take())
    assert answers[1] == answers[0]


def test_not_in_an_nrr_table_is_refused_with_what_works() -> None:
    query = "SELECT k FROM s [RANGE 4] WHERE k NOT IN (SELECT k FROM t)"
    with pytest.raises(QueryError, match=r"NOT EXISTS \(SELECT 1 FROM t WHERE t\.k = "):
        Harness(query, STREAMS, {"t": ("k BIGINT, w BIGINT", "NRR")})
