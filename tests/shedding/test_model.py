"""The model of section 3.6, corrected, against what is dropped in fact."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.shedding.asked import Nested, Size, candidate

from benchmarks.theory.shedding import Overhead, Plan, drops_early, kept_share, marked_share
from windrow.shedding.agreement import needless, share
from windrow.shedding.phases import Phases
from windrow.shedding.rules import WinDrop, early_share

PLAN = Plan(cost1=5.0, sel1=1.0, cost2=1.0, sel2=0.1, cost3=5.0)
drops = st.builds(
    lambda slide, extent, batch: WinDrop(slide + extent, slide, batch),
    st.integers(1, 20),
    st.integers(0, 60),
    st.integers(1, 20),
)


@pytest.mark.parametrize(
    ("window", "slide", "batch", "p"),
    [(20, 2, 10, 0.5), (10, 10, 10, 0.3), (100, 30, 10, 0.8), (7, 3, 4, 0.6), (20, 2, 9, 0.5)],
)
def test_the_share_of_rows_that_is_dropped_early(window: int, slide: int, batch: int, p: float):
    sharing = share([candidate("q", Nested((Size(window, slide),)).sql, batch)])
    (group,) = sharing.groups
    ticks = group.cycles.span * 4000
    phases = Phases().then(0, group.cycles, p, seed=3)
    dropped = sum(i.end - i.begin for i in needless(group.members[0], "s", phases, 0, ticks))
    assert dropped / ticks == pytest.approx(early_share(group.drop, p), abs=0.02)


def test_the_printed_formula_is_off_by_two_where_windows_overlap():
    drop = WinDrop(20, 2, batch=10)
    printed = 0.5 * drop.early_ticks / ((drop.batch - 1) * drop.slide + drop.window)
    assert printed == pytest.approx(0.026, abs=0.001)
    assert early_share(drop, 0.5) == pytest.approx(0.05)


@given(drops, st.floats(0, 1))
def test_shares_are_shares(drop: WinDrop, p: float):
    assert 0 <= kept_share(drop, p) <= 1
    assert 0 <= marked_share(drop, p) <= 1
    assert (early_share(drop, 1.0) > 0) == drops_early(drop)


@given(drops, st.floats(0, 1), st.floats(0.1, 10))
def test_saved_work_is_what_the_terms_say(drop: WinDrop, p: float, rate: float):
    """S_WinDrop of the paper, term by term."""
    extra = Overhead(drop=0.01, is_fake=0.002, copy=0.003, check=0.004)
    plan = Plan(2.0, 0.8, 1.5, 0.3, 4.0, extra)
    kept, marked = kept_share(drop, p), marked_share(drop, p)
    saved = rate * (
        plan.sel1 * plan.sel2 * p * plan.cost3
        + (1 - kept) * plan.cost1
        + (1 - kept) * plan.sel1 * plan.cost2
        - extra.drop
        - extra.is_fake
        - marked * extra.copy
        - (kept / drop.slide + marked) * extra.check
    )
    assert plan.load(rate) - plan.with_windrop(rate, drop, p) == pytest.approx(saved, abs=1e-9)
    less = rate * plan.sel1 * plan.sel2 * (p * plan.cost3 - extra.drop)
    assert plan.load(rate) - plan.with_rdrop(rate, p) == pytest.approx(less, abs=1e-9)


@given(drops, st.floats(0, 1))
def test_windows_are_never_the_worse_choice(drop: WinDrop, p: float):
    assert PLAN.with_windrop(1.0, drop, p) <= PLAN.with_rdrop(1.0, p) + 1e-9


@given(drops, st.floats(1.01, 5))
def test_the_p_that_is_needed(drop: WinDrop, excess: float):
    capacity = PLAN.load(1.0)
    p = PLAN.needed(excess, drop, capacity)
    if p is None:
        assert PLAN.with_windrop(excess, drop, drop.most) > capacity - 1e-9
    else:
        assert PLAN.with_windrop(excess, drop, p) == pytest.approx(capacity)
    assert PLAN.needed(0.5, drop, capacity) == 0.0


def test_tumbling_windows_need_less_shedding_than_sliding_ones():
    """A quarter too much, delays around the aggregate: the shape of the paper's Figure 12."""
    tumbling, sliding = WinDrop(100, 100, batch=10), WinDrop(100, 1, batch=10)
    capacity = 10.0
    first = Plan(5.0, 1.0, 0.0, 1 / 100, 5.0)
    second = Plan(5.0, 1.0, 0.0, 1.0, 5.0)
    few = first.needed(1.25 * capacity / first.load(1.0), tumbling, capacity)
    many = second.needed(1.25 * capacity / second.load(1.0), sliding, capacity)
    assert few == pytest.approx(0.2)
    assert many == pytest.approx(0.4)
