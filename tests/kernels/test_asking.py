"""Which windows a query asks a shared state for: those that are due, have rows, and are not left out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from windrow.kernels.clock import PaneClock
from windrow.kernels.shared.shared_state import PaneGrid, WindowRequest


@given(
    st.sets(st.integers(0, 30), min_size=1),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 20),
    st.integers(0, 40),
    st.frozensets(st.integers(0, 90)),
)
def test_windows_that_are_left_out_are_not_asked_for(
    panes: set[int], length: int, slide: int, before: int, more: int, dropped: frozenset[int]
) -> None:
    width = 2
    asker = WindowRequest("q", 0, length * width, slide * width, 0, "p1", (), drops=dropped.__contains__)
    pane_grid = PaneGrid(width, 0, length, ())
    clock = PaneClock(before, before + more)
    found = asker.wanted(asker.windows(np.array(sorted(panes)), pane_grid, clock), clock).tolist()
    instants = {pane * width for pane in panes}
    assert found == [
        end
        for end in range(0, before + more + 1, slide * width)
        if before < end
        and any(end - length * width <= instant < end for instant in instants)
        and end not in dropped
    ]
