"""Panes of windows, against counting."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from windrow.errors import QueryError
from windrow.windows.domain import Interval
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow

SIZES = st.integers(1, 24)
ANY_PANES = st.builds(Panes, SIZES, SIZES, st.integers(-50, 50))


def spans_of(panes: Panes, w: int) -> list[Interval]:
    """The attribute values of the panes that make up an extent."""
    stop = (w + 1) * panes.per_slide
    starts = [panes.origin + pane * panes.width for pane in range(stop - panes.per_window, stop)]
    return [Interval(start, start + panes.width) for start in starts]


@given(ANY_PANES, st.integers(-20, 20))
def test_an_extent_is_a_whole_number_of_panes(panes: Panes, w: int) -> None:
    end = panes.origin + (w + 1) * panes.slide
    spans = spans_of(panes, w)
    assert (spans[0].vs, spans[-1].ve) == (end - panes.range, end)
    assert [a.ve for a in spans[:-1]] == [b.vs for b in spans[1:]]
    assert len(spans) == panes.per_window


@given(SIZES, SIZES, st.integers(1, 60))
def test_panes_of_rows_hold_positions(rows: int, slide: int, position: int) -> None:
    panes = Panes.of(RowsWindow(rows, slide))
    for w in range(200 // slide):
        held = any(position in span for span in spans_of(panes, w))
        assert held == ((w + 1) * slide - rows < position <= (w + 1) * slide)


def test_query_1_of_the_panes_paper() -> None:
    minute = 60_000_000
    panes = Panes.of(RangeWindow(4 * minute, minute))
    assert (panes.width, panes.per_window, panes.per_slide) == (minute, 4, 1)
    fifth = Interval(5 * minute, 6 * minute)
    assert sum(fifth in spans_of(panes, w) for w in range(20)) == 4  # "each pane contributes to four windows"


@pytest.mark.parametrize("spec", [RangeWindow(5), RowsWindow(5), RowsWindow(5, slide_time=2)])
def test_windows_without_panes(spec: RangeWindow | RowsWindow) -> None:
    with pytest.raises(QueryError, match="RANGE and SLIDE on one attribute"):
        Panes.of(spec)
