"""Random streams and random windows of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from windrow.windows.cumulate import CumulateWindow
from windrow.windows.domain import Element, sort_key
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.windows.spec import WindowSpec

#: streams lie around zero, or at either end of the 64-bit integers
BASES = st.sampled_from([0, 0, 2**63 - 60, -(2**63) + 30])
SIZES = st.integers(1, 12)
SLIDES = st.one_of(st.none(), SIZES)
PHASES = st.integers(-30, 30)
KEYS = st.sampled_from([(), ("k",)])


@st.composite
def _streams(draw: Callable[..., Any]) -> list[Element]:
    """Rows in arrival order: out of order in time, with ties, several keys, some without a lifetime."""
    base = draw(BASES)
    facts = st.tuples(
        st.integers(-25, 25),
        st.sampled_from(["a", "b", None]),
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(-2, 9)),
    )
    rows = draw(st.lists(facts, max_size=8))
    return [
        Element(base + t, number, (key,), sort_key((tie, key, lifetime)), lifetime)
        for number, (t, key, tie, lifetime) in enumerate(rows, start=1)
    ]


@st.composite
def _landmarks(draw: Callable[..., Any]) -> LandmarkWindow:
    start, until = draw(st.one_of(st.none(), PHASES)), draw(st.one_of(st.none(), PHASES))
    if start is not None and until is not None and start > until:
        start, until = until, start
    return LandmarkWindow(start, until, draw(SLIDES), draw(st.one_of(st.none(), PHASES)))


#: but for windows by the calendar, which end with it; they have tests of their own
KINDS: dict[str, st.SearchStrategy[WindowSpec]] = {
    "range": st.builds(RangeWindow, SIZES, SLIDES, PHASES),
    "lagged": st.builds(LaggedWindow, SIZES, st.integers(0, 12), SLIDES, PHASES),
    "now": st.just(NowWindow()),
    "unbounded": st.just(UnboundedWindow()),
    "landmark": _landmarks(),
    "lifetime": st.builds(LifetimeWindow, st.just("ttl"), st.integers(1, 3)),
    "rows": st.builds(RowsWindow, SIZES, SLIDES, st.none(), partition_by=KEYS, arrival_order=st.booleans()),
    "rows-in-time": st.builds(
        RowsWindow, SIZES, st.none(), SIZES, PHASES, partition_by=KEYS, arrival_order=st.booleans()
    ),
    "slide-by-tuple": st.builds(
        SlideByTupleWindow, SIZES, st.integers(1, 4), by_rank=st.booleans(), partition_by=KEYS
    ),
    "landmark-rows": st.builds(
        lambda every, start: SlideByTupleWindow(None, every, by_rank=True, start=start),
        st.integers(1, 4),
        st.none() | PHASES,
    ),
    "session": st.builds(SessionWindow, SIZES, KEYS, st.booleans()),
    "cumulate": st.builds(
        lambda step, steps, phase: CumulateWindow(step * steps, step, phase), SIZES, SIZES, PHASES
    ),
}


@pytest.fixture(scope="session")
def streams() -> st.SearchStrategy[list[Element]]:
    return _streams()


@pytest.fixture(scope="session", params=KINDS)
def windows(request: pytest.FixtureRequest) -> st.SearchStrategy[WindowSpec]:
    """Windows of one kind; a test that asks for them runs once for every kind."""
    return KINDS[request.param]
