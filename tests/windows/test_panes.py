"""Panes of windows, against counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import QueryError
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow

SIZES = st.integers(1, 24)
ANY_PANES = st.builds(Panes, SIZES, SIZES, st.integers(-50, 50))


@given(ANY_PANES, st.integers(-20, 20))
def test_an_extent_is_a_whole_number_of_panes(panes: Panes, w: int) -> None:
    end = panes.origin + (w + 1) * panes.slide
    spans = [panes.span(pane) for pane in panes.of_window(w)]
    assert (spans[0].vs, spans[-1].ve) == (end - panes.range, end)
    assert [a.ve for a in spans[:-1]] == [b.vs for b in spans[1:]]
    assert len(spans) == panes.per_window


@given(SIZES, SIZES, st.integers(1, 60))
def test_panes_of_rows_hold_positions(rows: int, slide: int, position: int) -> None:
    panes = Panes.of(RowsWindow(rows, slide))
    for w in range(200 // slide):
        held = any(position in panes.span(pane) for pane in panes.of_window(w))
        assert held == ((w + 1) * slide - rows < position <= (w + 1) * slide)


def test_query_1_of_the_panes_paper() -> None:
    minute = 60_000_000
    panes = Panes.of(RangeWindow(4 * minute, minute))
    assert (panes.width, panes.per_window, panes.per_slide) == (minute, 4, 1)
    assert sum(5 in panes.of_window(w) for w in range(20)) == 4  # "each pane contributes to four windows"
    assert list(panes.of_window(6)) == [3, 4, 5, 6]


@pytest.mark.parametrize("spec", [RangeWindow(5), RowsWindow(5), RowsWindow(5, slide_time=2)])
def test_windows_without_panes(spec: RangeWindow | RowsWindow) -> None:
    with pytest.raises(QueryError, match="RANGE and SLIDE on one attribute"):
        Panes.of(spec)
