"""SS4 in the engine: queries whose conditions others cover are combined from what those keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.support.history import BATCHES, STREAM, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WINDOW = "FROM s [RANGE 20 SLIDE 10]"


def counts(condition: str, what: str = "COUNT(*) AS n, SUM(v) AS total") -> str:
    return f"SELECT {what} {WINDOW} WHERE {condition}"


def lived(w: Life, queries: Mapping[str, str], batches: Any = BATCHES) -> None:
    """All batches; every query answers as the oracle does."""
    for batch in batches:
        w.push(*batch)
    w.end()
    for name, text in queries.items():
        assert w.rows(name) == as_rows(oracle(text)), name


def held(w: Life) -> int:
    return len(w.engine.common.planner.held)


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("first", "second", "covered", "what"),
    [
        ("k = 1", "k = 2", "k IN (1, 2)", "COUNT(*) AS n, SUM(v) AS total, AVG(v) AS mean"),
        ("k IN (1, 2)", "k = 2", "k = 1", "COUNT(*) AS n, SUM(v) AS total"),
        ("v < 5", "v >= 5 AND v < 10", "v < 5 OR v >= 5 AND v < 10", "STDDEV_POP(v) AS d, MAX(v) AS m"),
        ("k = 1", "v > 5", "k = 1 OR v > 5", "MAX(v) AS most, MIN(v) AS least"),
        ("k = 1", "k = 2", "k IN (1, 2)", "FIRST(v) AS f, LAST(k) AS l"),
        ("k = 1", "k = 2", "k IN (1, 2)", "SUM(CAST(v AS DOUBLE)) AS x"),
        ("k = 1", "k = 2", "k IN (1, 2)", "MAX(CAST(v AS STRING)) AS text"),
    ],
)
def test_a_covered_query_keeps_nothing_of_its_own(
    tmp_path: Path, first: str, second: str, covered: str, what: str
) -> None:
    queries = {name: counts(each, what) for name, each in {"a": first, "b": second, "both": covered}.items()}
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("a", queries["a"])
        w.query("b", queries["b"])
        before = held(w)
        w.query("both", queries["both"])
        assert held(w) == before
        told = str(w.queries["both"].explain())
        assert "with 1 query by SS4" in told
        assert "keeps synopsis" not in told
        lived(w, queries)
        assert any("SS4" in (row["shares"] or "") for row in w.sql("SHOW QUERIES")[0].to_pylist())


@pytest.mark.parametrize(
    ("first", "second", "other", "what"),
    [
        ("k = 1", "v > 5", "k = 1 OR v > 5", "COUNT(*) AS n"),
        ("k IN (1, 2)", "k = 2", "k = 1", "MAX(v) AS most"),
        ("k IN (1, 2)", "k = 2", "k = 1", "SUM(CAST(v AS DOUBLE)) AS x"),
        ("k = 1", "k = 2", "k IN (1, 3)", "COUNT(*) AS n"),
    ],
)
def test_what_cannot_be_combined_exactly_is_kept(
    tmp_path: Path, first: str, second: str, other: str, what: str
) -> None:
    queries = {name: counts(each, what) for name, each in {"a": first, "b": second, "c": other}.items()}
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("a", queries["a"])
        w.query("b", queries["b"])
        before = held(w)
        w.query("c", queries["c"])
        assert held(w) > before
        lived(w, queries)


def test_what_a_covered_query_uses_stays_when_those_who_brought_it_go(tmp_path: Path) -> None:
    queries = {"a": counts("k = 1"), "b": counts("k = 2"), "both": counts("k IN (1, 2)")}
    heard: list[Any] = []
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name, text in queries.items():
            w.query(name, text)
        w.push(*BATCHES[0])
        w.push(*BATCHES[1])
        before = held(w)
        w.drop("a")
        w.drop("b")
        assert held(w) == before
        w.push(*BATCHES[2])
        heard += w.rows("both")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("both", queries["both"])
        w.push(*BATCHES[3])
        again = w.query("again", queries["a"])
        assert again.progress.complete_from is None, "the rows of k = 1 are there from the beginning"
        assert held(w) == before
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        assert sorted(heard + w.rows("both")) == as_rows(oracle(queries["both"]))
        assert w.rows("again") == [row for row in as_rows(oracle(queries["a"])) if row[0] > 38 - 3]
        w.drop("both")
        assert 0 < held(w) < before
        w.drop("again")
        assert not held(w)
        assert not w.engine.last.decisions["synopses"]["kept"]


@pytest.mark.parametrize("first", ["both", "a"])
def test_after_a_restart_a_covered_query_comes_back_in_any_order(tmp_path: Path, first: str) -> None:
    queries = {"a": counts("k = 1"), "b": counts("k = 2"), "both": counts("k IN (1, 2)")}
    heard: dict[str, list[Any]] = {name: [] for name in queries}
    for begin, stop in ((0, 3), (3, len(BATCHES))):
        with Life(tmp_path / "state") as w:
            w.sql(STREAM)
            order = sorted(queries, key=lambda name: name != first) if begin else list(queries)
            for name in order:
                w.query(name, queries[name])
            for batch in BATCHES[begin:stop]:
                w.push(*batch)
            if begin:
                w.end()
            for name in queries:
                heard[name] += w.rows(name)
    for name, text in queries.items():
        assert sorted(heard[name]) == as_rows(oracle(text)), name


def test_a_late_covered_query_makes_what_it_uses_longer(tmp_path: Path) -> None:
    longer = counts("k IN (1, 2)").replace("RANGE 20", "RANGE 40")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("a", counts("k = 1"))
        w.query("b", counts("k = 2"))
        for batch in BATCHES[:4]:
            w.push(*batch)
        before, clock = held(w), 38 - 3
        late = w.query("late", longer)
        begin = late.progress.complete_from
        assert held(w) == before
        assert begin is not None
        assert clock - 40 < begin < clock
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        wanted = [row for row in as_rows(oracle(longer)) if row[0] > clock and row[0] - 40 >= begin]
        assert w.rows("late") == wanted
        assert wanted
