"""Windows on other attributes than the stream's own: row numbers are in order by nature, so they say how far
they are; as everywhere, the kernels and the engine say what the oracle says.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from tests.kernels.relational.more_plans import Drawer
from tests.kernels.relational.scripts import Step, assert_agree
from tests.kernels.relational.test_random_plans import some

from windrow.algebra.expressions import Column
from windrow.algebra.plan import Emit
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.testing import Harness
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.session import SessionWindow
from windrow.windows.spec import WindowSpec

STREAMS = {"s": ("k BIGINT, ts BIGINT", "WATTR ts ORDERED")}


class Numbered(Drawer):
    """Draws plans whose windows are on row numbers, or on the time of arrival."""

    def spec(self, alias: str) -> WindowSpec:
        wattr = self.pick(["row_num", "row_num", "arrival_ts"])
        r, s = self.random.randint(1, 6), self.random.randint(1, 4)
        sliding = [RangeWindow(r, s, wattr=wattr), LandmarkWindow(None, None, s, wattr=wattr)]
        others = [
            RangeWindow(r, wattr=wattr),
            NowWindow(wattr=wattr),
            UnboundedWindow(wattr=wattr),
            LandmarkWindow(2, self.pick([None, 9]), None, wattr=wattr),
            LifetimeWindow(Column(f"{alias}.e", BIGINT), wattr=wattr),
            SessionWindow(s, self.pick([(), ("k",)]), wattr=wattr),
        ]
        return self.pick(sliding if self.periodic or self.bounds else [*sliding, *others])  # type: ignore[no-any-return]


@st.composite
def numbered(draw: st.DrawFn) -> tuple[Emit, list[Step]]:
    seed = draw(st.integers(0, 1 << 48))
    note(f"Numbered({seed})")
    drawer = Numbered(seed)
    try:
        return drawer.query(), drawer.script(own=False)
    except QueryError:
        assume(False)
        raise


@some(2)
@pytest.mark.deep
@given(numbered())
def test_windows_on_numbers_and_arrivals(case: tuple[Emit, list[Step]]) -> None:
    assert_agree(*case, GeneralExecutor)


@pytest.mark.parametrize("executor", ["reference", "kernels", "engine"])
@pytest.mark.parametrize(
    ("window", "first", "second"),
    [
        ("LANDMARK SLIDE 2 WATTR row_num", [(1, 2)], [(3, 4)]),
        ("LANDMARK WATTR row_num", [(1, 1), (2, 2)], [(3, 3)]),
        ("SESSION 1 WATTR row_num", [(1, 2), (1, 3)], [(1, 4)]),
    ],
)
def test_rows_say_by_their_numbers_how_far_they_are(
    executor: str, window: str, first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    """Once another row is there, what was about those before it is answered."""
    word = "RSTREAM(COUNT(*))" if window.startswith("LANDMARK") else "COUNT(*)"
    h = Harness(f"SELECT {word} FROM s [{window}]", STREAMS, executor=executor)
    h.push("s", [(1, 5), (2, 5), (3, 7)])
    assert [(*change.row, change.at) for change in h.take()] == first
    h.push("s", [(4, 8)])
    assert [(*change.row, change.at) for change in h.take()] == second
