"""EVERY … AT MOST in the engine: who is refreshed when, with others or by itself, and after a restart."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.support.history import STREAM, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.two_streams import STREAMS, open_life, random_batches
from tests.support.world import World

from windrow.engine import epoch as draft
from windrow.engine.refresh_scheduler import Refreshes, RefreshGroup
from windrow.errors import QueryError
from windrow.kernels.clock import PaneClock
from windrow.sharing.schedule import Costs, Measured, ScheduledQuery

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 1]"
#: an expression that may fail for some row is not shared
RESTS = "SELECT k, SUM(v % k) AS rest FROM s [RANGE 10 SLIDE 2] GROUP BY k"
NESTED = (
    "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 4 SLIDE 2] GROUP BY k)"
    " [RANGE 8 SLIDE 2]"
)
ALL = "SELECT COUNT(*) AS n FROM s [LANDMARK SLIDE 2]"
ROWS = [[(1 + now % 3, now % 7, now)] for now in range(48)]


def instants(w: Life, query: str) -> list[int]:
    return sorted({row[0] for row in w.rows(query)})


@pytest.mark.part(3)
@pytest.mark.parametrize("text", [RESTS, NESTED, ALL])
def test_a_query_that_shares_nothing_is_refreshed_as_often_as_it_asks(tmp_path: Path, text: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY seldom AS {text} EVERY 10")
        assert not w.engine.queries["seldom"].shares
        for batch in ROWS:
            w.push(*batch)
        told = instants(w, "seldom")
        assert [later - earlier for earlier, later in pairwise(told)] == [10] * (len(told) - 1)
        assert len(told) >= 4
        w.end()
        whole = as_rows(oracle(text, ROWS))
        assert w.rows("seldom") == [row for row in whole if row[0] in instants(w, "seldom")]
        assert "refresh every 10, about the newest window" in w.queries["seldom"].explain().runs
        progress = w.queries["seldom"].progress
        assert progress.period == 10
        assert progress.had is not None
        assert progress.late == 0


def test_rows_that_wait_too_long_are_taken_in_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_WAITING", 3)
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY seldom AS {RESTS} EVERY 20")
        for batch in ROWS:
            w.push(*batch)
        assert w.engine.queries["seldom"].absorbed > w.engine.last.number - 5
        told = instants(w, "seldom")
        assert [later - earlier for earlier, later in pairwise(told)] == [20] * (len(told) - 1)
        assert w.rows("seldom") == [row for row in as_rows(oracle(RESTS, ROWS)) if row[0] in told]


@pytest.mark.part(2)
@pytest.mark.parametrize("text", [COUNTS, RESTS])
def test_a_restart_changes_nothing_about_when_refreshes_are_due(tmp_path: Path, text: str) -> None:
    told: dict[str, list[Any]] = {}
    for life in ("one", "two"):
        told[life] = []
        lives = [(0, 40)] if life == "one" else [(0, 17), (17, 25), (25, 40)]
        for begin, stop in lives:
            with Life(tmp_path / life) as w:
                w.sql(STREAM)
                w.sql(f"CREATE QUERY seldom AS {text} EVERY 12")
                for batch in ROWS[begin:stop]:
                    w.push(*batch)
                told[life] += w.rows("seldom")
                timing = w.queries["seldom"].progress
        told[life].append((timing.had, timing.late))
    assert told["one"] == told["two"]


#: over rows of several streams, or of one twice
OVER_ROWS = (
    "SELECT a.k, SUM(b.v) AS total FROM a [RANGE 12 SLIDE 2], b [RANGE 12 SLIDE 2] WHERE a.k = b.k"
    " GROUP BY a.k",
    "SELECT COUNT(*) AS n FROM a [RANGE 6 SLIDE 2], b [RANGE 9 SLIDE 3] WHERE a.k = b.k AND a.v < b.v",
    "SELECT k, MAX(v) AS top FROM (SELECT k, v FROM a [RANGE 8 SLIDE 2]"
    " UNION ALL SELECT k, w AS v FROM b [RANGE 8 SLIDE 2]) u GROUP BY k",
    "SELECT a.k, COUNT(*) AS n FROM a [RANGE 9 SLIDE 3] WHERE NOT EXISTS"
    " (SELECT * FROM b [RANGE 9 SLIDE 3] WHERE a.k = b.k) GROUP BY a.k",
    "SELECT a.k, AVG(CAST(b.v AS DOUBLE)) AS m FROM a [RANGE 9 SLIDE 3] LEFT JOIN b [RANGE 9 SLIDE 3]"
    " ON a.k = b.k GROUP BY a.k",
    "SELECT x.k, COUNT(*) AS n FROM a [RANGE 8 SLIDE 2] x, a [RANGE 4 SLIDE 2] y WHERE x.k = y.k"
    " GROUP BY x.k",
    "SELECT MAX(n) AS most FROM (SELECT a.k, COUNT(*) AS n FROM a [RANGE 6 SLIDE 2], b [RANGE 6 SLIDE 2]"
    " WHERE a.k = b.k GROUP BY a.k) [RANGE 8 SLIDE 2]",
    "SELECT DISTINCT a.k FROM a [RANGE 9 SLIDE 3], b [LANDMARK SLIDE 3] WHERE a.k = b.k",
)


@pytest.mark.part(32)
@pytest.mark.parametrize("seed", range(32))
def test_queries_over_several_streams_are_refreshed_as_often_as_they_ask(tmp_path: Path, seed: int) -> None:
    """In random lives, with late rows and gaps: answers are those of the oracle, as seldom as was asked."""
    random, every = Random(seed), 4 + seed % 9
    text, rows = OVER_ROWS[seed % len(OVER_ROWS)], random_batches(random, 24)
    world = World(tmp_path, {}, STREAMS, script=rows)
    life: Life | None = None
    for batch in rows:
        if life is None or random.random() < 0.2:
            if life is not None:
                life.close()
                world.listen(life)
            life = world.open()
            life.add("seldom", text, every=every)
            life.add("each", text)
        life.take(batch)
    assert life is not None
    life.end()
    life.engine.deliver()
    world.listen(life)
    whole, told = world.expected(text), world.answers("seldom")
    assert world.answers("each") == whole
    assert told <= whole
    for at in {row[0] for row in told}:  # a window is told as a whole
        assert {row: n for row, n in whole.items() if row[0] == at} == {
            row: n for row, n in told.items() if row[0] == at
        }
    assert life.engine.refreshes.timing(life.engine.queries["seldom"]).asked == every


def told_by(life: Life) -> Counter[Any]:
    life.engine.deliver()
    return life.answers("seldom")


def test_a_join_is_told_about_its_newest_window_only(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    life.add("seldom", OVER_ROWS[0], every=10)
    life.add("each", OVER_ROWS[0])
    for now in range(48):
        life.take(("a", [(1, 1, 1, now)]), ("b", [(1, now % 7, 1, now)]))
    instants = sorted({row[0] for row in told_by(life)})
    assert [later - earlier for earlier, later in pairwise(instants)] == [10] * (len(instants) - 1)
    assert len(instants) >= 4
    life.end()
    last = max(row[0] for row in life.answers("each"))
    assert max(row[0] for row in told_by(life)) == last
    assert told_by(life) <= life.answers("each")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a.v FROM s [RANGE 10] a, s [RANGE 10] b WHERE a.k = b.k", "not about one window of time"),
        ("SELECT COUNT(*) AS n FROM s [ROWS 4]", "not about one window of time|own time"),
        (
            "SELECT ISTREAM(a.v) FROM s [RANGE 10 SLIDE 5] a, s [RANGE 10 SLIDE 5] b WHERE a.k = b.k",
            "not about",
        ),
    ],
)
def test_where_there_is_no_newest_window_every_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        with pytest.raises(QueryError, match=reason) as caught:
            w.sql(f"CREATE QUERY odd AS {text} EVERY 10")
        assert caught.value.code == "bad-every"
        assert "odd" not in w.engine.queries


def test_those_whose_shards_have_no_rows_lately_do_not_tell_of_older_windows(tmp_path: Path) -> None:
    """A clock that passes several windows at once, and groups that are in only the first of them."""
    text = "SELECT k, COUNT(*) AS n FROM s [RANGE 2 SLIDE 1] GROUP BY k"
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY seldom AS {text} EVERY 1")
        for now in range(0, 100, 10):
            w.push(*((k, 1, now) for k in range(8)), (8, 1, now + 8))
            newest = [row for row in w.rows("seldom") if row[0] > now - 2]
            assert {row[0] for row in newest} <= {now + 5}


@pytest.mark.thorough
@pytest.mark.slow
def test_under_overload_queries_of_all_kinds_wait_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measured, "costs", Costs(read=0.0, answer=1000.0))
    texts = [
        *(f"SELECT COUNT(*) AS n{each} FROM s [RANGE 4 SLIDE 1]" for each in range(3)),
        *(f"SELECT k, SUM(v) AS n{each} FROM s [RANGE 4 SLIDE 1] GROUP BY k" for each in range(3)),
        *(f"SELECT SUM(v % k) AS n{each} FROM s [RANGE 4 SLIDE 1]" for each in range(3)),
    ]
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for number, text in enumerate(texts):
            w.sql(f"CREATE QUERY q{number} AS {text} EVERY 1")
        w.engine.limit = 2500.0
        for batch in ROWS:
            w.push(*batch)
        counts = [len(instants(w, f"q{number}")) for number in range(len(texts))]
        assert max(counts) - min(counts) <= 2, counts
        assert sum(counts) <= 2 * len(ROWS)
        for number, text in enumerate(texts):
            assert set(w.rows(f"q{number}")) <= set(as_rows(oracle(text, ROWS)))
            assert w.queries[f"q{number}"].progress.late > 0


@pytest.mark.part(2)
@pytest.mark.parametrize("first", ["a", "b"])
def test_of_those_that_have_waited_alike_the_one_of_higher_priority_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """And SHOW QUERIES tells what was asked for and what was had."""
    monkeypatch.setattr(Measured, "costs", Costs(read=0.0, answer=1000.0))
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name in "ab":
            rank = 5 if name == first else 0
            text = f"SELECT COUNT(*) AS n_{name} FROM s [RANGE 4 SLIDE 1] PRIORITY {rank} EVERY 1"
            w.sql(f"CREATE QUERY {name} AS {text}")
        w.engine.limit = 1500.0  # time for one refresh in each epoch
        for batch in ROWS:
            w.push(*batch)
        begun = {name: min(instants(w, name)) for name in "ab"}
        assert min(begun, key=lambda name: begun[name]) == first
        (queries,) = w.sql("SHOW QUERIES")
        shown = {row["name"]: row for row in queries.to_pylist()}
        assert all(shown[name]["every"] == 1 < shown[name]["had"] for name in "ab")
        assert all(shown[name]["late"] > 0 for name in "ab")


# ------------------------------------------------------------ hybrid


def played(costs: Costs, queries: list[ScheduledQuery], updates: int) -> tuple[float, dict[str, list[int]]]:
    """What all refreshes cost if each update is an epoch, and when each query was refreshed."""
    refreshes, told, spent = Refreshes(), dict[str, list[int]](), 0.0
    known = {query.name: query for query in queries}
    for now in range(updates):
        chosen = refreshes.due([RefreshGroup("g", 1, PaneClock(now, now + 1), known, known)], None)
        if chosen:
            mine = [known[name] for name in chosen]
            spent += costs.joint(mine)
            refreshes.measured("g", max(query.length for query in mine), len(mine), costs.joint(mine))
        for name in chosen:
            told.setdefault(name, []).append(now)
    return spent, told


def test_where_a_probe_is_dear_some_go_more_often_with_others() -> None:
    queries = [ScheduledQuery("two", 5, 2), ScheduledQuery("three", 5, 3)]
    dear, told = played(Costs(read=0.0, answer=0.1, start=10.0), queries, 600)
    assert {later - earlier for earlier, later in pairwise(told["three"][50:])} == {2}
    assert dear < 600 * 10.0 * (1 / 2 + 1 / 3 - 1 / 6)
    _, apart = played(Costs(read=0.0, answer=1.0, start=0.0), queries, 600)
    assert {later - earlier for earlier, later in pairwise(apart["three"][50:])} == {3}


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=4),
    st.floats(0, 10),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_nobody_is_refreshed_later_than_asked_where_there_is_time(
    sizes: list[tuple[int, int]], start: float, read: float, answer: float
) -> None:
    queries = [ScheduledQuery(f"q{n}", *size) for n, size in enumerate(sizes)]
    spent, told = played(Costs(read, answer, start), queries, 240)
    for query in queries:
        gaps = [later - earlier for earlier, later in pairwise(told[query.name])]
        assert max(gaps) <= query.period
    costs, conservative = Costs(read, answer, start), 0.0
    for now in range(1, 241):
        due = [query for query in queries if now % query.period == 0]
        conservative += costs.joint(due) if due else 0.0
    assert spent <= conservative * 1.15 + 12 * (start + 30 * read + 4 * answer)
