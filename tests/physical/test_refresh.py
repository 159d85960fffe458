"""REFRESH QUERY: a running query is planned anew, by what was seen, and its answers stay the oracle's."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.effort import examples
from tests.support.life import Life

from windrow.algebra.plan import Emit
from windrow.engine import query_start
from windrow.engine.engine import WatermarkAdvance
from windrow.engine.explain import declared
from windrow.engine.statistics import ObservedStatistics
from windrow.errors import QueryError
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor
from windrow.testing.spark_executor import QUERY, SparkExecutor

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, ts BIGINT", "WATTR ts SLACK 2"
STREAMS = dict.fromkeys(("a", "b", "c"), (COLUMNS, OPTIONS))
NEGATION = (
    "SELECT a.k, a.v, c.v AS w FROM a [RANGE 50], c [RANGE 40] WHERE a.k = c.k"
    " AND NOT EXISTS (SELECT * FROM b [RANGE 60] WHERE b.k = a.k)"
)
JOIN = (
    "SELECT a.v, b.v AS w, c.v AS x FROM a [RANGE 50], b [RANGE 30], c [RANGE 70]"
    " WHERE a.k = b.k AND b.k = c.k"
)
#: what may have been seen: by each of these another plan is the cheapest
SEEN = [
    ObservedStatistics(rates={"a": 1, "b": 100, "c": 1}, distinct={f"{name}.k": 10 for name in "abc"}),
    ObservedStatistics(
        rates={"a": 1, "b": 0.001, "c": 0.01}, distinct={f"{name}.k": 100_000 for name in "abc"}
    ),
    ObservedStatistics(rates={"a": 90, "b": 1, "c": 9}, distinct={"a.k": 9, "b.k": 90, "c.k": 900}),
]
#: by this, a negation is much cheaper below the join
MUCH = ObservedStatistics(rates=dict.fromkeys("abc", 10.0), distinct={f"{name}.k": 10 for name in "abc"})
#: whether each refresh of the test below gave another plan
CHANGED: list[bool] = []


def planned(text: str) -> Emit:
    return compile_query(text, declared(STREAMS, {}))


def refreshed(life: SparkExecutor, seen: ObservedStatistics) -> bool:
    """Whether a query has another plan, if this was seen; what it holds is too little to count values in."""
    life.engine.observed = seen
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ObservedStatistics, "looking_at", lambda self, *_: self)
        return life.engine.refresh_query(QUERY)


rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 2), st.integers(0, 12)),
    min_size=4,
    max_size=20,
)
moments = st.lists(st.tuples(st.integers(0, 19), st.sampled_from(range(len(SEEN)))), min_size=1, max_size=3)


@pytest.mark.parametrize("text", [NEGATION, JOIN])
@settings(max_examples=examples(8, deep=True), suppress_health_check=list(HealthCheck), deadline=None)
@given(rows, moments, st.sets(st.integers(0, 19), max_size=2))
def test_a_query_is_refreshed_at_any_moment(
    text: str, script: list[tuple[Any, ...]], moments: list[tuple[int, int]], restarts: set[int]
) -> None:
    emit = planned(text)
    oracle, engine = ReferenceExecutor(emit), SparkExecutor(emit, spark=False)
    at = 0
    for number, (stream, k, v, gap) in enumerate(script):
        at += gap
        for each in (oracle, engine):
            each.push(stream, [(k, v, at)])
        for moment, seen in moments:
            if moment == number:
                CHANGED.append(refreshed(engine, SEEN[seen]))
        if number in restarts:
            engine.restart()
    for each in (oracle, engine):
        each.finish()
    assert engine.take() == oracle.take()
    engine.close()


def test_plans_were_changed_then() -> None:
    if CHANGED:  # of this process
        assert sum(CHANGED) > len(CHANGED) // 5


def rows_of(stream: str, n: int) -> list[tuple[int, int, int]]:
    return [(i % 7, i, i) for i in range(n)] if stream != "b" else [(i % 3, i, i) for i in range(n)]


def test_what_was_seen_decides_and_is_kept_with_the_commits(tmp_path: Path) -> None:
    emit = planned(NEGATION)
    life = SparkExecutor(emit, tmp_path, spark=False)
    for begin in range(0, 400, 100):
        for stream in "abc":
            life.push(stream, rows_of(stream, 400)[begin : begin + 100])
    assert life.engine.observed.rates == pytest.approx({"a": 1, "b": 1, "c": 1})
    life.engine.refresh_query(QUERY)
    assert life.engine.observed.distinct["a.k"] == 7
    kept = life.engine.observed
    plan = life.engine.queries[QUERY].plan
    life.restart()
    assert life.engine.observed == kept
    assert life.engine.queries[QUERY].plan == plan
    life.close()


def test_a_query_that_has_the_best_plan_is_left_alone(tmp_path: Path) -> None:
    life = SparkExecutor(planned(JOIN), tmp_path, spark=False)
    number = life.engine.last.number
    assert life.engine.refresh_query(QUERY) is False
    assert life.engine.last.number == number
    life.close()


def test_refresh_is_a_statement(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        for name in "abc":
            w.sql(f"CREATE STREAM {name} ({COLUMNS}) {OPTIONS}")
        w.sql(f"CREATE QUERY q AS {NEGATION}")
        first = "push_down_negation" in str(w.queries["q"].explain()).partition("rules")[2].partition("\n")[0]
        w.engine.observed = SEEN[1 if first else 0]
        assert "REFRESH QUERY q" in str(w.queries["q"].explain())
        before = w.sql("SHOW QUERIES")[0]["plan"].to_pylist()
        w.sql("REFRESH QUERY q")
        after = w.sql("SHOW QUERIES")[0]["plan"].to_pylist()
        assert {*before, *after} == {"rows", "rows by push_down_negation"}
        assert "REFRESH QUERY q" not in str(w.queries["q"].explain())
        with pytest.raises(QueryError, match="no query `p`"):
            w.sql("REFRESH QUERY p")


def test_what_cannot_be_taken_over_is_refused_with_the_way_out(tmp_path: Path) -> None:
    text = "SELECT DISTINCT a.k, b.v FROM a [RANGE 50], b [RANGE 50] WHERE a.k = b.k"
    life = SparkExecutor(planned(text), tmp_path, spark=False)
    for stream in "ab":
        life.push(stream, rows_of(stream, 20))
    rates = {"a": 100.0, "b": 100.0}
    few, many = (ObservedStatistics(rates=rates, distinct={"a.k": n, "b.k": n, "b.v": n}) for n in (3.0, 1e6))
    now = life.engine.queries[QUERY].physical.emit
    for seen in (few, many):
        life.engine.observed = seen
        if life.engine.would_run(life.engine.queries[QUERY].query).emit != now:
            break
    else:
        pytest.fail("no other plan is ever cheaper")
    with pytest.raises(QueryError, match="keeps its plan: it keeps less") as caught:
        refreshed(life, life.engine.observed)
    assert caught.value.code == "cannot-refresh"
    life.close()


FILTERED = (
    "SELECT x.v, c.v AS w FROM a [RANGE 100] x, c [RANGE 100] WHERE x.k = c.k AND x.v % 20 = 0 AND c.v >= 0"
)


def test_the_share_of_rows_that_pass_is_seen_and_kept_with_the_commits(tmp_path: Path) -> None:
    emit = planned(FILTERED)
    life = SparkExecutor(emit, tmp_path, spark=False)
    for begin in range(0, 400, 100):
        for stream in "ac":
            life.push(stream, [(i % 7, i, i) for i in range(begin, begin + 100)])
    life.engine.refresh_query(QUERY)
    shares = sorted(life.engine.observed.passing.values())
    assert shares == pytest.approx([0.05, 1.0], rel=0.2)
    life.engine.epoch()
    life.push("a", [(1, 1, 400)])
    life.restart()
    assert sorted(life.engine.observed.passing.values()) == shares
    # another name for the stream, and the same condition
    other = planned(FILTERED.replace("x.", "z.").replace("] x", "] z"))
    known = life.engine.statistics(other).selectivities
    assert sorted(known.values()) == shares
    assert all(column.startswith(("z.", "c.")) for each in known for column in each.columns)
    life.close()


def test_a_window_that_is_not_full_tells_no_shares(tmp_path: Path) -> None:
    life = SparkExecutor(planned(FILTERED.replace("RANGE 100", "RANGE 9000")), tmp_path, spark=False)
    for stream in "ac":
        life.push(stream, [(i % 7, i, i) for i in range(100)])
        life.push(stream, [(i % 7, i, i) for i in range(100, 400)])
    life.engine.refresh_query(QUERY)
    assert life.engine.observed.rates
    assert not life.engine.observed.passing
    life.close()


def test_a_much_better_plan_is_taken_at_a_start_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal goes on; different and convertible is converted, and told."""
    monkeypatch.setattr(ObservedStatistics, "looking_at", lambda self, *_: self)
    caplog.set_level("INFO", "windrow.engine")
    emit = planned(NEGATION)
    oracle, life = ReferenceExecutor(emit), SparkExecutor(emit, tmp_path, spark=False)
    for begin in (0, 10):
        for each in (oracle, life):
            for stream in "abc":
                each.push(stream, rows_of(stream, 30)[begin : begin + 10])
    before = life.engine.queries[QUERY].physical
    life.restart()
    life.engine.epoch()
    assert life.engine.queries[QUERY].physical.emit == before.emit
    assert not caplog.messages
    marks = life.engine.observed.marks
    life.engine.observed = replace(MUCH, marks=marks)
    life.engine.shed(None)  # a commit that knows it
    life.restart()
    life.engine.epoch()
    after = life.engine.queries[QUERY].physical
    assert after.emit != before.emit
    assert after.changed.startswith("was changed with commit ")
    assert [message for message in caplog.messages if "was changed with commit" in message]
    for each in (oracle, life):
        for stream in "abc":
            each.push(stream, rows_of(stream, 30)[20:])
        each.finish()
    assert life.take() == oracle.take()
    life.restart()
    assert life.engine.queries[QUERY].physical.changed == after.changed
    life.close()


def test_plans_are_looked_at_ever_more_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    life = SparkExecutor(planned(JOIN), tmp_path, spark=False)
    monkeypatch.setattr(
        query_start, "change_if_worth", lambda engine, record: looked.append(engine.last.number) or False
    )
    begin = life.engine.last.number
    for at in range(70):
        life.push("a", [(1, 1, at)])
    assert [number - begin for number in looked] == [pytest.approx(n, abs=2) for n in (16, 48)]
    life.close()


def test_no_epoch_waits_for_all_queries_to_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(
        query_start, "change_if_worth", lambda engine, record: looked.append(engine.last.number) or False
    )
    for again in (False, True):
        with Life(tmp_path) as w:
            w.engine.shares = False
            for name in "abc":
                w.sql(f"CREATE STREAM {name} ({COLUMNS}) {OPTIONS}")
            for number in range(10):
                w.sql(f"CREATE QUERY q{number} AS {JOIN}")
            for at in range(3 if again else 1):
                w.engine.epoch(promises=[WatermarkAdvance("a", at + 10 * again)])
    assert max(Counter(looked).values()) <= query_start.MOST_AT_ONCE
    assert len(looked) == 10
