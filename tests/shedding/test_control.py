"""Steering: an engine that is fed too much, in bursts, ramps and noise, catches up without p swinging."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest
from hypothesis import given, strategies as st
from tests.shedding.live import Live

from benchmarks.theory.shedding import Plan
from windrow.shedding.controller import FALL, RISE, TARGET, Controller, Outlook
from windrow.shedding.load import TIMES_FIXED, Line, Monitor, OperatorWork, Sample
from windrow.shedding.rules import WinDrop

#: rows per second that can be worked on, fixed costs aside
CAPACITY = 1000


def burst(times: float, calm: float = 0.2, begin: float = 20, end: float = 80):
    """So many times the capacity for a while, and far less before and after."""
    return lambda t: CAPACITY * (times if begin <= t < end else calm)


# ---------------------------------------------------------------- an engine with a source, imagined


@pytest.mark.parametrize("load", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_nothing_is_shed_without_overload(load: float, noise: float):
    live = Live(lambda _: CAPACITY * load, noise=noise).run(120)
    assert max(epoch.p for epoch in live.epochs) == 0.0


@pytest.mark.part(3)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_burst_is_survived_and_forgotten(seed: int, noise: float):
    live = Live(burst(3), noise=noise, seed=seed).run(120)
    without = Live(burst(3), noise=noise, seed=seed, shedding=False).run(120)
    assert max(live.latencies(20, 80)) < 15 < max(without.latencies(20, 80)) / 4
    assert max(live.latencies(30, 80)) < 8
    assert live.lost(4, 20) == live.lost(90, 120) == 0.0
    assert 0.67 < live.lost(30, 80) <= 0.9
    assert live.turns <= 12
    assert not any(epoch.suspended for epoch in live.epochs)


@pytest.mark.parametrize("times", [1.3, 2.0, 5.0])
def test_constant_overload_is_brought_to_the_target(times: float):
    live = Live(burst(times, end=200), noise=0.1).run(150)
    assert max(live.latencies(20, 150)) < 5 + 2.5 * times
    assert live.lost(40, 150) <= min(0.9, 1 - 0.4 / times)
    settled = [epoch.p for epoch in live.epochs if epoch.begin > 40]
    assert max(settled) - min(settled) <= 0.35


@pytest.mark.parametrize("times", [1.5, 3.0])
def test_too_much_from_the_start_is_caught_up_with(times: float):
    live = Live(lambda _: CAPACITY * times, noise=0.1).run(200)
    assert max(live.latencies(150, 200)) < 8


@pytest.mark.parametrize("times", [1.5, 2.0, 3.0, 4.0])
def test_the_model_predicts_the_p_that_is_seen(times: float):
    """Of the time an epoch may take, rows may take what is left of the target beside fixed costs."""
    live = Live(burst(times, end=300)).run(200)
    cost = Plan(cost1=1 / CAPACITY, sel1=1.0, cost2=0.0, sel2=0.0, cost3=0.0)
    for_rows = TARGET - 1 / TIMES_FIXED
    predicted = cost.needed(CAPACITY * times, WinDrop(500, 500, batch=9), for_rows)
    assert predicted is not None
    assert median(epoch.p for epoch in live.epochs if epoch.begin > 60) == pytest.approx(predicted, abs=0.1)


def test_the_more_load_comes_the_more_is_shed():
    live = Live(lambda t: 20 * t, noise=0.1).run(200)
    assert live.lost(4, 20) == 0.0
    assert max(live.latencies(0, 200)) < 15
    means = [live.lost(begin, begin + 30) for begin in (30, 80, 130, 170)]
    assert means == sorted(means)


def test_noise_does_not_make_it_swing():
    live = Live(burst(2, end=400), noise=0.3, pauses=(0.02, 1.5)).run(300)
    settled = [epoch.p for epoch in live.epochs if epoch.begin > 30]
    assert sorted(settled)[len(settled) // 10] >= 0.4
    assert live.turns <= len(settled) / 6
    assert max(live.latencies(30, 300)) < 12


def test_a_pause_is_no_overload():
    live = Live(lambda _: 0.4 * CAPACITY, pauses=(0.03, 2.0)).run(300)
    assert live.lost(4, 300) == 0.0


@pytest.mark.parametrize("fixed", [0.02, 3.0])
def test_fixed_costs_may_be_small_or_great(fixed: float):
    live = Live(burst(3), fixed=fixed, around=fixed / 2, noise=0.1).run(150)
    assert max(live.latencies(20, 80)) < 15 + 10 * fixed
    assert live.lost(4, 20) == live.lost(120, 150) == 0.0


def test_a_trigger_gives_epochs_time():
    """Every ten seconds an epoch, of which the rows need six: slow, and no overload."""
    live = Live(lambda _: 0.6 * CAPACITY, window=2000, slide=2000, trigger=10.0, noise=0.1).run(200)
    assert live.lost(20, 200) == 0.0


def test_windows_that_overlap_are_dropped_in_long_gaps():
    live = Live(burst(3), window=1000, slide=500, max_gap=12, noise=0.1, seed=2).run(120)
    assert max(live.latencies(40, 80)) < 40
    assert live.lost(100, 120) == 0.0


def test_where_gaps_are_not_enough_the_query_is_suspended_and_comes_back():
    live = Live(burst(3), max_gap=1, noise=0.1).run(120)
    assert any(epoch.suspended for epoch in live.epochs)
    assert not live.epochs[-1].suspended
    assert live.lost(100, 120) == 0.0


# ---------------------------------------------------------------- its parts


outlooks = st.builds(
    Outlook,
    st.floats(0, 3),
    st.floats(0, 5),
    st.floats(0, 30),
    st.floats(0.1, 10),
    st.floats(0, 1),
    st.floats(0, 1),
)


@given(outlooks, st.floats(0, 1), st.floats(0.1, 5), st.floats(0.05, 20), st.booleans())
def test_steps_are_small_unless_an_epoch_would_be_too_long(
    outlook: Outlook, now: float, usual: float, passed: float, behind: bool
):
    steered = Controller(share=now, calm=99)
    bound = steered.bound(usual)
    after = steered.after(outlook, usual, passed, behind=behind).share
    assert 0 <= after <= 1
    assert after >= now - passed / FALL - 1e-9
    if after > now:
        assert behind
        assert outlook.longest(now) > bound or after <= now + passed / RISE + 1e-9
    if behind and outlook.longest(1.0) <= bound:
        assert outlook.longest(after) <= bound + 1e-6


@given(outlooks, st.floats(0.1, 5))
def test_nothing_is_shed_as_long_as_epochs_do_not_get_too_long(outlook: Outlook, usual: float):
    steered = Controller().after(outlook, usual, passed=1.0)
    settles = outlook.settled(0.0) <= usual
    if settles and outlook.longest(0.0) <= steered.bound(usual):
        assert steered.share == 0
    if outlook.longest(0.0) > steered.bound(usual):
        assert steered.share > 0


@given(outlooks, st.floats(0, 1), st.floats(0, 1))
def test_who_sheds_more_has_shorter_epochs(outlook: Outlook, one: float, other: float):
    less, more = sorted((one, other))
    pairs = zip(outlook.epochs(more), outlook.epochs(less), strict=True)
    assert all(short <= long + 1e-9 for short, long in pairs)
    assert outlook.settled(more) <= outlook.settled(less) + 1e-9


@given(outlooks, st.floats(0, 1))
def test_epochs_settle_where_they_are_said_to(outlook: Outlook, share: float):
    saved, took = 1 - share * outlook.on_rows, outlook.next(share)
    if outlook.arriving * saved < 0.95:
        for _ in range(600):
            came = outlook.arriving * max(took, outlook.interval)
            took = outlook.fixed * (1 - share * outlook.on_rest) + came * saved
        assert took == pytest.approx(outlook.settled(share), rel=1e-3, abs=1e-9)


def test_short_calm_does_not_end_shedding():
    busy, idle = Outlook(0.1, 3.0, 3.0, 1.0, 0.9), Outlook(0.1, 0.2, 0.2, 1.0, 0.9)
    steered = Controller().after(busy, 1.0, 1.0)
    again = steered.after(idle, 1.0, 1.0)
    assert again.share == steered.share > 0
    assert again.after(idle, 1.0, 1.0).share < steered.share


@given(st.floats(0.01, 5), st.floats(1e-6, 1e-2), st.integers(0, 99))
def test_both_costs_are_found_where_rows_vary(fixed: float, cost: float, seed: int):
    chance, line = Random(seed), Line()
    for _ in range(40):
        rows = chance.randint(0, int(4 * fixed / cost) + 10)
        line = line.after(rows, fixed + cost * rows)
    assert line.fixed == pytest.approx(fixed, rel=0.05)
    assert line.cost == pytest.approx(cost, rel=0.05)


def test_where_rows_do_not_vary_neither_cost_is_mistaken_for_the_other():
    line = Line()
    for rows in [100, 2000] * 20:
        line = line.after(rows, 1.0 + 0.001 * rows)
    for _ in range(200):
        line = line.after(300, 1.3)
    assert line.fixed == pytest.approx(1.0, rel=0.05)
    assert line.cost == pytest.approx(0.001, rel=0.2)


def test_one_strange_epoch_teaches_little():
    line = Line()
    for rows in [100, 200] * 20:
        line = line.after(rows, 0.1 + 0.001 * rows)
    strange = line.after(150, 60.0)
    assert strange.fixed + strange.cost * 150 < 0.5


def test_without_rows_to_learn_from_their_cost_is_forgotten():
    """A query that is suspended gets another try, though nothing is known of what it would cost now."""
    monitor = Monitor()
    for rows in (100, 200) * 10:
        monitor = monitor.after(Sample(rows, 0.05 * rows, since=1.0))
    known = monitor.load(1.0)
    for _ in range(300):
        monitor = monitor.after(Sample(100, 0.01, since=1.0, saved=1.0))
    assert known > 4.5
    assert monitor.load(1.0) < 0.5


def test_a_backlog_counts_as_load():
    idle = Monitor().after(Sample(100, 0.5, since=1.0))
    behind = Monitor().after(Sample(100, 0.5, since=1.0, backlog=1000))
    assert not idle.behind
    assert behind.behind
    waiting = [monitor.outlook(1.0, 1.0, 0.0).longest(0.0) for monitor in (idle, behind)]
    assert waiting[1] > waiting[0] + 1000 * behind.cost / 2


def test_rows_that_wait_after_a_long_epoch_count_as_load():
    monitor = Monitor()
    for rows in (100, 300, 200, 400):
        monitor = monitor.after(Sample(rows, 0.1 + 0.004 * rows, since=0.3))
    assert monitor.took > 1.5
    assert monitor.outlook(1.0, 1.0, 0.0).next(0.0) > 1.5 * monitor.load(1.0)


def test_an_operator_costs_its_seconds_by_its_rows():
    work = OperatorWork(seconds=2.0, rows_in=100, rows_out=25)
    assert (work.cost, work.selectivity) == (0.02, 0.25)
    assert (OperatorWork().cost, OperatorWork().selectivity) == (0.0, 0.0)
