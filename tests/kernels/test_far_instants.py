"""Instants as far as they go: answers are right up to ±2^60, and beyond that rows and windows are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra.values import Change
from windrow.errors import DataError, QueryError
from windrow.testing import Harness
from windrow.windows.domain import FARTHEST

EXECUTORS = ["reference", "kernels", "engine"]
COLUMNS = "k BIGINT, u BIGINT, t BIGINT"
QUERIES = [
    "SELECT k, COUNT(*) AS n FROM s [RANGE {0} SLIDE {1}] GROUP BY k",
    "SELECT window_start, window_end, k FROM s [RANGE {0} SLIDE {1}]",
    "SELECT k, COUNT(*) AS n FROM s [LANDMARK SLIDE {1}] GROUP BY k",
    "SELECT k FROM s [RANGE {0}]",
    "SELECT DISTINCT k FROM s [RANGE {0}]",
    "SELECT k FROM s [ROWS 2]",
    "SELECT k FROM s [LIFETIME u]",
    "SELECT k, COUNT(*) AS n FROM s [SESSION {1} PARTITION BY k] GROUP BY k",
    "SELECT SUM(n) AS total FROM (SELECT COUNT(*) AS n FROM s [RANGE {0} SLIDE {0}]) [RANGE {0} SLIDE {0}]",
    "SELECT a.k FROM s [RANGE {0}] a, s [RANGE {1}] b WHERE a.k = b.k",
]
#: RANGE and SLIDE: few windows hold a row
SIZES = [(10, 5), (FARTHEST // 2, FARTHEST // 4), (FARTHEST, FARTHEST), (FARTHEST, FARTHEST // 2)]
near = st.one_of(
    st.integers(-FARTHEST, -FARTHEST + 30), st.integers(FARTHEST - 30, FARTHEST), st.integers(-20, 20)
)


def outcome(executor: str, text: str, rows: list[tuple[Any, ...]]) -> Any:
    """All changes, or the code of the error."""
    try:
        return _to_the_end(Harness(text, {"s": (COLUMNS, "WATTR t")}, executor=executor), rows)
    except (DataError, QueryError) as error:
        return error.code


def _to_the_end(harness: Harness, rows: list[tuple[Any, ...]]) -> list[Change]:
    harness.push("s", rows)
    harness.finish()
    return harness.take()


@given(
    text=st.sampled_from(QUERIES),
    sizes=st.sampled_from(SIZES),
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([None, -3, 7, FARTHEST, FARTHEST + 1]), near),
        min_size=1,
        max_size=4,
    ),
)
@settings(max_examples=60)
def test_executors_agree_as_far_as_instants_go(
    text: str, sizes: tuple[int, int], rows: list[tuple[Any, ...]]
) -> None:
    if "LANDMARK" in text and sizes == SIZES[0]:
        sizes = SIZES[1]  # it would report from the first row to the last
    expected, *found = (outcome(executor, text.format(*sizes), rows) for executor in EXECUTORS)
    assert found == [expected, expected]


@pytest.mark.part(5)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("instant", [-(2**63), -(2**62) - 5, -FARTHEST - 1, FARTHEST + 1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("window", ["[RANGE 10 SLIDE 10]", "[RANGE 10]", "[ROWS 1]", "[RANGE 10 WATTR u]"])
def test_rows_out_of_reach_are_refused(executor: str, instant: int, window: str) -> None:
    """A row below -2^62 was late in the first batch, and one above 2^62 was never answered."""
    harness = Harness(f"SELECT k FROM s {window}", {"s": (COLUMNS, "WATTR t ORDERED")}, executor=executor)
    column = "u" if "WATTR u" in window else "t"
    with pytest.raises(DataError, match=rf"`{column}` of stream `s` is {instant}") as error:
        _to_the_end(harness, [(1, instant, 0) if column == "u" else (1, 0, instant)])
    assert error.value.code == "instant-range"
    assert error.value.hint is not None


@pytest.mark.parametrize("executor", EXECUTORS)
def test_promises_out_of_reach_are_refused(executor: str) -> None:
    marked = {"s": (COLUMNS, "WATTR t PUNCTUATED BY u")}
    with pytest.raises(DataError, match=r"punctuation of stream `s` is 4611686018427387904"):
        Harness("SELECT k FROM s [NOW]", marked, executor=executor).push("s", [(1, 2**62, 0)])
    plain = Harness("SELECT k FROM s [NOW]", {"s": COLUMNS}, executor=executor)
    with pytest.raises(DataError, match=r"punctuation of stream `s`"):
        plain.punctuate("s", 2**62)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_changes_of_tables_out_of_reach_are_refused(executor: str) -> None:
    text = "SELECT s.k FROM s [RANGE 10] JOIN r ON r.k = s.k"
    harness = Harness(text, {"s": COLUMNS}, {"r": ("k BIGINT", "RELATION")}, executor=executor)
    with pytest.raises(DataError, match=r"a change of table `r` is 4611686018427387904"):
        harness.update("r", 2**62, insert=[(1,)])


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 1152921504606846977]",
        "[RANGE 10 SLIDE 1152921504606846977]",
        "[RANGE 10 SLIDE 10 ORIGIN 1152921504606846977]",
        "[LANDMARK FROM 1152921504606846978]",
        "[LANDMARK UNTIL 1152921504606846978 SLIDE 5]",
        "[SESSION 1152921504606846977]",
        "[ROWS 3 SLIDE 1152921504606846977]",
    ],
)
def test_windows_out_of_reach_are_refused(window: str) -> None:
    with pytest.raises(QueryError) as error:
        Harness(f"SELECT k FROM s {window}", {"s": COLUMNS})
    assert error.value.code == "window-overflow"
    assert error.value.span is not None
