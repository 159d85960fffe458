"""The drop decision: MAX GAP always, p on average, and nothing that was decided is decided again."""

from __future__ import annotations

import pickle
from math import sqrt

import pytest
from hypothesis import given, settings, strategies as st

from windrow.shedding.phases import Cycles, Phase, Phases

all_cycles = st.builds(Cycles, st.integers(-50, 50), st.integers(1, 9), st.integers(1, 8))


def longest(dropped: list[bool]) -> int:
    """The longest run of dropped windows."""
    best = run = 0
    for each in dropped:
        run = run + 1 if each else 0
        best = max(best, run)
    return best


@given(all_cycles, st.floats(0, 1), st.integers(0, 2**32))
def test_no_gap_is_longer_than_the_batch(cycles: Cycles, p: float, seed: int):
    phase = Phase(-(10**9), cycles, min(p, cycles.most), seed)
    slots = [phase.drops(cycles.origin + k * cycles.length) for k in range(-200, 200)]
    assert longest(slots) <= cycles.batch


@pytest.mark.part(5)
@pytest.mark.parametrize("batch", [1, 2, 10])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_p_of_all_windows_are_dropped(batch: int, share: float):
    p = share * batch / (batch + 1)
    cycles = Cycles(3, 7, batch)
    phase = Phase(0, cycles, p, seed=batch)
    count = 6000
    dropped = sum(phase.drops(3 + 7 * k) for k in range(1, count * (batch + 1) + 1)) / (count * (batch + 1))
    deviation = batch / (batch + 1) * sqrt(share * (1 - share) / count)
    assert abs(dropped - p) <= 4 * deviation + 1e-9


def test_where_compensation_would_break_the_promise():
    """One window of every two, and eight of ten with a batch of ten: both promises hold."""
    halves = Phase(0, Cycles(0, 1, 1), 0.5, seed=4)
    assert longest([halves.drops(e) for e in range(1, 20_000)]) == 1
    many = Phase(0, Cycles(0, 1, 10), 0.8, seed=4)
    assert abs(sum(many.drops(e) for e in range(1, 55_001)) / 55_000 - 0.8) < 0.02


@given(all_cycles, st.floats(0, 1), st.integers(0, 9), st.integers(-300, 300), st.integers(0, 200))
def test_runs_are_the_windows_that_are_dropped(cycles: Cycles, p: float, seed: int, after: int, length: int):
    phases = Phases().then(-100, cycles, p, seed)
    told = {e for run in phases.runs(after, after + length) for e in range(run.after + 1, run.until + 1)}
    assert told == {e for e in range(after + 1, after + length + 1) if phases.drops(e)}


changes = st.lists(st.tuples(st.integers(0, 40), all_cycles, st.floats(0, 1), st.integers(0, 5)), max_size=8)


@given(changes)
@settings(max_examples=80)
def test_decisions_stand_and_gaps_do_not_grow_where_phases_meet(steps: list[tuple[int, Cycles, float, int]]):
    phases, free = Phases(), 0
    for ahead, cycles, p, seed in steps:
        free += ahead
        before = [phases.drops(e) for e in range(-10, free + 1)]
        phases = phases.then(free, cycles, p, seed)
        assert [phases.drops(e) for e in range(-10, free + 1)] == before
    # in ticks: a batch of slots is the most that is missing at a stretch
    most = max((cycles.batch * cycles.length for _, cycles, _, _ in steps), default=0)
    assert longest([phases.drops(e) for e in range(-10, free + 500)]) <= most
    assert Phases.from_json(phases.to_json()) == phases


@given(changes, st.integers(0, 200))
def test_old_phases_can_be_forgotten(steps: list[tuple[int, Cycles, float, int]], done: int):
    phases, free = Phases(), 0
    for ahead, cycles, p, seed in steps:
        free += ahead
        phases = phases.then(free, cycles, p, seed)
    left = phases.since(done)
    assert [left.drops(e) for e in range(done + 1, done + 300)] == [
        phases.drops(e) for e in range(done + 1, done + 300)
    ]


def test_decisions_travel_to_other_processes():
    phases = Phases().then(0, Cycles(0, 5, 3), 0.6, seed=2)
    drops = pickle.loads(pickle.dumps(phases.drops))
    assert [drops(e) for e in range(200)] == [phases.drops(e) for e in range(200)]


@given(all_cycles, st.integers(0, 300), st.integers(0, 100))
def test_a_suspended_query_gives_nothing_until_it_is_resumed(cycles: Cycles, since: int, length: int):
    phases = Phases().then(0, cycles, 0.3, 1).then(since, cycles, 0.0, 1, suspended=True)
    resumed = phases.then(since + length, cycles, 0.0, 1)
    assert all(phases.drops(e) for e in range(since + 1, since + 400))
    back = cycles.first_begin(since + length)
    assert all(resumed.drops(e) for e in range(since + 1, back + 1))
    assert not any(resumed.drops(e) for e in range(back + 1, back + 200))


@given(all_cycles, st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_who_loses_less_loses_a_part_of_what_others_lose(cycles: Cycles, p: float, other: float, seed: int):
    """So that rows can be dropped whenever the query that loses least drops."""
    less, more = sorted((p, other))
    ends = [cycles.origin + k * cycles.length for k in range(1, 200)]
    small, great = Phase(-(10**6), cycles, less, seed), Phase(-(10**6), cycles, more, seed)
    assert all(great.drops(end) for end in ends if small.drops(end))
