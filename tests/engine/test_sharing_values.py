"""Counts of values and lists of frequent ones, shared by queries of different windows: as each by itself.

Random workloads as in `test_sharing_workloads`, of aggregates that keep no state of constant size.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine import test_sharing_workloads as workloads
from tests.engine.test_sharing_workloads import busy, live
from tests.support.history import BATCHES, STREAM, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.engine import epoch as draft
from windrow.engine.sharing.shared_state import Common
from windrow.kernels.panes import subtract_on_evict

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["busy"]

LISTS = (
    "FREQUENT(s, 1)",
    "FREQUENT(s, 2)",
    "FREQUENT(v, 2)",
    "FREQUENT(v, 2) FILTER (WHERE x > 0)",
    "APPROX_TOP_K(v, 2, 2)",
)
COUNTS = (
    "MEDIAN(v)",
    "QUANTILE(v, 0.25)",
    "MODE(s)",
    "TOP_K(s, 2)",
    "TOP_K(v, 2) FILTER (WHERE s = 'a')",
    "COUNT(DISTINCT v)",
    "HEAVY_HITTERS(s, 0.3)",
    "APPROX_COUNT_DISTINCT(v)",
    "APPROX_QUANTILE(v, 0.5)",
    "APPROX_FREQUENCY(s, 'a')",
    "SUM(DISTINCT v)",
)
SIMPLE = ("COUNT(*)", "MAX(v)", "AVG(v)")
#: few grids, so that many queries have the same sub-windows
PERIODS = ((4, 2), (6, 2), (24, 2), (12, 4), (2, 2), (8, 6), (6, 6), (2, 6), (30, 6), (7, 3))


def plain(value: Any) -> Any:
    """Arrays of structs as tuples of tuples."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    return scalar(value)


scalar = workloads._value


@pytest.fixture(autouse=True)
def valued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "MEASURES", (*LISTS, *LISTS, *COUNTS, *SIMPLE))
    monkeypatch.setattr(workloads, "GROUPINGS", ("", "k", "k"))
    monkeypatch.setattr(workloads, "CONDITIONS", workloads.CONDITIONS[:2])
    monkeypatch.setattr(workloads, "PERIODS", PERIODS)
    monkeypatch.setattr(workloads, "_value", plain)
    monkeypatch.setattr(subtract_on_evict, "FEW", 3)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 105))
def test_queries_that_share_values_answer_as_each_would_by_itself(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Any] = []
    join = Common.join

    def watched(self: Common, *args: Any, **how: Any) -> Any:
        found = join(self, *args, **how)
        refused.extend(self.alone.values())
        return found

    monkeypatch.setattr(Common, "join", watched)
    found = live(tmp_path / "state", seed, 12)
    assert found.shared > 1
    assert found.answers
    assert not refused, "all of them share"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(110, 113))
