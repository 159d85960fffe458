"""EXPLAIN ANALYZE: what a query keeps, seen while it runs."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING

import pytest
from tests.support.history import STREAM
from tests.support.life import Life

from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def kept(w: Life, query: str) -> dict[str, int]:
    """The rows of each part."""
    lines = w.queries[query].explain(analyze=True).observed
    found = (re.fullmatch(r"(.+): ([0-9 ]+) rows?, .*", line) for line in lines)
    return {match[1]: int(match[2].replace(" ", "")) for match in found if match}


def test_the_state_of_operators_is_told_as_it_grows_and_shrinks(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
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


def test_values_are_buffered_once_they_are_seen_to_differ(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("mid", "SELECT MEDIAN(v) AS m, COUNT(DISTINCT v) AS n FROM s [RANGE 40 SLIDE 10]")
        flow(w, 0, 100, lambda t: t % 7)
        assert seen(w, "mid") == "values of v: 7 in 28 cells of panes; their sum is kept beside them"
        flow(w, 100, 200, lambda t: t)
        assert (
            seen(w, "mid") == "values of v: 40 in 40 cells of panes; hardly any recur, so they are a buffer"
        )
        flow(w, 200, 400, lambda t: t % 7)
        assert seen(w, "mid") == "values of v: 7 in 28 cells of panes; their sum is kept beside them"
        found = w.queries["mid"].results().to_pylist()
    for row in found:
        mine = [t if 100 <= t < 200 else t % 7 for t in range(max(0, row["at"] - 40), row["at"])]
        assert (row["m"], row["n"]) == (median(mine), len(set(mine)))
    assert len(found) == 39


def flow(w: Life, begin: int, end: int, value: Callable[[int], int]) -> None:
    """A row for each instant, some windows at a time."""
    for first in range(begin, end, 20):
        w.push(*((0, value(t), t) for t in range(first, first + 20)))


def seen(w: Life, query: str) -> str:
    (line,) = [
        line for line in w.queries[query].explain(analyze=True).observed if line.startswith("values of")
    ]
    return line


def test_each_level_of_a_nested_query_tells_what_it_costs_and_gives(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        inner = "SELECT k, SUM(v) AS t FROM s [RANGE 10 SLIDE 10] GROUP BY k"
        w.query("nested", f"SELECT MAX(t) AS top FROM ({inner}) [RANGE 40 SLIDE 20]")
        w.push(*((t % 5, t, t) for t in range(200)))
        lines = w.queries["nested"].explain(analyze=True).observed
    told = [re.fullmatch(r"level (\d): [0-9.]+ µs per row, gives ([0-9.]+) of them", line) for line in lines]
    given = {match[1]: float(match[2]) for match in told if match}
    ends = 19  # the window that ends with the last row is still open
    assert given == {"1": pytest.approx(5 * ends / 200, 0.05), "2": pytest.approx(9 / (5 * ends), 0.2)}


def test_only_a_query_that_is_there_can_be_looked_at(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("exact", "SELECT COUNT(*) AS n FROM s [RANGE 400]")
        with pytest.raises(QueryError, match="did you mean `exact`"):
            w.sql("EXPLAIN ANALYZE exakt")
        with pytest.raises(QueryError, match="a query that runs has a name"):
            w.sql("EXPLAIN ANALYZE SELECT COUNT(*) FROM s [RANGE 400]")
