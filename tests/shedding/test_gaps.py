"""Gaps are exactly the windows that are dropped; guesses are never where answers are."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windrow.shedding.gaps import Gap, gaps, interpolate, joined
from windrow.shedding.phases import Cycles, Phases
from windrow.windows.grid import SlideGrid

worlds = st.tuples(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.floats(0, 1), st.integers(0, 9)
)


@given(worlds, st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_gaps_are_the_dropped_windows_however_the_time_is_cut(
    world: tuple[int, int, int, float, int], cuts: list[int]
):
    slide, times, batch, p, seed = world
    grid = SlideGrid(slide)
    phases = (
        Phases().then(0, Cycles(0, slide * times, batch), p, seed).then(60, Cycles(0, slide, batch), p, seed)
    )
    found: list[Gap] = []
    at = 0
    for length in cuts:
        found = joined(found, gaps(phases, grid, at, at + length), slide)
        at += length
    ends = [end for end in grid.instants(0, at) if phases.drops(end)]
    assert [end for gap in found for end in range(gap.first, gap.last + 1, slide)] == ends
    assert sum(gap.windows for gap in found) == len(ends)
    assert all(after.first > before.last + slide for before, after in pairwise(found))
    assert [Gap.from_json(gap.to_json()) for gap in found] == found


@given(worlds, st.floats(-5, 5), st.floats(-5, 5))
def test_a_line_is_guessed_exactly(world: tuple[int, int, int, float, int], start: float, rise: float):
    slide, times, batch, p, seed = world
    phases, grid = Phases().then(0, Cycles(0, slide * times, batch), p, seed), SlideGrid(slide)
    kept = [(end, start + rise * end) for end in grid.instants(0, 300) if not phases.drops(end)]
    guesses = interpolate(kept, gaps(phases, grid, 0, 300), slide)
    assert all(abs(guess.value - (start + rise * guess.at)) < 1e-6 for guess in guesses)
    assert not {guess.at for guess in guesses} & {end for end, _ in kept}


def test_suspension_is_a_gap_of_its_own():
    cycles = Cycles(0, 10, 3)
    phases = (
        Phases().then(0, cycles, 0.75, 1).then(80, cycles, 0.0, 1, suspended=True).then(120, cycles, 0.0, 1)
    )
    assert [(gap.first, gap.last, gap.suspended) for gap in gaps(phases, SlideGrid(10), 0, 300)] == [
        (20, 40, False),
        (60, 80, False),
        (90, 120, True),
    ]
