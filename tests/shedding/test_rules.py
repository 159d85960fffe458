"""Table 2 of the paper: its examples, and that composites do not depend on the order of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from benchmarks.theory.shedding import drops_early, pipeline
from windrow.shedding.rules import WinDrop, fan_out

drops = st.builds(
    lambda slide, extent, batch: WinDrop(slide + extent, slide, batch),
    st.integers(1, 12),
    st.integers(0, 30),
    st.integers(0, 20),
)


def test_the_papers_pipeline():
    drop = pipeline(WinDrop(3, 2), WinDrop(3, 3))
    assert (drop.window, drop.slide) == (5, 3)


def test_the_papers_fan_out():
    drop = fan_out(WinDrop(3, 2), WinDrop(3, 3))
    assert (drop.window, drop.slide) == (7, 6)


def test_the_papers_composite_in_either_order():
    a0, a1, a2 = WinDrop(4, 1), WinDrop(3, 2), WinDrop(3, 3)
    first, second = pipeline(a0, a1), pipeline(a0, a2)
    assert [(each.window, each.slide) for each in (first, second)] == [(6, 2), (6, 3)]
    assert pipeline(a0, fan_out(a1, a2)) == fan_out(first, second) == WinDrop(10, 6)


@given(drops, st.lists(drops, min_size=1, max_size=4))
def test_composites_do_not_depend_on_the_order(inner: WinDrop, outer: list[WinDrop]):
    assert pipeline(inner, fan_out(*outer)) == fan_out(*(pipeline(inner, each) for each in outer))


@given(drops, drops, drops)
def test_pipelines_can_be_cut_anywhere(a: WinDrop, b: WinDrop, c: WinDrop):
    assert pipeline(a, b, c) == pipeline(pipeline(a, b), c) == pipeline(a, pipeline(b, c))


@given(st.lists(drops, min_size=1, max_size=4))
def test_a_common_batch_is_nobodys_too_many(each: list[WinDrop]):
    common = fan_out(*each)
    assert all(common.batch * (common.slide // drop.slide) <= drop.batch for drop in each)


@given(st.lists(drops, min_size=2, max_size=4))
def test_fan_out_holds_every_window_of_a_slot(each: list[WinDrop]):
    """Mirrored: slot (0, L] holds windows [E-window, E), and the common window is their hull."""
    common = fan_out(*each)
    begins = [e - drop.window for drop in each for e in range(drop.slide, common.slide + 1, drop.slide)]
    assert common.slide - min(begins) == common.window


@pytest.mark.parametrize("batch", range(1, 15))
def test_early_drops_begin_where_the_batch_covers_a_window(batch: int):
    drop = WinDrop(20, 3, batch)
    assert drops_early(drop) == (batch >= 20 // 3)
    assert drops_early(drop) == (drop.early_ticks > 0)
