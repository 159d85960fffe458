"""Counting windows: positions, what they mean in time, and reports."""

from __future__ import annotations

import pytest

from windrow.errors import DataError, QueryError
from windrow.windows.domain import Element, Interval
from windrow.windows.rows import RowsWindow

INF = float("inf")


def arrivals(*times: int) -> list[Element]:
    return [Element(t, n) for n, t in enumerate(times, start=1)]


def test_sliding_by_two_rows() -> None:
    #  ROWS 3 SLIDE 2 ROWS    position   1   2   3   4   5   6
    #                         t         10  20  30  40  50  60
    #  E=2                             [1   2]                    at 20
    #  E=4                                 [2   3   4]            at 40
    #  E=6                                         [4   5   6]    at 60
    rows = arrivals(10, 20, 30, 40, 50, 60)
    spec = RowsWindow(3, 2)
    assert [i and (i.vs, i.ve) for i in spec.intervals(rows)] == [
        (20, 40), (20, 60), (40, 60), (40, INF), (60, INF), (60, INF),
    ]  # fmt: skip
    assert [(r.at, r.start, r.end, [e.t for e in r.elements]) for r in spec.reports(rows)] == [
        (20, -1, 2, [10, 20]),
        (40, 1, 4, [20, 30, 40]),
        (60, 3, 6, [40, 50, 60]),
    ]


def test_a_row_waits_until_its_first_extent_is_full() -> None:
    spec = RowsWindow(4, 4)
    assert spec.intervals(arrivals(1, 2, 3)) == [None, None, None]
    assert spec.reports(arrivals(1, 2, 3)) == []
    assert spec.windows(arrivals(1, 2, 3)) == [(4,)]


def test_slide_longer_than_the_window_skips_rows() -> None:
    assert [i is None for i in RowsWindow(1, 3).intervals(arrivals(1, 2, 3, 4))] == [True, True, False, True]


def test_rows_that_come_and_go_at_one_instant_are_never_valid() -> None:
    assert RowsWindow(1).intervals(arrivals(5, 5, 5)) == [None, None, Interval(5, INF)]


def test_arrival_order_moves_time_only_forwards() -> None:
    rows = arrivals(10, 4, 12)
    assert RowsWindow(1, arrival_order=True).intervals(rows) == [None, Interval(10, 12), Interval(12, INF)]
    assert RowsWindow(1).intervals(rows) == [Interval(10, 12), Interval(4, 10), Interval(12, INF)]


def test_partitions_are_numbered_apart() -> None:
    rows = [Element(t, n, key=(k,)) for n, (t, k) in enumerate([(1, "a"), (2, "b"), (3, "a"), (4, "b")], 1)]
    spec = RowsWindow(2, 2, partition_by=("k",), arrival_order=True)
    assert [(r.at, r.key, [e.t for e in r.elements]) for r in spec.reports(rows)] == [
        (3, ("a",), [1, 3]),
        (4, ("b",), [2, 4]),
    ]
    assert spec.wids(rows[2], rows) == [(2, ("a",))]


def test_reports_at_one_instant_are_in_order_of_position_then_key() -> None:
    rows = [Element(7, n, key=(k,)) for n, k in enumerate(["b", "b", None, "a", float("nan")], 1)]
    found = [(r.end, str(r.key[0])) for r in RowsWindow(1, 1, partition_by=("k",)).reports(rows)]
    assert found == [(1, "None"), (1, "a"), (1, "b"), (1, "nan"), (2, "b")]


def test_the_last_rows_at_time_boundaries() -> None:
    # ROWS 2 SLIDE 10:  1 3 8 | 12 | ... the last two before 10, before 20
    rows = arrivals(1, 3, 8, 12)
    spec = RowsWindow(2, slide_time=10)
    assert [e.t for e in spec.extent(0, rows)] == [3, 8]
    assert spec.intervals(rows) == [None, Interval(10, 20), Interval(10, INF), Interval(20, INF)]
    assert spec.bounds(10) == (-INF, 10)


def test_ties_are_settled_by_all_columns() -> None:
    rows = [Element(5, 1, order=("z",)), Element(5, 2, order=("a",)), Element(6, 3)]
    assert RowsWindow(1, 1).wids(rows[0], rows) == [(2,)]
    assert RowsWindow(1, 1, arrival_order=True).wids(rows[0], rows) == [(1,)]


def test_arrival_order_needs_positions() -> None:
    with pytest.raises(DataError, match="need the position of every row"):
        RowsWindow(2, arrival_order=True).intervals([Element(1), Element(2)])


def test_only_row_slides_report_by_position() -> None:
    with pytest.raises(QueryError, match="only SLIDE n ROWS"):
        RowsWindow(2, slide_time=10).reports(arrivals(1))
