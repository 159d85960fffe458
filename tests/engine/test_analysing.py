"""EXPLAIN ANALYZE: what a query keeps, seen while it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.engine.driven import STREAM, Driven

from windrow.errors import QueryError

if TYPE_CHECKING:
    from pathlib import Path


def kept(w: Driven, query: str) -> dict[str, int]:
    """The rows of each part."""
    lines = w.queries[query].explain(analyze=True).observed
    found = (re.fullmatch(r"(.+): ([0-9 ]+) rows?, .*", line) for line in lines)
    return {match[1]: int(match[2].replace(" ", "")) for match in found if match}


def test_the_state_of_operators_is_told_as_it_grows_and_shrinks(tmp_path: Path) -> None:
    with Driven(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("exact", "SELECT COUNT(*) AS n, SUM(v) AS t FROM s [RANGE 400]")
        w.query("about", "SELECT APPROX_COUNT(*, 0.5) AS n FROM s [RANGE 400]")
        w.query("slid", "SELECT k, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k")
        assert w.queries["slid"].explain(analyze=True).observed[0] == "no state"
        w.push(*((t % 3, 1, t) for t in range(400)))
        exact, about, slid = kept(w, "exact"), kept(w, "about"), kept(w, "slid")
        assert exact["γ, running"] >= 300, "one entry for each instant at which a row leaves"
        assert 3 < about["γ, running"] <= 3 * 10 + 3, "few rows for each power of two"
        assert slid["γ, panes, shared"] > 0
        (shown,) = w.sql("EXPLAIN ANALYZE About")
        assert str(shown).startswith("query about")
        assert "observed    γ, running: " in str(shown)
        assert w.queries["about"].explain().observed == ()
        w.push((0, 1, 5000))
        assert kept(w, "exact").get("γ, running", 0) < 10


def test_only_a_query_that_is_there_can_be_looked_at(tmp_path: Path) -> None:
    with Driven(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("exact", "SELECT COUNT(*) AS n FROM s [RANGE 400]")
        with pytest.raises(QueryError, match="did you mean `exact`"):
            w.sql("EXPLAIN ANALYZE exakt")
        with pytest.raises(QueryError, match="a query that runs has a name"):
            w.sql("EXPLAIN ANALYZE SELECT COUNT(*) FROM s [RANGE 400]")
