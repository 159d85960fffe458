"""A SELECT by itself that reads an archive: the oracle's answer, from the keys in question alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.engine.test_select_oracle import COLUMNS, OPTIONS, scripts
from tests.support.history import rows_of
from tests.support.life import Life
from tests.support.oracle import told

from windrow.errors import QueryError

pytestmark = pytest.mark.deep

ARCHIVES = "CREATE ARCHIVE by_k ON s KEY k KEEP 41; CREATE ARCHIVE by_v ON s KEY v PARTITIONS 2 x 3 KEEP 41"
QUERIES = [
    "SELECT v, t FROM s [RANGE 40] WHERE k = 2",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 20] WHERE v BETWEEN 1 AND 3 AND k <> 0 GROUP BY k",
    "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 20 SLIDE 10] WHERE k IN (0, 3)",
    "SELECT DISTINCT k FROM s [RANGE 30]",
    "SELECT a.v, b.t FROM s [RANGE 10] a, s [RANGE 25] b WHERE a.k = b.k AND b.k = 1",
    "SELECT k FROM s [NOW] WHERE v = NULL",
]


@settings(max_examples=15, deadline=None)
@given(scripts(), st.booleans())
def test_what_archives_give_is_what_the_oracle_has(script: list[tuple[str, Any]], keeps: bool) -> None:
    declared = f"CREATE STREAM s ({COLUMNS}) {OPTIONS} {'KEEP 40' if keeps else ''}; {ARCHIVES}"
    pushed: list[Any] = []
    with TemporaryDirectory() as folder:
        w = Life(Path(folder))
        w.sql(declared)
        for kind, what in script:
            if kind == "restart":
                w.close()
                w = Life(Path(folder))
                w.sql(declared)
            elif kind == "s":
                w.push(*what)
                pushed.append(what)
            elif kind == "look":
                for query in QUERIES:
                    compare(w, query, pushed)
        w.close()


def compare(w: Life, query: str, pushed: list[Any]) -> None:
    if not any(pushed):
        return
    found = w.select(query)
    at = found.schema.metadata.get(b"windrow.at")
    oracle = told(query, pushed, {"s": (COLUMNS, OPTIONS)})
    expected = oracle.relation(int(at)) if at is not None else Counter()
    assert Counter(rows_of(found)) == expected, (query, at)


def test_the_cheapest_way_is_taken_and_told(tmp_path: Path) -> None:
    w = Life(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS}; {ARCHIVES}")
    for first in range(0, 400, 100):
        w.push(*((t % 50, t % 7, t // 10) for t in range(first, first + 100)))
    assert how(w, "SELECT v FROM s [RANGE 20] WHERE k = 3").startswith("once    archive by_k, k = 3: reads ")
    assert how(w, "SELECT k FROM s [RANGE 20] WHERE v >= 6").startswith("once    archive by_v, 6 ≤ v: reads ")
    with pytest.raises(QueryError, match="KEEP") as refused:
        w.select("SELECT v FROM s [RANGE 60] WHERE k = 3")
    assert refused.value.code == "not-kept"
    w.close()


def how(w: Life, query: str) -> str:
    (explained,) = w.sql(f"EXPLAIN {query}")
    (line,) = [line for line in explained.runs if line.startswith("once")]
    return str(line)
