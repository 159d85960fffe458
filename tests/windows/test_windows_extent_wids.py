"""The three functions of WID section 3, and intervals, say the same thing in four ways."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from windrow.windows.domain import Element, Interval
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from windrow.windows.spec import WindowSpec


def numbers(rows: list[Element]) -> list[int]:
    return sorted(row.row_num for row in rows)


def current(spec: WindowSpec, rows: list[Element], instant: int) -> list[Element]:
    """The rows of the extent that is current at an instant, by way of `extent` only."""
    if spec.grid is not None:
        return spec.extent(spec.grid.last_ending(instant), rows)
    match spec:
        case RowsWindow():
            reports = replace(spec, slide_rows=spec.slide_rows or 1).reports(rows)
            last = {report.key: report for report in reports if report.at <= instant}
            ids = [(r.end, r.key) if spec.partition_by else (r.end,) for r in last.values()]
            return [row for w in ids for row in spec.extent(w, rows)]
        case SlideByTupleWindow():
            if spec.partition_by:
                latest = {key: (w, key) for w, key in spec.windows(rows) if w <= instant}
                return [row for w in latest.values() for row in spec.extent(w, rows)]
            passed = [w for w in spec.windows(rows) if w <= instant]
            return spec.extent(passed[-1], rows) if passed else []
        case SessionWindow():
            open_ids = [w for w in spec.windows(rows) if w[0] + spec.inclusive > instant]  # type: ignore[index]
            return [row for w in open_ids for row in spec.extent(w, rows) if row.t <= instant]
        case _:
            return spec.extent(instant, rows)


@given(data=st.data())
def test_wids_is_the_relational_inverse_of_extent(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    for w in spec.windows(rows):
        extent = spec.extent(w, rows)
        assert numbers(extent) == [row.row_num for row in rows if w in spec.wids(row, rows)]


@given(data=st.data())
def test_windows_misses_no_extent(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    known = set(spec.windows(rows))
    for row in rows:
        ids = spec.wids(row, rows)
        if ids and spec.is_periodic and not isinstance(spec, LandmarkWindow):
            assert ids[0] in known
        valid = spec.intervals([row])[0]
        if spec.is_logical and not spec.is_periodic:
            assert (valid is not None) == bool(ids)
            assert valid is None or valid.vs in known


@given(data=st.data())
def test_a_row_is_valid_while_it_is_in_the_current_extent(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    intervals = spec.intervals(rows)
    ends = {end for i in intervals if i for end in (i.vs, i.ve) if end != float("inf")}
    ends |= {row.t for row in rows}
    for instant in sorted({int(end) + step for end in ends for step in (-1, 0, 1)}):
        valid = [row for row, i in zip(rows, intervals, strict=True) if i and instant in i]
        assert numbers(valid) == numbers(current(spec, rows, instant)), instant


@given(data=st.data())
def test_arrival_order_matters_only_where_it_is_asked_for(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    if spec.counts_arrivals:
        return
    order = data.draw(st.permutations(range(len(rows))))
    arrived = [replace(rows[place], row_num=number) for number, place in enumerate(order, start=1)]
    assert valid_columns(spec, rows) == valid_columns(spec, arrived)


def valid_columns(spec: WindowSpec, rows: list[Element]) -> list[str]:
    """What a user sees: which of several equal rows is valid makes no difference."""
    facts = zip(rows, spec.intervals(rows), strict=True)
    return sorted(repr((row.t, row.order, interval)) for row, interval in facts)


@given(data=st.data(), o=st.integers(-40, 60))
def test_a_kept_late_row_is_cut_to_what_is_still_open(data: Any, windows: Any, streams: Any, o: int) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    late = spec.intervals([replace(row, not_before=o) for row in rows])
    for whole, cut in zip(spec.intervals(rows), late, strict=True):
        if whole is None or max(whole.vs, o) >= whole.ve:
            assert cut is None
        else:
            assert cut == Interval(max(whole.vs, o), whole.ve)


def test_two_windows_over_one_row() -> None:
    #          0     5     10    15
    #  t = 3   |--t--|-----|-----|       RANGE 10 SLIDE 5
    #   w=0  [-------)
    #   w=1      [---------)
    spec = RangeWindow(10, 5)
    assert list(spec.wids(Element(3))) == [0, 1]
    assert [spec.bounds(e) for e in spec.slide_instants(0, 10)] == [(-5, 5), (0, 10)]


@pytest.mark.parametrize(
    ("t", "interval"),
    [
        (-5, Interval(0, 10)),  # an instant of the grid belongs to the extent that begins there
        (-1, Interval(0, 10)),
        (0, Interval(5, 15)),
        (4, Interval(5, 15)),
        (2**63 - 1, Interval(9223372036854775810, 9223372036854775820)),
    ],
)
def test_boundaries_of_a_slide(t: int, interval: Interval) -> None:
    assert RangeWindow(10, 5).interval(Element(t)) == interval


def test_slide_that_does_not_divide_the_range() -> None:
    # RANGE 7 SLIDE 5: extents [-2,5) [3,10) [8,15): rows of 3..4 live for two, of 0..2 for one
    spec = RangeWindow(7, 5)
    assert spec.interval(Element(2)) == Interval(5, 10)
    assert spec.interval(Element(3)) == Interval(5, 15)


def test_slide_longer_than_the_range_leaves_gaps() -> None:
    # RANGE 2 SLIDE 10: extents [8,10) [18,20); what lies between is never seen
    spec = RangeWindow(2, 10)
    found = [t for t in range(20) if spec.interval(Element(t))]
    assert found == [8, 9, 18, 19]


def test_origin_is_a_phase_not_a_filter() -> None:
    assert RangeWindow(10, 10, origin=3).interval(Element(-20)) == Interval(-17, -7)


def test_landmark_slides_from_its_start() -> None:
    spec = LandmarkWindow(start=7, slide=10)
    assert [spec.bounds(e) for e in spec.slide_instants(7, 30)] == [(7, 17), (7, 27)]
    assert LandmarkWindow(slide=10).bounds(20) == (-float("inf"), 20)


def test_both_ends_of_a_landmark_belong_to_it() -> None:
    spec = LandmarkWindow(start=3, until=5)
    assert [t for t in range(10) if spec.interval(Element(t))] == [3, 4, 5]


def test_slide_by_tuple_with_every_second_row() -> None:
    # arrivals 10, 3, 7, 8: the 2nd and the 4th move the window, to 3 and to 8
    rows = [Element(t, n) for n, t in enumerate((10, 3, 7, 8), start=1)]
    spec = SlideByTupleWindow(range=5, every=2)
    assert spec.windows(rows) == [3, 8]
    assert spec.intervals(rows) == [
        None,
        Interval(3, 8),
        Interval(8, float("inf")),
        Interval(8, float("inf")),
    ]
    # by rank: 3, 7, 8, 10: the 2nd and the 4th are 7 and 10
    assert SlideByTupleWindow(range=5, every=2, by_rank=True).windows(rows) == [7, 10]


def test_sessions_end_a_gap_after_their_last_row() -> None:
    rows = [Element(t, key=(k,)) for t, k in ((1, "a"), (4, "a"), (5, "b"), (9, "a"), (11, None))]
    found = [(s.key, s.start, s.at, len(s.elements)) for s in SessionWindow(5, ("k",)).sessions(rows)]
    assert found == [(("a",), 1, 9, 2), (("b",), 5, 10, 1), (("a",), 9, 14, 1), ((None,), 11, 16, 1)]
