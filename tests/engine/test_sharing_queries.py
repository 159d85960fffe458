"""What users see of queries that share: when late ones begin, what a drop leaves, and what is said of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, COUNTS, MEDIANS, NESTED, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.engine.engine import Engine
from windrow.sharing.schedule import Costs, Measured

if TYPE_CHECKING:
    from pathlib import Path

LONG = SUMS.replace("RANGE 20", "RANGE 40")
SEEN = max(t for batch in BATCHES[:2] for _, _, t in batch)


def after(query: str, clock: int, length: int, begin: int = -1000) -> list[tuple[object, ...]]:
    return [row for row in as_rows(oracle(query)) if row[0] > clock and row[0] - length >= begin]


def test_a_late_query_answers_at_once_where_a_synopsis_covers_it(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("early", LONG)
        for batch in BATCHES[:2]:
            w.push(*batch)
        late, clock = w.query("late", SUMS), SEEN - 3
        assert late.progress.complete_from is None
        for batch in BATCHES[2:]:
            w.push(*batch)
        w.end()
        assert w.rows("late") == after(SUMS, clock, 20)
        assert any(row[0] - 20 <= SEEN for row in w.rows("late")), "windows that began before the query did"


def test_a_late_query_that_needs_more_makes_a_synopsis_longer(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("early", SUMS)
        for batch in BATCHES[:4]:
            w.push(*batch)
        clock = 38 - 3
        late = w.query("late", LONG)
        begin = late.progress.complete_from
        assert begin is not None
        assert clock - 40 < begin < clock, "from what the synopsis still holds, not from now"
        assert len(w.engine.common.planner.held) == 3
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        assert w.rows("late") == after(LONG, clock, 40, begin)
        assert w.rows("late")
        assert w.rows("early") == as_rows(oracle(SUMS))


def test_a_drop_frees_only_what_nobody_else_uses(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("one", SUMS)
        w.query("other", "SELECT k, SUM(v) AS total, MAX(v) AS top FROM s [RANGE 10 SLIDE 10] GROUP BY k")
        w.push(*BATCHES[0])
        before = set(w.engine.common.planner.held)
        w.drop("other")
        left = set(w.engine.common.planner.held)
        assert left < before
        for batch in BATCHES[1:]:
            w.push(*batch)
        assert set(w.engine.last.decisions["synopses"]["kept"]) == left
        w.end()
        assert w.rows("one") == as_rows(oracle(SUMS))
        w.drop("one")
        assert not w.engine.common.planner.held
        assert not w.engine.last.decisions["synopses"]["kept"]


def test_equal_queries_are_computed_once_and_the_next_goes_on_when_the_first_is_dropped(
    tmp_path: Path,
) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name in ("a", "b", "c"):
            w.query(name, SUMS)
        for batch in BATCHES[:3]:
            w.push(*batch)
        assert [name.partition("@")[0] for name in w.engine.seconds] == ["a"]
        w.drop("a")
        for batch in BATCHES[3:]:
            w.push(*batch)
        w.end()
        for name in ("b", "c"):
            assert w.rows(name) == as_rows(oracle(SUMS)), name


def test_state_of_queries_that_do_not_share_goes_on_as_it_was(tmp_path: Path) -> None:
    """A directory that was written when every query kept a state of its own."""
    with Life(tmp_path / "state") as w:
        w.engine.shares = False
        w.sql(STREAM)
        w.query("old", SUMS)
        for batch in BATCHES[:3]:
            w.push(*batch)
        first = w.rows("old")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("old", SUMS)
        w.query("new", SUMS)
        for batch in BATCHES[3:]:
            w.push(*batch)
        w.end()
        assert sorted(first + w.rows("old")) == as_rows(oracle(SUMS))
        begin = w.queries["new"].progress.complete_from
        assert begin is not None
        assert w.rows("new") == after(SUMS, 22, 20, begin)


def test_what_is_shared_is_told(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for number in range(3):
            w.query(f"q{number}", SUMS.replace("RANGE 20", f"RANGE {20 + 10 * number}"))
        w.query("median", MEDIANS)
        w.query("nested", NESTED)
        for batch in BATCHES:
            w.push(*batch)
        shown = {row["name"]: row for row in w.sql("SHOW QUERIES")[0].to_pylist()}
        assert shown["q0"]["shares"].startswith("p1 with 3 by SS1; p2, p3 with 2 by SS1")
        assert shown["median"]["shares"] == "p1 with 3 by SS1; p4", "the rows of groups, and counts of values"
        assert shown["nested"]["shares"] is None
        assert sum(row["cost"] for row in shown.values()) == pytest.approx(1)
        text = str(w.queries["q1"].explain())
        assert "share   shares synopsis p1 with 3 queries by SS1" in text
        assert "made once for 4 queries of this stream and grouping" in text
        assert "values are counted once for all of them" in str(w.queries["median"].explain())
        assert "keeps a state of its own: it reads the answers of a nested" in str(
            w.queries["nested"].explain()
        )


def test_a_monitoring_query_is_refreshed_as_often_as_it_asks(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY exact AS {COUNTS}; CREATE QUERY seldom AS {COUNTS} EVERY 30 AT MOST 60")
        for batch in BATCHES:
            w.push(*batch)
        told, exact = w.rows("seldom"), w.rows("exact")
        assert told
        assert set(told) < set(exact)
        gaps = [later[0] - earlier[0] for earlier, later in pairwise(told)]
        assert all(gap >= 30 for gap in gaps)
        progress = w.queries["seldom"].progress
        assert progress.period == 30
        assert progress.had is not None
        assert progress.had >= 30


def test_under_overload_periods_get_longer_for_all_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for number in range(6):
            w.sql(f"CREATE QUERY q{number} AS SELECT COUNT(*) AS n{number} FROM s [RANGE 4 SLIDE 1] EVERY 1")
        engine: Engine = w.engine
        monkeypatch.setattr(Measured, "costs", Costs(read=0.0, answer=1000.0))
        engine.limit = 2500.0
        for now in range(60):
            w.push((1, 1, now))
        counts = [len(w.rows(f"q{number}")) for number in range(6)]
        assert max(counts) - min(counts) <= 2, "all alike"
        assert 0 < sum(counts) <= 2 * 60, "two at a time"
        for number in range(6):
            known = w.queries[f"q{number}"].progress
            assert known.late > 0
            assert known.had is not None
            assert known.had > 2
            whole = as_rows(
                oracle(
                    f"SELECT COUNT(*) AS n{number} FROM s [RANGE 4 SLIDE 1]",
                    [[(1, 1, now)] for now in range(60)],
                )
            )
            assert set(w.rows(f"q{number}")) <= set(whole), "what is told is right"


def test_a_query_that_comes_before_the_old_ones_are_declared_shares_with_them(tmp_path: Path) -> None:
    told: list[object] = []
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("old", SUMS)
        for batch in BATCHES[:2]:
            w.push(*batch)
        told += w.rows("old")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("new", LONG)
        w.query("old", SUMS)
        w.query("newer", SUMS)
        for batch in BATCHES[2:5]:
            w.push(*batch)
        assert w.queries["old"].progress.status == "running"
        w.drop("new")
        for batch in BATCHES[5:]:
            w.push(*batch)
        w.end()
        assert sorted(told + w.rows("old")) == as_rows(oracle(SUMS))
        assert w.rows("newer") == after(
            SUMS, SEEN - 3, 20, w.queries["newer"].progress.complete_from or -1000
        )
