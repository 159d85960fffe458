"""Warnings: one for each thing that is rarely meant, and none for healthy queries."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.language.corpus import market, queries
from tests.support.life import Life

from windrow.algebra.explain.warnings import SILENCE, query_warnings
from windrow.engine.explain import declared, explain_plan
from windrow.language.compile import compile_query, compile_script

COLUMNS = "k BIGINT, v BIGINT, ts TIMESTAMP"
LIVE = dict.fromkeys(("s", "r"), (COLUMNS, "WATTR ts SLACK 5 SECONDS"))

RARELY_MEANT = {
    "SELECT k, COUNT(*) FROM s GROUP BY k": "unbounded-group",
    "SELECT DISTINCT k FROM s": "unbounded-distinct",
    "SELECT s.k FROM s, r WHERE s.k = r.k": "unbounded-join",
    "SELECT s.k FROM s [RANGE 1 HOUR], r [LANDMARK] WHERE s.k = r.k": "unbounded-join",
    "SELECT k FROM s [RANGE 1 HOUR] WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = s.k)": "unbounded-join",
    "SELECT COUNT(*) FROM s [RANGE 60 MINUTES SLIDE 7 MINUTES]": "odd-slide",
    "SELECT k, COUNT(*) FROM s [SESSION 5 MINUTES] GROUP BY k": "endless-session",
}
HEALTHY = [
    "SELECT k, COUNT(*) FROM s [RANGE 1 HOUR SLIDE 5 MINUTES] GROUP BY k",
    "SELECT COUNT(*) FROM s",
    "SELECT k, v FROM s WHERE v > 7",
    "SELECT k, COUNT(*) FROM s [LANDMARK SLIDE 1 HOUR] GROUP BY k",
    "SELECT COUNT(*) FROM s [RANGE 1 MINUTE SLIDE 7 MINUTES]",
    "SELECT s.k FROM s [RANGE 7 MINUTES] JOIN r [NOW] ON s.k = r.k",
    "SELECT k, COUNT(*) FROM s [SESSION 5 MINUTES PARTITION BY k] GROUP BY k",
    "SELECT COUNT(*) FROM s [SESSION 5 MINUTES]",
]


def codes(query: str, options: str = "WATTR ts SLACK 5 SECONDS") -> list[str]:
    catalog = declared(dict.fromkeys(LIVE, (COLUMNS, options)), {})
    return [each.code for each in query_warnings(compile_query(query, catalog))]


@pytest.mark.parametrize(("query", "code"), RARELY_MEANT.items())
def test_what_is_rarely_meant_is_told(query: str, code: str) -> None:
    assert set(codes(query)) == {code}


@pytest.mark.parametrize("query", HEALTHY)
def test_healthy_queries_have_none(query: str) -> None:
    assert codes(query) == []


def test_a_stream_that_ends_may_be_kept_whole() -> None:
    assert codes("SELECT k, COUNT(*) FROM s GROUP BY k", "WATTR ts") == []


def test_the_corpus_has_none() -> None:
    catalog = market()
    for query in queries():
        for bound in compile_script(query, catalog):
            plan = getattr(bound, "plan", None)
            assert plan is None or query_warnings(plan) == (), query


def test_the_cost_of_a_slide_that_divides_nothing_is_told() -> None:
    plan = compile_query("SELECT COUNT(*) FROM s [RANGE 60 MINUTES SLIDE 7 MINUTES]", declared(LIVE, {}))
    assert [each.render() for each in query_warnings(plan, "q")] == [
        "warning[odd-slide]: q: SLIDE 7 MINUTES does not divide RANGE 1 HOUR: each window is put together"
        " from 60 panes of 1 MINUTE instead of 9\n  = write RANGE 63 MINUTES, or a SLIDE that divides RANGE"
    ]
    assert "warnings    odd-slide: SLIDE 7 MINUTES" in str(explain_plan(plan))


def test_rows_later_than_slack_are_told(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3 FROM 'push:'")
        w.query("n", "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
        w.push((1, 1, 5), (1, 1, 20))
        assert w.warnings == []
        w.push((1, 1, 4), (1, 1, 21))
        assert [(each.about, each.code, each.message) for each in w.warnings] == [
            ("s", "small-slack", "1 of 4 rows (25 %) came later than SLACK 3 allows for")
        ]
        assert "small-slack" in w.sql("SHOW STREAMS")[0].to_pylist()[0]["warnings"]


@pytest.mark.parametrize("idle", [True, False])
def test_a_silent_source_that_others_wait_for_is_told(tmp_path: Path, idle: bool) -> None:
    with Life(tmp_path) as w:
        rule = "ORDERED PER k IDLE 30 SECONDS" if idle else "ORDERED PER k"
        w.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t {rule} FROM 'push:'")
        w.query("n", "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
        w.push((1, 1, 5), (2, 1, 5))
        w.time += SILENCE
        w.push((1, 1, 50))
        assert [each.code for each in w.warnings] == ([] if idle else ["idle-source"])
