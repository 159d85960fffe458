"""Definition 1 of Tatbul and Zdonik against counting windows one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow.reference.window_count import window_count


@given(st.integers(0, 60), st.integers(-20, 20), st.integers(1, 9), st.integers(0, 30))
def test_the_formula_counts_the_windows_that_hold_a_time(age: int, first: int, slide: int, more: int) -> None:
    t, length = first + age, slide + more
    starts = range(first, t + 1, slide)
    assert window_count(t, first, length, slide) == sum(start <= t < start + length for start in starts)
