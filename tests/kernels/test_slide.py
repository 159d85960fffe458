"""Combination algorithms × cases: dense blocks and sparse runs against combining every window anew."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from windrow.kernels.columnar.combiners import (
    FLOAT_TOTAL,
    GREATEST,
    LEAST,
    MOMENTS,
    TOTAL,
    Combiner,
    Lanes,
    segmented,
    take,
)
from windrow.kernels.panes import pane_tables
from windrow.kernels.panes.pane_tables import SlideShape, dense, sparse, units
from windrow.kernels.panes.query import Cut, cut_of
from windrow.windows.domain import Element
from windrow.windows.ranges import RangeWindow

COMBINERS: dict[str, Combiner] = {
    "total": TOTAL,
    "float total": FLOAT_TOTAL,
    "least": LEAST,
    "greatest": GREATEST,
    "moments": MOMENTS,
}
SHAPES = st.one_of(
    st.builds(SlideShape, st.integers(1, 7), st.just(1), st.integers(1, 12)),
    st.builds(SlideShape, st.sampled_from([1, 3, 5, 7]), st.just(2), st.integers(1, 8)),
)
VALUES = [0.5, 1.0, -2.0, 4.0, math.inf, math.nan]


@st.composite
def tables(draw: st.DrawFn) -> tuple[SlideShape, dict[tuple[int, int], float]]:
    """Some (group, pane) with values, up to 3 groups."""
    shape = draw(SHAPES)
    cells = st.tuples(st.integers(0, 2), st.integers(0, shape.panes - 1))
    return shape, draw(st.dictionaries(cells, st.sampled_from(VALUES), min_size=1, max_size=20))


def lanes_of(name: str, values: list[float]) -> Lanes:
    numbers = np.array(values)
    if name == "moments":
        with np.errstate(invalid="ignore"):
            apart = numbers - numbers
        return np.ones(len(values), dtype=np.int64), numbers + apart, apart
    if name == "float total":
        return (numbers,)
    return (np.nan_to_num(numbers, nan=7, posinf=99).astype(np.int64),)


@pytest.mark.part(12)
@pytest.mark.parametrize("form", [dense, sparse])
@pytest.mark.parametrize("name", COMBINERS)
def test_every_form_of_every_combination_is_each_window_anew(form: Any, name: str) -> None:
    combiner = COMBINERS[name]

    @given(tables())
    def check(case: tuple[SlideShape, dict[tuple[int, int], float]]) -> None:
        shape, cells = case
        keys = sorted(cells)
        ids, panes = np.array(keys, dtype=np.int64).T
        states = [(np.ones(len(keys), dtype=np.int64),), lanes_of(name, [cells[key] for key in keys])]
        w, found, (count, lanes) = form(ids, panes, states, [TOTAL, combiner], shape, 3)
        expected = anew(combiner, shape, ids, panes, states[1])
        assert sorted(zip(w.tolist(), found.tolist(), strict=True)) == sorted(expected)
        for place, window in enumerate(zip(w.tolist(), found.tolist(), strict=True)):
            size, value = expected[window]
            assert count[0][place] == size
            for lane, wanted in zip(lanes, value, strict=True):
                np.testing.assert_allclose(lane[place], wanted[0], rtol=1e-12, atol=1e-12)

    check()


def anew(combiner: Combiner, shape: SlideShape, ids: Any, panes: Any, lanes: Lanes) -> dict[Any, Any]:
    windows: dict[Any, Any] = {}
    for w in range(shape.count):
        for group in set(ids.tolist()):
            begin = w * shape.step
            inside = np.flatnonzero((ids == group) & (panes >= begin) & (panes < begin + shape.length))
            if len(inside):
                each = [take(lanes, [place]) for place in inside]
                windows[w, group] = len(inside), reduce(combiner.combine, each, combiner.identity((1,)))
    return windows


@pytest.mark.part(7)
@pytest.mark.parametrize("name", COMBINERS)
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("long", [0, 2, 64])
def test_a_scan_of_runs_combines_each_by_itself(
    name: str, backwards: bool, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever counts as a long run."""
    monkeypatch.setattr("windrow.kernels.columnar.combiners.LONG", long)
    combiner, lanes = COMBINERS[name], lanes_of(name, [1.0, 4.0, -2.0, 0.5, 0.5, 4.0])
    starts = np.array([0, 1, 4])
    found = segmented(combiner, lanes, starts, backwards)
    for start, stop in ((0, 1), (1, 4), (4, 6)):
        for place in range(start, stop):
            span = range(place, stop) if backwards else range(start, place + 1)
            wanted = reduce(combiner.combine, [take(lanes, [each]) for each in span])
            for lane, value in zip(found, wanted, strict=True):
                np.testing.assert_allclose(lane[place], value[0])


@given(st.integers(1, 30), st.integers(1, 12), st.integers(-5, 5))
def test_panes_are_the_pieces_of_extents(length: int, every: int, origin: int) -> None:
    """A pane lies in an extent as a whole or not at all, and extents are runs of panes."""
    spec = RangeWindow(length, every, origin)
    cut = cut_of(spec)
    instants = np.arange(-40, 40)
    panes = cut.panes_of(instants)
    for t, pane, held in zip(instants.tolist(), panes.tolist(), cut.holds(instants).tolist(), strict=True):
        windows = list(spec.wids(Element(t)))
        assert held == bool(windows)
        assert windows == [w for w in range(-90, 90) if cut.first_pane(w) <= pane < cut.end_pane(w)]
        if windows:
            assert (windows[0], windows[-1]) == (cut.first_window(pane), cut.last_window(pane))


def test_there_are_at_most_two_panes_per_slide_however_small_the_gcd() -> None:
    cut = Cut(3_600_000_000, 7_000_001)
    assert cut.per_window == 2 * 515 - 1


@given(st.integers(1, 10**7), st.integers(1, 5000), st.integers(1, 400), st.integers(1, 50))
def test_units_cover_all_windows_of_all_groups_and_are_bounded(g: int, count: int, n: int, s: int) -> None:
    cut = Cut(n * s, s)
    found = list(units(g, (10, 10 + count), cut)) if g * count < 10**8 else []
    area = sum((b - a) * (d - c) for (a, b), (c, d) in found)
    assert area == (g * count if found else 0)
    assert all((b - a) * (d - c) <= pane_tables.CELLS or b - a == 1 for (a, b), (c, d) in found)
