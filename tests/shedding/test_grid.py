"""Steering over many situations and seeds: what is promised holds for each of them."""

from __future__ import annotations

import pytest
from tests.shedding.grid import SHAPES, Shape, in_a_burst, on_a_ramp, without_overload

SEEDS = range(20, 24)
BY_NAME = {shape.name: shape for shape in SHAPES}
SHORT = [shape for shape in SHAPES if shape.trigger < 5 and shape.window <= 1000]


@pytest.mark.part(5)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize(
    ("load", "one", "on_average"), [(0.4, 0.05, 0.015), (0.6, 0.06, 0.02), (0.75, 0.1, 0.04)]
)
def test_next_to_nothing_is_lost_below_capacity(shape: Shape, load: float, one: float, on_average: float):
    """Epochs vary by 30 %, and pause for 3 seconds now and then: that goes away by itself."""
    lost = [without_overload(shape, load, seed).lost for seed in SEEDS]
    assert max(lost) <= one
    assert sum(lost) / len(lost) <= on_average


@pytest.mark.part(12)
@pytest.mark.parametrize("shape", SHORT, ids=lambda shape: shape.name)
@pytest.mark.parametrize("times", [1.3, 3.0])
def test_a_burst_ends_with_all_exact_soon(shape: Shape, times: float):
    for seed in SEEDS:
        seen = in_a_burst(shape, times, seed)
        assert seen.late < 25
        assert seen.moved < 4
        assert seen.exact is not None
        assert seen.exact < 15


@pytest.mark.parametrize("seed", SEEDS)
def test_long_windows_that_overlap_do_not_wait_for_their_cycles(seed: int):
    seen = in_a_burst(BY_NAME["overlapping, long"], 3.0, seed)
    assert seen.late < 40
    assert seen.exact is not None
    assert seen.exact < 30


@pytest.mark.parametrize("seed", SEEDS)
def test_a_long_trigger_recovers_within_a_few_epochs(seed: int):
    """One window of ten seconds is thirty seconds of work, and the first is seen when it has come."""
    seen = in_a_burst(BY_NAME["trigger 10 s"], 3.0, seed)
    assert seen.late < 75
    assert seen.exact is not None
    assert seen.exact <= 50


@pytest.mark.part(5)
@pytest.mark.parametrize("shape", SHORT, ids=lambda shape: shape.name)
def test_a_ramp_up_and_down_is_followed_smoothly(shape: Shape):
    for seed in SEEDS:
        seen = on_a_ramp(shape, seed)
        assert seen.late < 25
        assert 0.1 < seen.lost < 0.6
        assert seen.moved < 4
