"""The running example of WID section 2, and punctuation on window-ids (5.2.1).

Times are minutes and seconds of the day; Q1 starts at 12:00, so that is its ORIGIN.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import QueryError
from windrow.windows.element import Element
from windrow.windows.punctuation import Batch, OrderedPer, Progress, Punctuated, punctuate_wids
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow


def clock(minute: int, second: int = 0) -> int:
    return (12 * 3600 + minute * 60 + second) * 1_000_000


Q1 = RangeWindow(300_000_000, 60_000_000, origin=clock(0))


@pytest.mark.parametrize("second", [0, 20, 59])
def test_a_reading_of_12_10_is_in_extents_10_to_14(second: int) -> None:
    assert list(Q1.wids(Element(clock(10, second)))) == [10, 11, 12, 13, 14]


def test_extent_10_is_12_06_to_12_11() -> None:
    assert Q1.bounds(Q1.grid.end(10)) == (clock(6), clock(11))  # type: ignore[union-attr]
    assert Q1.bounds(Q1.grid.end(11)) == (clock(7), clock(12))  # type: ignore[union-attr]
    rows = [Element(clock(m)) for m in range(5, 13)]
    assert Q1.extent(10, rows) == rows[1:6]


def test_extents_that_began_before_the_origin_are_partial() -> None:
    # "window extents 0 through 3 are partial": of data from 12:00 on they see 1, 2, 3, 4 minutes
    rows = [Element(clock(m)) for m in range(10)]
    assert [len(Q1.extent(w, rows)) for w in range(6)] == [1, 2, 3, 4, 5, 5]


def test_p1_completes_extent_10_for_s6_only() -> None:
    policy = Punctuated(per=True)
    batch = Batch(
        [clock(10, 30), None, clock(10, 31)],
        sources=["s6", "s6", "s7"],
        marks=[None, clock(11), None],
        only_mark=[False, True, False],
    )
    state = policy.observe(policy.start(), batch)
    s6 = punctuate_wids(Q1, state.progress_of("s6"), "s6")
    s7 = punctuate_wids(Q1, state.progress_of("s7"), "s7")
    assert (s6.last, s6.source) == (10, "s6")
    assert s6.completes(10)
    assert not s6.completes(11)
    assert not s7.completes(10)


def test_punctuation_made_from_the_order_of_each_sensor() -> None:
    # 5.1: the first reading of s6 after 12:11 shows that s6 is done up to 12:11
    policy = OrderedPer()
    state = policy.observe(policy.start(), Batch([clock(11, 1), clock(9, 59)], ["s6", "s7"]))
    assert punctuate_wids(Q1, state.progress_of("s6")).last == 10
    assert punctuate_wids(Q1, state.progress_of("s7")).last == 8
    assert punctuate_wids(Q1, state.progress).last == 8


def test_before_the_first_and_after_the_last_row() -> None:
    assert punctuate_wids(Q1, Progress().progress).last == -float("inf")
    assert not punctuate_wids(Q1, Progress().progress).completes(-(10**9))
    assert punctuate_wids(Q1, float("inf")).completes(10**9)


@given(data=st.data(), ahead=st.integers(-40, 40))
def test_rows_after_punctuation_leave_complete_extents_alone(
    data: Any, windows: Any, streams: Any, ahead: int
) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    progress = (rows[0].t if rows else 0) + ahead
    if isinstance(spec, RowsWindow) and not spec.slide_time:
        return  # positions are counted, not completed
    later = [
        Element(progress + t, 100 + t, ("a",), lifetime=5) for t in data.draw(st.lists(st.integers(0, 9)))
    ]
    later = list({row.row_num: row for row in later}.values())
    done = [w for w in spec.windows([*rows, *later]) if punctuate_wids(spec, progress).completes(w)]
    for w in done:
        assert spec.extent(w, [*rows, *later]) == spec.extent(w, rows)


def test_a_session_is_complete_a_gap_after_its_last_row() -> None:
    done = punctuate_wids(SessionWindow(5), 12)
    assert done.completes((12,))
    assert not done.completes((13,))
    with pytest.raises(QueryError, match="slides in time"):
        _ = done.last


def test_an_extent_that_ends_with_a_row_needs_progress_beyond_it() -> None:
    done = punctuate_wids(SlideByTupleWindow(5), 12)
    assert done.completes(11)
    assert not done.completes(12)
