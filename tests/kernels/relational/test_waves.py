"""APPROX_COUNT and APPROX_SUM over continuous windows: within their error, in little space, however cut."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra.aggregates import make
from windrow.engine.explain import explain
from windrow.errors import DataError, QueryError
from windrow.kernels.aggregates.measures import marks
from windrow.kernels.executor import GeneralExecutor
from windrow.reference.snapshot import estimate
from windrow.testing import Harness

COLUMNS = "k BIGINT, x BIGINT, ts BIGINT"
Row = tuple[int, int | None, int]
ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([None, 0, 1, 2, 7, 1000]), st.integers(0, 50)), max_size=40
)
SELECTED = (
    "APPROX_COUNT(*, {e}) AS n",
    "APPROX_COUNT(x, {e}) AS n, APPROX_SUM(x, {e}) AS t",
    "APPROX_SUM(x, {e}) FILTER (WHERE x > 1) AS t, MAX(x) AS m, APPROX_COUNT(*, {e}) AS n",
)


def answers(query: str, batches: list[list[Row]], executor: str) -> list[Any]:
    harness = Harness(query, streams={"s": (COLUMNS, "WATTR ts")}, executor=executor)
    for batch in batches:
        harness.push("s", batch)
    harness.finish()
    return harness.take()


def in_steps(query: str, rows: list[Row], sizes: list[int]) -> list[Any]:
    """The same on kernels with rows in order, in steps of these sizes, over and over."""
    harness = Harness(query, streams={"s": (COLUMNS, "WATTR ts ORDERED")}, executor="kernels")
    rows = sorted(rows, key=lambda row: row[2])
    found: list[Any] = []
    at = turn = 0
    while at < len(rows):
        size = sizes[turn % len(sizes)]
        harness.push("s", rows[at : at + size])
        found += harness.take()
        at, turn = at + size, turn + 1
    harness.finish()
    return found + harness.take()


@settings(max_examples=40)
@given(
    ROWS,
    st.sampled_from([0.9, 0.5, 0.2]),
    st.sampled_from([1, 3, 10, 30]),
    st.sampled_from(SELECTED),
    st.booleans(),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_kernels_are_as_defined_however_rows_are_cut(
    rows: list[Row], error: float, length: int, selected: str, keyed: bool, sizes: list[int]
) -> None:
    by = ("k, ", " GROUP BY k") if keyed else ("", "")
    query = f"SELECT {by[0]}{selected.format(e=error)} FROM s [RANGE {length}]{by[1]}"
    expected = answers(query, [rows], "reference")
    assert in_steps(query, rows, sizes) == expected
    assert answers(query, [rows[::2], rows[1::2]], "kernels") == expected


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 300)), min_size=1, max_size=80),
    st.sampled_from([0.9, 0.34, 0.1, 0.02]),
    st.integers(1, 60),
)
def test_the_error_is_bounded_at_every_instant(
    steps: list[tuple[int, int]], error: float, length: int
) -> None:
    t, rows = 0, []
    for wait, value in steps:
        t += wait
        rows.append((t, value))
    for at in range(t + length + 1):
        alive = [value for since, value in rows if since <= at < since + length]
        for exact, units in ((len(alive), [(since, 1) for since, _ in rows]), (sum(alive), rows)):
            found = estimate(units, at, length, error)
            assert (found is None) == (not alive)
            assert abs((found or 0) - exact) <= error * exact


@given(st.integers(1, 3000), st.integers(2, 40), st.data())
def test_marks_are_the_last_multiples_of_powers_of_two(last: int, most: int, data: Any) -> None:
    gone = data.draw(st.integers(0, last))
    marked = {0, 1}
    for level in range(13):
        marked |= {number << level for number in range(last >> level, max(-1, (last >> level) - most), -1)}
    low, high = marks(np.array([last]), np.array([gone]), most)
    assert low[0] == max(mark for mark in marked if mark <= gone)
    assert high[0] == min((mark for mark in marked if mark > gone), default=last + 1)


@pytest.mark.part(2)
@pytest.mark.parametrize("error", [0.3, 0.05])
@pytest.mark.parametrize("function", ["APPROX_COUNT(*, {e})", "APPROX_SUM(x, {e})"])
def test_the_state_is_logarithmic(function: str, error: float) -> None:
    length = 8_000
    query = f"SELECT {function.format(e=error)} AS n FROM s [RANGE {length}]"
    harness = Harness(query, streams={"s": (COLUMNS, "WATTR ts ORDERED")}, executor="kernels")
    chance = random.Random(1)
    most, sizes = make("approx_count", (error,)).marks, []  # type: ignore[attr-defined]
    rows: list[Row] = [(0, chance.randint(0, 30), t) for t in range(2 * length)]
    for begin in range(0, len(rows), 2000):
        harness.push("s", rows[begin : begin + 2000])
        harness.take()
        executor = harness._executor
        assert isinstance(executor, GeneralExecutor)
        sizes.append(sum(_rows(state) for state in executor.states.values()))
    bound = most * (math.log2(30 * length / most) + 3) + 4
    assert max(sizes) <= bound < length / 10
    assert sizes[-1] > most, "a wave remembers something"


def _rows(state: Any) -> int:
    return sum(chunk.table.num_rows for chunks in state.chunks.values() for chunk in chunks)


def test_numbers_far_beyond_those_of_a_window_do_no_harm() -> None:
    """A run that never ends has numbered more units than 64 bits hold."""
    huge = 1 << 57
    rows: list[Row] = [(0, huge + t % 3, t) for t in range(90)]
    query = "SELECT APPROX_SUM(x, 0.4) AS t FROM s [RANGE 4]"
    assert in_steps(query, rows, [1]) == in_steps(query, rows, [7]) == answers(query, [rows], "reference")


@pytest.mark.parametrize("executor", ["reference", "kernels"])
def test_negative_values_are_refused(executor: str) -> None:
    with pytest.raises(DataError, match="from 0 on, not -3"):
        answers("SELECT APPROX_SUM(x) AS t FROM s [RANGE 4]", [[(0, -3, 1)]], executor)


def test_a_step_too_large_for_its_numbers_is_refused() -> None:
    rows: list[Row] = [(0, 1 << 62, t) for t in range(3)]
    with pytest.raises(DataError, match="64 bits"):
        answers("SELECT APPROX_SUM(x) AS t FROM s [RANGE 4]", [rows], "kernels")


@pytest.mark.parametrize(
    ("selected", "window", "becomes"),
    [
        ("APPROX_COUNT(*, 0.1)", "[RANGE 9]", "APPROX_COUNT(*, 0.1)"),
        ("APPROX_COUNT(*)", "[RANGE 9 SLIDE 3]", "COUNT(*)"),
        ("APPROX_COUNT(x)", "[ROWS 9]", "COUNT(x)"),
        ("APPROX_SUM(x, 0.2)", "[UNBOUNDED]", "SUM(x)"),
        ("APPROX_SUM(x), AVG(x)", "[RANGE 9]", "SUM(x)"),
        ("APPROX_SUM(x), FIRST(k)", "[RANGE 9]", "APPROX_SUM(x, 0.01)"),
        ("APPROX_COUNT(DISTINCT x)", "[RANGE 9]", "COUNT(DISTINCT x)"),
    ],
)
def test_they_are_exact_where_that_costs_nothing(selected: str, window: str, becomes: str) -> None:
    found = explain(f"SELECT {selected} FROM s {window}", streams={"s": COLUMNS})
    (grouping,) = [step.operator for step in found.plan.walk() if step.operator.startswith("γ")]
    assert grouping.removeprefix("γ all rows: ").startswith(becomes)
    assert bool(found.errors) == becomes.startswith("APPROX")


def test_what_sketches_of_waves_cannot_take_is_refused() -> None:
    for text, reason in (
        ("APPROX_SUM(*)", "cannot take `\\*`"),
        ("APPROX_COUNT(*, 2)", "error of 2"),
        ("APPROX_SUM(x / 2.0)", "whole numbers"),
    ):
        with pytest.raises(QueryError, match=reason):
            explain(f"SELECT {text} FROM s [RANGE 9]", streams={"s": COLUMNS})
