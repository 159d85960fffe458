"""Schedulers: the thesis' schedules, and what holds under any load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.theory.scheduling.simulation import simulate
from benchmarks.theory.scheduling.techniques import (
    EXAMPLE,
    TECHNIQUES,
    StepScheduler,
    alone,
    by_group,
    due_together,
    late_and_pending,
    separate,
)
from windrow.sharing.schedule import Costs, ScheduledQuery, Task, alternatives, by_period, hybrid

G1 = {"G1": EXAMPLE}


def schedule(scheduler: StepScheduler, updates: int) -> dict[int, list[int]]:
    """The periods of the tasks that are done after each update, if there is always time for all."""
    found: dict[int, list[int]] = {}
    for update in range(1, updates + 1):
        scheduler.updated()
        while tasks := scheduler.next():
            found.setdefault(update, []).extend(sorted(task.period for task in tasks))
            scheduler.done(tasks)
    return found


def test_aggressive_scheduling_does_everything_with_the_shortest_period() -> None:
    found = schedule(StepScheduler(by_group(G1), alone), 8)
    assert found == {2: [2], 4: [2], 6: [2], 8: [2]}


def test_conservative_scheduling_does_each_subgroup_with_its_period() -> None:
    found = schedule(StepScheduler(by_period(G1), due_together), 30)
    assert [update for update, done in found.items() if 3 in done] == list(range(3, 31, 3))
    assert found[6] == [2, 3]
    assert found[30] == [2, 3, 5]


def test_hybrid_scheduling_picks_the_cheapest_of_five() -> None:
    costs = sorted(round(cost, 2) for cost, _ in alternatives(by_period(G1), Costs()))
    assert costs == [11.4, 11.93, 12.67, 14.5, 16.83]
    assert [(task.period, [query.name for query in task.queries]) for task in hybrid(G1)] == [
        (2, ["Q1", "Q2", "Q3", "Q4", "Q5"]),
        (5, ["Q6", "Q7"]),
    ]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(2, 30), st.integers(1, 12)), min_size=1, max_size=12))
def test_the_cost_of_a_schedule_is_what_playing_it_costs(sizes: list[tuple[int, int]]) -> None:
    group = {"G": [ScheduledQuery(f"q{n}", *size) for n, size in enumerate(sizes)]}
    costs, tasks = Costs(2.0, 3.0, 1.0), by_period(group)
    spent = 0.0
    scheduler = StepScheduler(tasks, due_together)
    for _ in range(840):
        scheduler.updated()
        while done := scheduler.next():
            spent += costs.joint([query for task in done for query in task.queries])
            scheduler.done(done)
    assert costs.rate(tasks) == pytest.approx(spent / 840, rel=0.02)
    assert costs.rate(hybrid(group, costs)) <= min(costs.rate(tasks), costs.rate(by_group(group))) + 1e-9


def test_ties_go_to_the_higher_priority() -> None:
    tasks = separate({"G": [ScheduledQuery("low", 4, 2), ScheduledQuery("high", 4, 2, priority=5)]})
    scheduler = StepScheduler(tasks, alone)
    scheduler.updated()
    scheduler.updated()
    assert [query.name for task in scheduler.next() for query in task.queries] == ["high"]


def test_who_has_waited_too_long_goes_before_those_with_earlier_deadlines() -> None:
    bounded = ScheduledQuery("bounded", 4, 8, at_most=4)
    scheduler = StepScheduler(separate({"G": [ScheduledQuery("often", 4, 1, priority=9), bounded]}), alone)
    for _ in range(4):
        scheduler.updated()
    assert scheduler.next()[0].queries == (bounded,)


def test_a_late_refresh_does_not_bring_the_next_one_forward() -> None:
    scheduler = StepScheduler(by_period(G1), alone)
    for _ in range(7):
        scheduler.updated()
    (task,) = scheduler.next()
    assert task.period == 2, "it is five updates late, the others four and two"
    scheduler.done([task])
    assert scheduler.left(task) == 2
    assert scheduler.lateness("Q1").greatest == 5


def test_queries_come_and_go_and_the_others_keep_their_deadlines() -> None:
    scheduler = StepScheduler(by_period(G1), due_together)
    scheduler.updated()
    newcomer = ScheduledQuery("new", 8, 2)
    scheduler.arrange(by_period({"G1": [*EXAMPLE[:5], newcomer]}))
    scheduler.updated()
    assert [task.period for task in scheduler.next()] == [2]
    assert scheduler.lateness("new").refreshes == 0
    with pytest.raises(KeyError):
        scheduler.lateness("Q7")


def test_overload_stretches_all_periods_alike() -> None:
    """Three times as much as can be done: nobody is dropped, and nobody waits much longer than others."""
    queries = [ScheduledQuery(f"q{n}", 10, 2) for n in range(12)]
    scheduler = StepScheduler(separate({"G": queries}), alone)
    played = simulate(scheduler, Costs().joint, 600, every=9 * 12 / 2 / 3)
    assert played.load == pytest.approx(1.0, abs=0.02)
    assert max(played.refreshes.values()) - min(played.refreshes.values()) <= 1
    assert min(played.refreshes.values()) == pytest.approx(600 / 6, abs=3)
    assert played.greatest_latency <= 5


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(2, 20), st.integers(1, 8)), min_size=1, max_size=8),
    st.sampled_from(sorted(TECHNIQUES)),
    st.floats(1.0, 60.0),
    st.booleans(),
)
def test_nothing_is_dropped_under_any_load(
    sizes: list[tuple[int, int]], name: str, every: float, early: bool
) -> None:
    queries = [ScheduledQuery(f"q{n}", *size) for n, size in enumerate(sizes)]
    groups = {"G": queries[::2], "H": queries[1::2]}
    technique, costs = TECHNIQUES[name], Costs()
    tasks = technique.tasks({group: each for group, each in groups.items() if each}, costs)
    played = simulate(StepScheduler(tasks, technique.together, early=early), costs.joint, 400, every=every)
    assert sorted(played.refreshes) == sorted(query.name for query in queries)
    assert min(played.refreshes.values()) > 0


def _late(technique: str, groups: Any, every: float) -> float:
    chosen = TECHNIQUES[technique]
    tasks = chosen.tasks(groups, Costs())
    return simulate(StepScheduler(tasks, chosen.together), Costs().joint, 300, every=every).latency


def test_sharing_helps_under_overload() -> None:
    sizes = [(20 + 7 * n % 80, 2 + n % 9) for n in range(40)]
    groups = {f"G{g}": [ScheduledQuery(f"q{n}", *sizes[n]) for n in range(g, 40, 4)] for g in range(4)}
    found = {name: _late(name, groups, every=60.0) for name in ("No-S", "CS", "HS", "H-LP")}
    assert found["No-S"] > found["CS"] > found["HS"] > found["H-LP"] > 0


def test_late_pending_sharing_clears_a_backlog_in_one_go() -> None:
    """Figure 8.6 (d)."""
    two, three, five = by_period(G1)
    scheduler = StepScheduler([two, three, five], late_and_pending)
    _run(scheduler, 4, lambda task: task.period == 2)
    scheduler.updated()
    assert [scheduler.left(task) for task in (two, three, five)] == [1, -2, 0]
    assert {task.period for task in scheduler.next()} == {3, 5}


def _run(scheduler: StepScheduler, updates: int, wanted: Callable[[Task], bool]) -> None:
    """Let time pass in which only some tasks are done."""
    for _ in range(updates):
        scheduler.updated()
        scheduler.done([task for task in scheduler.tasks if wanted(task) and scheduler.left(task) <= 0])
