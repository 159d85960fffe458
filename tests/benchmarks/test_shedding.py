"""Shedding in plans with delays: what is answered is exact, and early drops cost the fewest answers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.setting import Setting
from benchmarks.studies.delays import (
    Nested,
    Ran,
    Shared,
    Single,
    Sum,
    check_subset,
    longest_gap,
    one_row_per_tick,
    wrong,
)
from benchmarks.studies.shedding import NESTED1, NESTED2, RDROPS, Search, run
from benchmarks.suite.shedding import Options
from windrow.errors import WindrowError

ROWS = one_row_per_tick(4400)


def by_definition(rows: pl.DataFrame, size: Sum, until: int) -> list[tuple[int, int, float]]:
    values = dict(rows.select("ts", "v").iter_rows())
    found = []
    for end in range(size.slide, until + 1, size.slide):
        inside = [values[tick] for tick in range(max(0, end - size.range), end) if tick in values]
        found += [(end, 0, float(sum(inside)))] if inside else []
    return found


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 40), st.integers(1, 15), st.floats(0, 0.8), st.integers(1, 8))
def test_a_sum_behind_a_windrop_is_exact_where_it_is_given(
    range_: int, slide: int, p: float, gap: int
) -> None:
    plan = Single(one_row_per_tick(300), gap, Sum(range_, slide))
    exact, given_ = plan.exact(), plan.windrop(p)
    expected = by_definition(plan.rows, plan.size, 300)
    assert sorted(exact.answers["sum"].iter_rows()) == expected
    assert set(given_.answers["sum"].iter_rows()) <= set(expected)
    assert longest_gap(given_, exact) <= gap
    assert given_.work <= exact.work


@pytest.mark.parametrize("p", [0.0, 0.3, 0.8])
def test_all_plans_give_subsets_and_save_more_the_earlier_they_drop(p: float) -> None:
    nested, shared = Nested(ROWS, 10), Shared(ROWS, 10)
    for exact, ways in (
        (nested.exact(), [nested.rdrop, nested.nested1, nested.nested2]),
        (shared.exact(), [shared.split_rdrop, shared.split_windrop, shared.shared_windrop]),
    ):
        ran = [way(p) for way in ways]
        for each in ran:
            check_subset("a plan", each, exact)
        assert all(longest_gap(each, exact) <= 10 for each in ran[1:])
        saved = [(exact.work - each.work) / max(1, exact.count - each.count) for each in ran]
        assert all(late < early for late, early in pairwise(saved)) or p == 0


def test_rows_dropped_at_random_make_wrong_answers() -> None:
    plan = Nested(ROWS, 10)
    given_, exact = plan.row_drop(0.5), plan.exact()
    assert wrong(given_, exact) > exact.count // 2
    with pytest.raises(WindrowError, match="not among the exact ones"):
        check_subset("rows at random", given_, exact)


def test_the_least_p_is_found() -> None:
    answers = pl.DataFrame({"at": range(1000), "k": [0] * 1000, "m": [1.0] * 1000})

    def way(p: float) -> Ran:
        kept = answers.head(round(1000 * (1 - p)))
        return Ran(1000 + kept.height, {"q": kept})

    search = Search("half of it", way, way(0.0), 1.0)
    found = search.at(25)
    assert found is not None
    assert found.p == pytest.approx(0.4)
    assert found.drop_rate == pytest.approx(0.4)
    hopeless = search.at(150)
    assert hopeless is not None
    assert not hopeless.is_enough
    bounded = Search("bounded", way, way(0.0), 0.3)
    assert bounded.at(25) is None
    assert bounded.borne.text == "0.300: +18 %"


def test_a_slide_of_ten_bears_what_max_gap_allows() -> None:
    """MAX GAP 10, windows of 100: a gap leaves 10 ticks of 110 needless, which is too little for +25 %."""
    plan = Single(one_row_per_tick(5500), 10, Sum(100, 10))
    search = Search("WinDrop", plan.windrop, plan.exact(), plan.most)
    assert search.at(10) is not None
    assert search.at(25) is None
    assert search.borne.excess == pytest.approx(0.2, abs=0.03)


@pytest.mark.thorough
@pytest.mark.slow
def test_nested_windows_are_shed_at_lower_rates_than_rows(tmp_path: Path) -> None:
    options = Options(
        cycles=8,
        excess=(50,),
        sizes=(20,),
        slides=(100,),
        slide_excess=(25,),
        overhead_rows=2000,
        rows_per_batch=1000,
        overhead_rounds=1,
    )
    findings = run(Setting(data=tmp_path, scratch=tmp_path, rounds=1), options)
    rates = {each.contestant: each.figures.get("drop rate", 0.0) for each in findings.measurements}
    assert rates[NESTED2] <= rates[NESTED1] <= rates[RDROPS]
    assert [target.is_reached for target in findings.targets[:4]] == [True] * 4
    size = next(
        table for table in findings.tables if table.columns[0] == "window" and "model" in table.columns[2]
    )
    measured, modelled = (float(cell) for cell in size.rows[0][1:3])
    assert measured == pytest.approx(modelled, abs=0.15)