def test_values_are_taken_along_by_queries_that_leave(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_CELLS", 3)
    found = live(tmp_path / "state", seed, 12)
    assert found.shared > 1
    assert found.answers


def test_lists_of_the_same_sub_windows_are_one_synopsis(tmp_path: Path) -> None:
    """Whatever the ranges are; other sub-windows, lengths of lists and conditions have lists of their own."""
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        texts = {
            "short": "SELECT k, FREQUENT(v, 2) AS f FROM s [RANGE 20 SLIDE 10] GROUP BY k",
            "long": "SELECT k, FREQUENT(v, 2) AS f FROM s [RANGE 50 SLIDE 10] GROUP BY k",
            "seldom": "SELECT k, FREQUENT(v, 2) AS f FROM s [RANGE 30 SLIDE 20] GROUP BY k",
            "finer": "SELECT k, FREQUENT(v, 2) AS f FROM s [RANGE 20 SLIDE 5] GROUP BY k",
            "more": "SELECT k, FREQUENT(v, 3) AS f FROM s [RANGE 20 SLIDE 10] GROUP BY k",
            "fewer": "SELECT k, FREQUENT(v, 2) AS f FROM s [RANGE 20 SLIDE 10] WHERE v > 1 GROUP BY k",
        }
        for name, text in texts.items():
            w.query(name, text)
        for batch in BATCHES:
            w.push(*batch)
        common = w.engine.common
        lists = {name: common.asker(w.engine.queries[name].id).value_counters[0][1] for name in texts}
        assert lists["short"] == lists["long"] == lists["seldom"]
        assert len(set(lists.values())) == 4
        text = str(w.queries["long"].explain())
        assert f"shares synopsis {lists['long']} with 2 queries by SS1" in text
        w.end()
        for name, text in texts.items():
            answers = [(at, k, [(each["value"], each["count"]) for each in f]) for at, k, f in w.rows(name)]
            wanted = [(at, k, list(f)) for at, k, f in as_rows(oracle(text))]
            assert answers == wanted, name


@pytest.mark.parametrize("what", ["k, FREQUENT(v, 2) AS f", "ISTREAM(k, FREQUENT(v, 2) AS f)"])
def test_a_query_does_not_read_lists_of_windows_that_are_cut_otherwise(tmp_path: Path, what: str) -> None:
    random = Random(3)
    times = [*sorted(random.randrange(40) for _ in range(24)), 70]
    rows = [(5, random.choice((1, 1, 1, 2, 2, 3)), t) for t in times]
    texts = {
        name: f"SELECT {what} FROM s [RANGE 20 SLIDE {slide}] GROUP BY k"
        for name, slide in {"seldom": 10, "often": 5}.items()
    }
    found: dict[str, list[Any]] = {}
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name, text in texts.items():
            w.query(name, text)
        w.push(*rows)
        w.end()
        for name, text in texts.items():
            read = w.rows(name)
            found[name] = [(at, k, [(each["value"], each["count"]) for each in f]) for at, k, f in read]
            assert found[name] == [(at, k, list(f)) for at, k, f in as_rows(oracle(text, [rows]))], name
    assert found["seldom"] != [row for row in found["often"] if row[0] % 10 == 0], "nobody could tell"


def test_shared_lists_are_all_that_is_kept_of_what_is_over(tmp_path: Path) -> None:
    """Two queries over hundreds of values for each sub-window: k counts and δ are left of them."""
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name, length in (("short", 40), ("long", 80)):
            w.query(name, f"SELECT FREQUENT(v, 2) AS f FROM s [RANGE {length} SLIDE 10]")
        for moment in range(0, 200, 10):
            w.push(*((0, number, moment) for number in range(300)))
        w.push((0, 0, 200), (0, 0, 203))
        (line,) = [each for each in w.queries["long"].explain(analyze=True).observed if "shared: " in each]
    rows = int(line.partition("shared: ")[2].partition(" row")[0].replace(" ", ""))
    # of each interval a count of rows, two counts and δ, twice while chunks are put together; a sum of each
    # length; what is open
    assert 8 * 4 <= rows <= 2 * 3 * 8 * 4


def test_counts_of_one_argument_are_one_synopsis_for_all_that_read_them(tmp_path: Path) -> None:
    texts = {
        "median": "SELECT k, MEDIAN(v) AS a FROM s [RANGE 20 SLIDE 10] GROUP BY k",
        "distinct": "SELECT k, COUNT(DISTINCT v) AS a FROM s [RANGE 60 SLIDE 30] GROUP BY k",
        "quantile": "SELECT k, QUANTILE(v, 0.9) AS a, MODE(v) AS b FROM s [RANGE 40 SLIDE 20] GROUP BY k",
        "of all": "SELECT MEDIAN(v) AS a FROM s [RANGE 20 SLIDE 10]",
    }
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name, text in texts.items():
            w.query(name.replace(" ", "_"), text)
        for batch in BATCHES:
            w.push(*batch)
        common, records = w.engine.common, w.engine.queries
        counts = {name: common.asker(records[name].id).value_counters[0][1] for name in records}
        assert counts["median"] == counts["distinct"] == counts["quantile"] != counts["of_all"]
        assert f"shares synopsis {counts['median']} with 2 queries" in str(w.queries["distinct"].explain())
        w.end()
        for name, text in texts.items():
            assert w.rows(name.replace(" ", "_")) == as_rows(oracle(text)), name
