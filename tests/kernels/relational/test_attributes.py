"""Windows on other attributes than the stream's own: row numbers are in order by nature, so they say how far
they are; as everywhere, the kernels and the engine say what the oracle says.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given, note, settings, strategies as st
from tests.kernels.relational.more_plans import Drawer
from tests.kernels.relational.scripts import Step, assert_agree
from tests.kernels.relational.test_random_plans import some

from windrow.algebra.expressions import ColumnRef
from windrow.algebra.plan import Emit
from windrow.algebra.types import BIGINT
from windrow.engine.explain import declared
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
            LifetimeWindow(ColumnRef(f"{alias}.e", BIGINT), wattr=wattr),
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


ALSO = {"s": ("k BIGINT, seq BIGINT, ts BIGINT", "WATTR ts SLACK 3 ALSO seq {0} LATE DROP")}
ALSO_QUERIES = [
    "SELECT k, COUNT(*) AS n, window_end FROM s [RANGE 6 SLIDE 2 WATTR seq] GROUP BY k",
    "SELECT DISTINCT k FROM s [RANGE 4 WATTR seq]",
    "SELECT MAX(k) FROM s [ROWS 2 WATTR seq]",
    "SELECT SUM(k) FROM s [RANGE 3 SLIDE 2 ROWS RATTR seq SATTR rank(seq)]",
    "SELECT a.k, b.seq FROM s [RANGE 5 SLIDE 5 WATTR seq] AS a, s [RANGE 10 SLIDE 5] AS b WHERE a.k = b.k",
    "SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5]",
    "SELECT COUNT(*) FROM s [SESSION 2 WATTR seq]",
    "SELECT COUNT(*) FROM s [RANGE 5 SLIDE 5 LAG 2 WATTR seq]",
]
values = st.sampled_from([None, 1, 2, 3])
rows = st.tuples(values, st.none() | st.integers(0, 30), st.integers(0, 12))


@pytest.mark.parametrize("executor", ["kernels", "engine"])
@settings(max_examples=150)
@given(
    query=st.sampled_from(ALSO_QUERIES),
    policy=st.sampled_from(["ORDERED", "SLACK 4", "SLACK 1 ROWS"]),
    batches=st.lists(st.lists(rows, max_size=4), max_size=5),
)
def test_another_attribute_with_a_policy_of_its_own(
    executor: str, query: str, policy: str, batches: list[list[tuple[object, ...]]]
) -> None:
    streams = {"s": (ALSO["s"][0], ALSO["s"][1].format(policy))}
    mine, oracle = (Harness(query, streams, executor=each) for each in (executor, "reference"))
    for batch in batches:
        for harness in (mine, oracle):
            harness.push("s", batch)
        assert Counter(mine.take()) == Counter(oracle.take())
    assert mine.late("s") == oracle.late("s")
    for harness in (mine, oracle):
        harness.finish()
    assert Counter(mine.take()) == Counter(oracle.take())


@pytest.mark.parametrize("executor", ["reference", "kernels", "engine"])
def test_a_row_that_is_late_by_the_other_attribute_is_in_windows_of_its_own(executor: str) -> None:
    streams = {"s": (ALSO["s"][0], ALSO["s"][1].format("ORDERED"))}
    found = {}
    for window in ("WATTR seq", "WATTR ts"):
        h = Harness(f"SELECT COUNT(*) FROM s [RANGE 10 SLIDE 10 {window}]", streams, executor=executor)
        h.push("s", [(1, 1, 1), (1, 12, 2)])
        at_once = [(*change.row, change.at) for change in h.take()]
        h.push("s", [(1, 11, 3), (1, 20, 4)])
        h.finish()
        found[window] = at_once, [(*change.row, change.at) for change in h.take()], h.late("s")
    assert found["WATTR seq"] == ([(1, 10)], [(1, 20), (1, 30)], [(1, 11, 3)])
    assert found["WATTR ts"] == ([], [(4, 10)], [(1, 11, 3)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ALSO ts ORDERED", "is its WATTR"),
        ("ALSO name ORDERED", "is STRING, and a windowing attribute"),
        ("ALSO nothing ORDERED", "has no column `nothing` to window on"),
        ("ALSO k ORDERED ALSO k SLACK 2", "there twice"),
        ("ALSO k ORDERED PER name", "told apart by its WATTR"),
        ("ALSO k ORDERED LATE KEEP", "does not go with ALSO"),
        ("ALSO k", "ORDERED or SLACK"),
    ],
)
def test_other_attributes_that_mean_nothing(options: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        declared({"s": ("k BIGINT, name STRING, ts BIGINT", f"WATTR ts ORDERED {options}")}, {})
    assert caught.value.hint or message == "ORDERED or SLACK"
