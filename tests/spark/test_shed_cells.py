"""Cells of shed rows: the same rows as the intervals they are made from."""

from __future__ import annotations

from hypothesis import given, strategies as st

from windrow.execution.ingest import Intervals, cells_of


@st.composite
def intervals(draw: st.DrawFn) -> list[tuple[int, int]]:
    """In step, but for the first beginning and the last end, which may be cut anywhere."""
    step, bound = draw(st.integers(1, 20)), draw(st.integers(-100, 100))
    found: list[tuple[int, int]] = []
    for gap, length in draw(
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)
    ):
        begin = bound + gap * step
        bound = begin + length * step
        found.append((begin, bound))
    (first, end), (begin, last) = found[0], found[-1]
    found[0] = (draw(st.integers(first, end - 1)), end)
    begin = found[-1][0]
    found[-1] = (begin, draw(st.integers(begin + 1, last)))
    return found


@given(intervals(), st.lists(st.integers(-200, 4000), max_size=30))
def test_cells_hold_what_intervals_hold(shed: Intervals, moments: list[int]):
    cells = cells_of(shed)
    bits = sum((word & (1 << 64) - 1) << 64 * place for place, word in enumerate(cells.words))
    edges = [bound + more for each in shed for bound in each for more in (-1, 0, 1)]
    for moment in [*moments, *edges]:
        inside = shed[0][0] <= moment < shed[-1][1] and bool(bits >> (moment - cells.first) // cells.step & 1)
        assert inside == any(begin <= moment < end for begin, end in shed)
