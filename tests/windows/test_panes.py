"""Panes and counts of windows, against counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import QueryError
from windrow.windows.element import Element
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow

SIZES = st.integers(1, 24)
ANY_PANES = st.builds(Panes, SIZES, SIZES, st.integers(-50, 50))
INSTANTS = st.one_of(
    st.integers(-100, 100), st.integers(2**63 - 50, 2**63 - 1), st.integers(-(2**63), -(2**63) + 50)
)


@given(ANY_PANES, INSTANTS)
def test_a_row_is_in_the_pane_it_is_assigned_to(panes: Panes, t: int) -> None:
    assert t in panes.span(panes.pane_of(t))


@given(ANY_PANES, st.integers(-20, 20))
def test_an_extent_is_a_whole_number_of_panes(panes: Panes, w: int) -> None:
    end = panes.origin + (w + 1) * panes.slide
    spans = [panes.span(pane) for pane in panes.of_window(w)]
    assert (spans[0].vs, spans[-1].ve) == (end - panes.range, end)
    assert [a.ve for a in spans[:-1]] == [b.vs for b in spans[1:]]
    assert len(spans) == panes.per_window


@given(ANY_PANES, INSTANTS)
def test_a_row_has_the_windows_of_its_pane(panes: Panes, t: int) -> None:
    windows = panes.windows_of(panes.pane_of(t))
    assert list(windows) == list(RangeWindow(panes.range, panes.slide, panes.origin).wids(Element(t)))
    assert all(panes.pane_of(t) in panes.of_window(w) for w in windows)


@given(ANY_PANES, st.integers(-60, 60))
def test_window_count_is_a_count(panes: Panes, t: int) -> None:
    ends = [panes.origin + k * panes.slide for k in range(-200, 200)]
    assert panes.window_count(t) == sum(t < end <= t + panes.range for end in ends)


@given(SIZES, SIZES, st.integers(1, 60))
def test_panes_of_rows_hold_positions(rows: int, slide: int, position: int) -> None:
    panes = Panes.of(RowsWindow(rows, slide))
    ends = [(w + 1) * slide for w in panes.windows_of(panes.pane_of(position))]
    assert ends == [end for end in range(slide, 200, slide) if end - rows < position <= end]


def test_query_1_of_the_panes_paper() -> None:
    minute = 60_000_000
    panes = Panes.of(RangeWindow(4 * minute, minute))
    assert (panes.width, panes.per_window, panes.per_slide) == (minute, 4, 1)
    assert len(panes.windows_of(5)) == 4  # "each pane contributes to four windows"
    assert list(panes.of_window(6)) == [3, 4, 5, 6]


def test_panes_in_a_gap_belong_to_no_window() -> None:
    # RANGE 2 SLIDE 6, panes of 2: | gap | gap | used |
    panes = Panes(2, 6)
    assert [len(panes.windows_of(p)) for p in range(6)] == [0, 0, 1, 0, 0, 1]
    assert panes.window_count(3) == 0


@pytest.mark.parametrize("spec", [RangeWindow(5), RowsWindow(5), RowsWindow(5, slide_time=2)])
def test_windows_without_panes(spec: RangeWindow | RowsWindow) -> None:
    with pytest.raises(QueryError, match="RANGE and SLIDE on one attribute"):
        Panes.of(spec)
