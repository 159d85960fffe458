"""The context a window declares is the one its *wids* has, and no more than it can show (WID section 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from windrow.algebra.explain.facts import WindowClass, classify
from windrow.windows.domain import Element
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from windrow.windows.spec import WindowSpec


@given(data=st.data())
def test_context_free_means_the_row_alone_tells(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    if classify(spec) is WindowClass.CF:
        assert all(spec.wids(row, rows) == spec.wids(row, [row]) for row in rows)


@given(data=st.data())
def test_forward_context_free_means_later_rows_change_nothing(data: Any, windows: Any, streams: Any) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    if classify(spec) in (WindowClass.CF, WindowClass.FCF):
        for count, row in enumerate(rows, start=1):
            assert spec.wids(row, rows[:count]) == spec.wids(row, rows)


@given(data=st.data(), t=st.integers(-60, 60))
def test_later_rows_outside_the_declared_reach_change_nothing(
    data: Any, windows: Any, streams: Any, t: int
) -> None:
    spec, rows = data.draw(windows), data.draw(streams)
    if not rows:
        return
    later = replace(data.draw(st.sampled_from(rows)), t=rows[0].t + t, row_num=len(rows) + 1)
    for row in rows:
        reach = spec.later_context(row)
        if reach is None or not reach[0] <= later.t < reach[1]:
            assert spec.wids(row, rows) == spec.wids(row, [*rows, later])


FAR = 10**15

#: a window, the rows so far, a later one that changes the extents of the first
WITNESSES: list[tuple[WindowSpec, list[Element], Element, WindowClass]] = [
    (SlideByTupleWindow(300), [Element(1000, 1)], Element(1299, 2), WindowClass.FCB),
    (
        SlideByTupleWindow(300, 2, by_rank=True),
        [Element(1000, 1), Element(1100, 2)],
        Element(-FAR, 3),
        WindowClass.FCU,
    ),
    (RowsWindow(10), [Element(1000, 1)], Element(-FAR, 2), WindowClass.FCU),
    (RowsWindow(1, slide_time=60), [Element(1000, 1)], Element(FAR, 2), WindowClass.FCU),
    (
        RowsWindow(1, slide_time=60, arrival_order=True),
        [Element(1000, 1)],
        Element(-FAR, 2),
        WindowClass.FCU,
    ),
]


@pytest.mark.parametrize(("spec", "rows", "later", "expected"), WITNESSES)
def test_declared_forward_context_is_really_needed(
    spec: WindowSpec, rows: list[Element], later: Element, expected: WindowClass
) -> None:
    assert spec.wids(rows[0], rows) != spec.wids(rows[0], [*rows, later])
    assert classify(spec) is expected
    assert classify(spec) in (WindowClass.FCB, WindowClass.FCU)


def test_a_session_may_grow_without_bound() -> None:
    spec, chain = SessionWindow(10), [Element(t) for t in range(0, 1000, 9)]
    ends = {spec.wids(chain[0], chain[:count])[0] for count in range(1, len(chain) + 1)}
    assert len(ends) == len(chain)
    assert classify(spec) is WindowClass.FCU


def test_partitions_need_the_rows_before() -> None:
    q4 = RowsWindow(2, 1, partition_by=("seg_id",), arrival_order=True)
    rows = [Element(1, 1, ("s6",)), Element(2, 2, ("s6",))]
    assert q4.wids(rows[1], rows) != q4.wids(rows[1], rows[1:])
    assert classify(q4) is WindowClass.FCF
