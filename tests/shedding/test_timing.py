"""Changes of p by load: gaps stay within MAX GAP, and what was decided about a window stands."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from hypothesis import given, strategies as st

from windrow.shedding.controller import next_cycles, shortest, steady
from windrow.shedding.phases import Cycles, Phases
from windrow.shedding.rules import WinDrop, early_share

drops = st.builds(WinDrop, st.integers(1, 30), st.integers(1, 10), st.integers(1, 9))
steps = st.lists(st.tuples(st.integers(0, 60), st.floats(0, 1)), max_size=12)


def decided(phases: Phases, drop: WinDrop, origin: int, free: int, p: float, seed: int) -> Phases:
    """As the engine decides for a group of one."""
    wanted = min(p, drop.most)
    slots = Cycles(origin, drop.slide, shortest(drop, wanted))
    ended = origin + (free - origin) // drop.slide * drop.slide
    begin, cycles = next_cycles([phases], slots, ended, wanted)
    return phases.then(begin, cycles, steady(wanted, cycles.batch), seed)


@given(drops, st.integers(-9, 9), steps, st.integers(0, 99))
def test_no_gap_is_too_long_and_nothing_is_decided_twice(
    drop: WinDrop, origin: int, changes: list[tuple[int, float]], seed: int
):
    phases, free = Phases(), 0
    ends = [origin + k * drop.slide for k in range(-20, 1500 // drop.slide)]
    for step, p in changes:
        free += step
        after = decided(phases, drop, origin, free, p, seed)
        known = [end for end in ends if end <= free]
        assert [after.drops(end) for end in known] == [phases.drops(end) for end in known]
        phases = after
    longest = run = 0
    for end in ends:
        run = run + 1 if phases.drops(end) else 0
        longest = max(longest, run)
    assert longest <= drop.batch


@given(drops, st.floats(0, 1))
def test_shorter_gaps_save_no_fewer_rows(drop: WinDrop, p: float):
    wanted = min(p, drop.most)
    least = replace(drop, batch=shortest(drop, wanted))
    assert least.batch <= drop.batch
    assert least.most >= wanted - 1e-6
    assert early_share(least, wanted) >= early_share(drop, wanted) - 1e-9


@given(drops, steps, st.integers(0, 99))
def test_without_load_nothing_is_dropped_from_the_next_slot_on(
    drop: WinDrop, changes: list[tuple[int, float]], seed: int
):
    phases, free = Phases(), 0
    for step, p in changes:
        free += step
        phases = decided(phases, drop, 0, free, p, seed)
    phases = decided(phases, drop, 0, free, 0.0, seed)
    assert not any(phases.drops(end) for end in range(free + drop.slide, free + 500))


@given(drops, st.integers(0, 300), st.integers(0, 99))
def test_shedding_begins_with_the_next_window(drop: WinDrop, free: int, seed: int):
    """The window before was kept: the first one of which no row has come may go at once."""
    phases = decided(Phases(), drop, 0, free, drop.most, seed)
    first = free // drop.slide * drop.slide + drop.slide
    assert phases.drops(first)
    assert not phases.drops(first - drop.slide)


@given(drops, st.integers(0, 300), st.floats(0.05, 0.3), st.integers(0, 99))
def test_a_cycle_that_was_kept_by_chance_does_not_hold_up_more_shedding(
    drop: WinDrop, free: int, p: float, seed: int
):
    phases = decided(Phases(), drop, 0, 0, min(p, drop.most / 2), seed)
    end = free // drop.slide * drop.slide
    if not any(phases.drops(end - before * drop.slide) for before in range(drop.batch + 1)):
        more = decided(phases, drop, 0, free, drop.most, seed)
        assert more.drops(end + drop.slide)


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), min_size=2, max_size=3),
    steps,
    st.lists(st.floats(0.1, 1), min_size=3, max_size=3),
    st.integers(0, 99),
)
def test_queries_that_drop_together_keep_what_was_decided(
    shapes: list[tuple[int, int]], changes: list[tuple[int, float]], parts: list[float], seed: int
):
    """Queries of different slides and losses share cycles; what was decided about a window stands."""
    slot = lcm(*(slide for slide, _ in shapes))
    known, free = [Phases() for _ in shapes], 0
    for step, p in changes:
        free += step
        cycles = Cycles(0, slot, 3)
        wanted = [min(p * part, cycles.most) for _, part in zip(shapes, parts, strict=False)]
        ended = max(free // slide * slide for slide, _ in shapes)
        begin, cycles = next_cycles(known, cycles, ended, max(wanted))
        after = [each.then(begin, cycles, loss, seed) for each, loss in zip(known, wanted, strict=True)]
        for (slide, _), old, new in zip(shapes, known, after, strict=True):
            ends = range(-5 * slide, free + 1, slide)
            assert [old.drops(end) for end in ends] == [new.drops(end) for end in ends]
        known = after
