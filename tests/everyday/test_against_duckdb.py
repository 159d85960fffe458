"""Relational forms against another database: at every instant the answer is what DuckDB says.

The same text is asked twice. Windrow has streams under windows; DuckDB has, for each instant, tables of the
rows that the windows hold then. What `[RANGE r]` holds is computed here, from its definition.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.everyday.database import by_duckdb

from windrow.testing import Harness

STREAMS = dict.fromkeys(("l", "r", "m"), ("k BIGINT, v BIGINT, n BIGINT", "WATTR n"))
FIRST, LAST = 0, 12
values = st.sampled_from([None, 0, 1, 2])
rows = st.lists(st.tuples(values, values, st.integers(FIRST, LAST)), max_size=7)
lengths = st.integers(1, 8)
Row = tuple[Any, ...]

QUERIES = {
    "in": "SELECT k, v FROM l WHERE v IN (SELECT v FROM r WHERE r.k > 0)",
    "not in": "SELECT k, v FROM l WHERE v NOT IN (SELECT v FROM r WHERE r.k > 0)",
    "not in, correlated": "SELECT k, v FROM l WHERE v NOT IN (SELECT r.v FROM r WHERE r.k = l.k)",
    "in, correlated": "SELECT k, v FROM l WHERE v IN (SELECT r.v FROM r WHERE r.k <> l.k)",
    "not in, of a constant": "SELECT k, v FROM l WHERE 1 NOT IN (SELECT v FROM r)",
    "in, of groups": "SELECT k, v FROM l WHERE k IN (SELECT k FROM r GROUP BY k HAVING COUNT(*) > 1)",
    "not in, of groups": "SELECT k FROM l WHERE v NOT IN (SELECT MAX(v) FROM r GROUP BY k)",
    "in, of a union": "SELECT k FROM l WHERE v IN (SELECT v FROM r UNION ALL SELECT k FROM m)",
    "in, of pairs": "SELECT v FROM l WHERE (k, v) IN (SELECT k, v FROM r)",
    "both": "SELECT k FROM l WHERE k IN (SELECT k FROM r) AND v NOT IN (SELECT v FROM m) AND v > 0",
    "union": "SELECT k, v FROM l UNION SELECT v, k FROM r",
    "union of three": "SELECT k FROM l UNION SELECT k FROM r UNION ALL SELECT k FROM m",
    "intersect": "SELECT k, v FROM l INTERSECT SELECT k, v FROM r",
    "intersect all": "SELECT k FROM l INTERSECT ALL SELECT k FROM r",
    "except": "SELECT k, v FROM l EXCEPT SELECT k, v FROM r",
    "except all": "SELECT k FROM l EXCEPT ALL SELECT k FROM r",
    "precedence": "SELECT k FROM l UNION ALL SELECT k FROM r INTERSECT SELECT k FROM m",
    "nested sets": "SELECT k FROM (SELECT k FROM l EXCEPT SELECT k FROM r) AS x WHERE k IN (SELECT v FROM m)",
    "left join": "SELECT l.k, l.v, r.v FROM l LEFT JOIN r ON l.k = r.k",
    "left join with more": "SELECT r.v FROM l LEFT JOIN r ON l.k = r.k AND l.v > 0 AND r.v < 2 WHERE l.v < 2",
    "right join": "SELECT l.v, r.k, r.v FROM l RIGHT JOIN r ON l.k = r.k",
    "full join": "SELECT l.k, l.v, r.k, r.v FROM l FULL JOIN r ON l.k = r.k AND l.v >= r.v",
    "full join without equality": "SELECT l.k, r.k FROM l FULL OUTER JOIN r ON l.k < r.v",
    "left joins": "SELECT l.k, r.v, m.v FROM l LEFT JOIN r ON l.k = r.k LEFT JOIN m ON m.k = r.v",
    "inner, then left": "SELECT l.k, m.v FROM l JOIN r ON l.k = r.k LEFT JOIN m ON m.v = r.v WHERE r.v > 0",
    "left, then inner": "SELECT l.k, r.v, m.v FROM l LEFT JOIN r ON l.k = r.k JOIN m ON m.k = l.v",
    "left, then full": "SELECT l.k, r.v, m.v FROM l LEFT JOIN r ON l.k = r.k FULL JOIN m ON m.k = r.k",
    "without a partner": "SELECT l.k, l.v FROM l LEFT JOIN r ON l.k = r.k WHERE r.k IS NULL",
    "groups of a left join": "SELECT l.k, COUNT(r.v), SUM(r.v) FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
    "in over a full join": "SELECT r.v FROM l FULL JOIN r ON l.k = r.k WHERE r.k IN (SELECT k FROM m)",
    "row number": "SELECT k, v, n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, n) AS p FROM l",
    "rank": "SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) AS p FROM l",
    "dense rank": "SELECT k, v, DENSE_RANK() OVER (ORDER BY v DESC, k) AS p FROM l",
    "top of each": "SELECT k FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v) AS p FROM l) WHERE p<3",
    "qualify": "SELECT k, v FROM l WHERE v IS NOT NULL QUALIFY RANK() OVER (PARTITION BY k ORDER BY v) = 1",
    "rank of groups": "SELECT k, SUM(v) AS s, RANK() OVER (ORDER BY SUM(v) DESC) AS p FROM l GROUP BY k",
    "rank of a join": "SELECT l.k, RANK() OVER (PARTITION BY l.k ORDER BY r.v) FROM l JOIN r ON l.k = r.k",
    "of all rows": "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS s, COUNT(*) OVER () AS c FROM l",
    "share of a group": "SELECT k, v * 2 / COUNT(v) OVER (PARTITION BY k, v > 1) AS s FROM l WHERE v > 0",
    "more than the group": "SELECT k, v FROM l QUALIFY v >= MAX(v) OVER (PARTITION BY k)",
    "of all pairs": "SELECT l.k, MAX(r.v) OVER (PARTITION BY l.v) AS m FROM l JOIN r ON l.k = r.k",
    "names given before": "SELECT k + 1 AS a, a * 2 AS b, b - v AS c FROM l",
    "scalar": "SELECT k, v FROM l WHERE v >= (SELECT AVG(v) FROM r)",
    "two scalars": "SELECT k FROM l WHERE v BETWEEN (SELECT MIN(v) FROM r) AND (SELECT MAX(k) FROM m)",
    "scalar, correlated": "SELECT k, v FROM l WHERE v >= (SELECT MAX(v) FROM r WHERE r.k = l.k)",
    "scalar in arithmetic": "SELECT k FROM l WHERE v + 1 > 2 * (SELECT MIN(v) FROM r) - 1",
}


def windowed(query: str, sizes: dict[str, int]) -> str:
    """The query with a window behind every stream in FROM."""
    for name, size in sizes.items():
        query = query.replace(f"FROM {name}", f"FROM {name} [RANGE {size}]")
        query = query.replace(f"JOIN {name} ", f"JOIN {name} [RANGE {size}] ")
    return query


@pytest.mark.part(7)
@pytest.mark.cases
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_at_every_instant_the_answer_is_that_of_a_database(name: str, data: st.DataObject) -> None:
    query = QUERIES[name]
    streams = {stream: data.draw(rows, stream) for stream in STREAMS}
    sizes = {stream: data.draw(lengths, f"RANGE of {stream}") for stream in STREAMS}
    harness = Harness(windowed(query, sizes), STREAMS)
    read = {node.stream.name for node in harness.plan.walk() if hasattr(node, "stream")}
    for stream in read:
        harness.push(stream, streams[stream])
    harness.finish()
    for instant in data.draw(st.sets(st.integers(FIRST, LAST + 8), min_size=3, max_size=6), "instants"):
        held = {
            stream: [row for row in streams[stream] if instant - sizes[stream] < row[2] <= instant]
            for stream in STREAMS
        }
        assert harness.relation(instant) == by_duckdb(query, held, STREAMS), instant


@pytest.mark.part(9)
@pytest.mark.cases
@pytest.mark.parametrize("executor", ["kernels", "engine"])
@pytest.mark.parametrize("name", QUERIES)
@given(data=st.data())
def test_executors_agree_with_the_oracle(name: str, executor: str, data: st.DataObject) -> None:
    slides = data.draw(st.sampled_from(["", " SLIDE 2", " SLIDE 3"]), "slide")
    sizes = {stream: data.draw(lengths, f"RANGE of {stream}") for stream in STREAMS}
    query = windowed(QUERIES[name], sizes).replace("]", f"{slides}]")
    oracle, other = Harness(query, STREAMS), Harness(query, STREAMS, executor=executor)
    read = sorted({node.stream.name for node in oracle.plan.walk() if hasattr(node, "stream")})
    for step in range(data.draw(st.integers(1, 3), "batches")):
        for stream in read:
            batch = data.draw(rows, stream)
            for harness in (oracle, other):
                harness.push(stream, batch)
                harness.punctuate(stream, FIRST + 4 * step)
        assert other.take() == oracle.take()
    for harness in (oracle, other):
        harness.finish()
    assert other.take() == oracle.take()
