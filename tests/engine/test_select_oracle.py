"""A SELECT by itself gives what the oracle has at the instant it names; whenever, wherever cut, and after."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.history import rows_of
from tests.support.life import Life
from tests.support.oracle import told

from windrow.errors import QueryError
from windrow.testing import Harness

pytestmark = pytest.mark.deep

COLUMNS, OPTIONS, KEEP = "k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 4", 40
SETUP = f"""
CREATE STREAM s ({COLUMNS}) {OPTIONS} KEEP {KEEP};
CREATE STREAM r ({COLUMNS}) {OPTIONS} KEEP {KEEP};
CREATE TABLE names (k BIGINT, name STRING) NRR;
CREATE TABLE rates (k BIGINT, rate BIGINT) RELATION;
"""
#: answered from what is kept, however long the stream has run
WITHIN = [
    "SELECT COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 40]",
    "SELECT k, MAX(v) AS most, COUNT(DISTINCT v) AS n FROM s [RANGE 25] GROUP BY k",
    "SELECT k, v FROM s [NOW]",
    "SELECT k, SUM(v) AS total FROM s [RANGE 20 SLIDE 10] GROUP BY k HAVING SUM(v) > 3",
    "SELECT DISTINCT v FROM s [RANGE 10] WHERE k IS NOT NULL",
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE 15] a, r [RANGE 20] b WHERE a.k = b.k",
    "SELECT a.t, b.t AS u FROM s [RANGE 12 SLIDE 6] a, s [RANGE 30] b WHERE a.v = b.v",
    "SELECT k FROM s [RANGE 20] EXCEPT ALL SELECT k FROM r [RANGE 10]",
    "SELECT k, v FROM s [RANGE 20] WHERE NOT EXISTS (SELECT * FROM r [RANGE 20] WHERE r.k = s.k)",
    "SELECT s.k, name FROM s [RANGE 20], names WHERE s.k = names.k",
    "SELECT s.k, rate * v AS paid FROM s [RANGE 20], rates WHERE s.k = rates.k",
    "SELECT RSTREAM(k, v) FROM s [RANGE 20] ORDER BY v DESC LIMIT 2",
    "SELECT MEDIAN(v) AS m FROM s [RANGE 35 SLIDE 5]",
    "SELECT window_start AS a, window_end AS b, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5]",
    "SELECT MAX(n) AS most FROM (SELECT COUNT(*) AS n FROM s [RANGE 8 SLIDE 4]) [RANGE 12]",
    "SELECT k FROM s [LIFETIME v] WHERE k = 1",
]
#: answered unless rows that matter were forgotten
PERHAPS = [
    "SELECT k, v, t FROM s [ROWS 3]",
    "SELECT k, v FROM s [ROWS 2 PARTITION BY k]",
    "SELECT COUNT(*) AS n FROM s [UNBOUNDED]",
    "SELECT SUM(v) AS total FROM s [LANDMARK FROM 10 UNTIL 60 SLIDE 5]",
    "SELECT k, v, t FROM s [SESSION 3 PARTITION BY k]",
    "SELECT SUM(v) AS total FROM s [ROWS 4 SLIDE 3 ROWS]",
    "SELECT SUM(v) AS total FROM s [ROWS 4 SLIDE 5]",
]
#: a slower stream holds the clock of a join back, to where the faster one may have forgotten rows
ALWAYS = [query for query in WITHIN if "LIFETIME" not in query and " r [" not in query]

values = st.one_of(st.none(), st.integers(0, 3))


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Batches with disorder, ties and NULLs, changes of tables, looks, and restarts, in any order."""
    clock, steps = 0, []
    for _ in range(draw(st.integers(3, 12))):
        kind = draw(st.sampled_from(["s", "s", "s", "r", "r", "look", "look", "restart", "table"]))
        if kind in "sr":
            clock += draw(st.integers(0, 25))
            times = st.integers(max(clock - 6, 0), clock + 2)
            rows = draw(st.lists(st.tuples(values, st.integers(-1, 4), times), max_size=6))
            steps.append((kind, rows))
        elif kind == "table":
            steps.append((kind, (draw(st.integers(0, 3)), draw(st.integers(0, 9)))))
        else:
            steps.append((kind, None))
    return [*steps, ("look", None)]


TABLES = {"names": ("k BIGINT, name STRING", "NRR"), "rates": ("k BIGINT, rate BIGINT", "RELATION")}


class Both:
    """The engine, and for each query the oracle, told the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[tuple[Any, ...]] = []
        self.open()

    def open(self) -> None:
        self.w = Life(self.folder)
        self.w.sql(SETUP)

    def do(self, kind: str, what: Any) -> None:
        if kind == "restart":
            self.w.close()
            self.open()
        elif kind == "table":
            at = max(self._clock(), 0) + 1
            rows = {"names": (what[0], f"n{what[1]}"), "rates": what}
            for table, row in rows.items():
                with suppress(Exception):
                    self.w.update(table, [row], at=at)
                    self.steps.append((table, at, [row], []))
        else:
            self.w.push(*what, stream=kind)
            self.steps.append((kind, what))

    def _clock(self) -> int:
        greatest = [
            record.greatest for record in self.w.engine.streams.values() if record.greatest is not None
        ]
        return max([*greatest, *(step[1] for step in self.steps if step[0] in TABLES)], default=0)

    def oracle(self, query: str) -> Harness:
        return told(query, self.steps, dict.fromkeys("sr", (COLUMNS, OPTIONS)), TABLES)

    def check(self, query: str, *, must: bool) -> str:
        try:
            found = self.w.select(query)
        except QueryError as error:
            if error.code != "not-kept" or must:
                raise
            streams = self.w.engine.last.streams.values()
            assert any(stream.options["kept_from"] != "-inf" for stream in streams)
            return "not kept"
        at = found.schema.metadata.get(b"windrow.at")
        if at is None:
            assert found.num_rows == 0
            return "nothing yet"
        assert int(found.schema.metadata[b"windrow.commit"]) == self.w.engine.last.number
        assert Counter(rows_of(found)) == self.oracle(query).relation(int(at)), (query, at)
        return "answered"


@pytest.mark.parametrize("isolation", ["latest", "window"])
def test_an_empty_engine_answers_with_nothing(tmp_path: Path, isolation: str) -> None:
    both = Both(tmp_path)
    for query in [*WITHIN, *PERHAPS]:
        assert both.w.select(query, isolation=isolation).num_rows == 0
    both.w.close()


@settings(max_examples=12, deadline=None)
@given(scripts(), st.data())
def test_selects_give_what_the_oracle_has(script: list[tuple[str, Any]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        both = Both(Path(folder))
        for kind, what in script:
            if kind != "look":
                both.do(kind, what)
                continue
            for query in data.draw(st.lists(st.sampled_from([*WITHIN, *PERHAPS]), min_size=2, max_size=5)):
                both.check(query, must=query in ALWAYS)
        both.w.close()


def test_after_the_end_the_last_row_counts(tmp_path: Path) -> None:
    both = Both(tmp_path)
    both.do("s", [(1, 5, 3), (2, 7, 19), (1, 1, 31)])
    both.w.end()
    assert rows_of(both.w.select("SELECT k, v FROM s [RANGE 10]")) == [(1, 1)]
    assert rows_of(both.w.select("SELECT COUNT(*) AS n FROM s [RANGE 30 SLIDE 10]")) == [(2,)]
    assert rows_of(both.w.select("SELECT COUNT(*) AS n FROM s [UNBOUNDED]")) == [(3,)]
    both.w.close()
