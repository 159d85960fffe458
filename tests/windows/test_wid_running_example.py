"""The running example of WID section 2, and punctuation for its extents (5.1, 5.2.1).

Times are minutes and seconds of the day; Q1 starts at 12:00, so that is its ORIGIN.
"""

from __future__ import annotations

import pytest

from windrow.windows.domain import Element, Instant
from windrow.windows.progress import Batch, OrderedPer, Punctuated
from windrow.windows.ranges import RangeWindow


def clock(minute: int, second: int = 0) -> int:
    return (12 * 3600 + minute * 60 + second) * 1_000_000


Q1 = RangeWindow(300_000_000, 60_000_000, origin=clock(0))


def last_complete(progress: Instant) -> Instant:
    """The last extent of Q1 that "no more rows before `progress`" completes."""
    assert Q1.grid is not None
    return Q1.grid.last_ending(int(progress))


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
    assert last_complete(state.progress_of("s6")) == 10
    assert state.progress_of("s7") == -float("inf")


def test_punctuation_made_from_the_order_of_each_sensor() -> None:
    # 5.1: the first reading of s6 after 12:11 shows that s6 is done up to 12:11
    policy = OrderedPer()
    state = policy.observe(policy.start(), Batch([clock(11, 1), clock(9, 59)], ["s6", "s7"]))
    assert last_complete(state.progress_of("s6")) == 10
    assert last_complete(state.progress_of("s7")) == 8
    assert last_complete(state.progress) == 8
