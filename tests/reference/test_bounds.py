"""`window_start` and `window_end` are the bounds of the windows of their own SELECT.

Oracle and kernels are held against a few lines that know nothing but rows, RANGE and SLIDE: at a reporting
instant a window shows the extent that ended last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from windrow.algebra.values import Change
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.language.compile import Catalog, compile_query, declare_stream
from windrow.optimizer.optimizer import normalise
from windrow.reference.executor import ReferenceExecutor

CATALOG = Catalog(declare_stream("t", "k BIGINT, ts BIGINT", "ORDERED"))

Rows = list[tuple[int, int]]
#: RANGE and SLIDE
Shape = tuple[int, int]
Answers = Counter[tuple[int, tuple[Any, ...]]]

shapes = st.tuples(st.integers(1, 9), st.integers(1, 5))
histories = st.lists(st.tuples(st.integers(0, 2), st.integers(-4, 15)), max_size=9)


def shown(shape: Shape, rows: Rows, at: int) -> Rows | tuple[tuple[int, int], Rows]:
    """The bounds of the extent that ended last, and its rows."""
    length, slide = shape
    end = at // slide * slide
    return (end - length, end), [row for row in rows if end - length <= row[1] < end]


def selected(shape: Shape, rows: Rows, at: int) -> list[tuple[int, int, int]]:
    """SELECT window_start, window_end, k."""
    bounds, inside = shown(shape, rows, at)
    return [(*bounds, k) for k, _ in inside]


def reports(shapes: tuple[Shape, ...]) -> list[int]:
    return [at for at in range(-20, 60) if any(at % slide == 0 for _, slide in shapes)]


def answers(text: str, rows: Rows, make: Callable[[Any], Any], *, rewritten: bool = False) -> Answers:
    plan = compile_query(text, CATALOG)
    executor = make(normalise(plan).plan if rewritten else plan)
    executor.push("t", sorted(rows, key=lambda row: row[1]))
    executor.finish()
    changes: list[Change] = executor.take()
    return Counter((change.at, change.row) for change in changes)


def assert_answers(text: str, rows: Rows, expected: Answers) -> None:
    for make in (ReferenceExecutor, GeneralExecutor):
        for rewritten in (False, True):
            assert answers(text, rows, make, rewritten=rewritten) == expected


def windowed(shape: Shape) -> str:
    return f"t [RANGE {shape[0]} SLIDE {shape[1]}]"


def with_bounds(shape: Shape) -> str:
    return f"SELECT window_start AS a, window_end AS b, k FROM {windowed(shape)}"


@given(shapes, shapes, histories)
def test_each_side_of_except_has_the_bounds_of_its_own_window(one: Shape, other: Shape, rows: Rows) -> None:
    expected: Answers = Counter()
    for at in reports((one, other)):
        left, right = (Counter(selected(shape, rows, at)) for shape in (one, other))
        expected.update({(at, row): n for row, n in (left - right).items()})
    assert_answers(f"{with_bounds(one)} EXCEPT ALL {with_bounds(other)}", rows, expected)


@given(shapes, shapes, histories)
def test_joined_nested_queries_have_the_bounds_of_their_own_windows(
    one: Shape, other: Shape, rows: Rows
) -> None:
    expected: Answers = Counter()
    for at in reports((one, other)):
        pairs = product(selected(one, rows, at), selected(other, rows, at))
        expected.update((at, (*x, *y)) for x, y in pairs if x[2] == y[2])
    text = f"SELECT * FROM ({with_bounds(one)}) x JOIN ({with_bounds(other)}) y ON x.k = y.k"
    assert_answers(text, rows, expected)


@given(shapes, histories)
def test_a_nested_query_without_a_window_has_the_bounds_of_the_query_around_it(
    shape: Shape, rows: Rows
) -> None:
    expected: Answers = Counter()
    for at in reports((shape,)):
        expected.update((at, row[:2]) for row in set(selected(shape, rows, at)))
    text = f"SELECT window_start, window_end FROM (SELECT DISTINCT k FROM {windowed(shape)}) x"
    assert_answers(text, rows, expected)


@given(shapes, st.integers(1, 5), histories)
def test_bounds_leave_a_nested_query_as_plain_values(shape: Shape, slide: int, rows: Rows) -> None:
    """A column called `window_end` goes first; the rows of a nested query under a window are of E-1."""
    stream = [(end, k, at - 1) for at in reports((shape,)) for _, end, k in sorted(selected(shape, rows, at))]
    stream = [row for row in stream if row[2] <= 40]
    expected: Answers = Counter()
    for at in reports(((slide, slide),)):
        inside = [(end, at) for end, _, t in stream if at - slide <= t < at]
        expected.update((at, row) for row in inside)
    nested = f"SELECT window_end, k FROM {windowed(shape)}"
    text = f"SELECT window_end, window_start + {slide} AS own FROM ({nested}) [RANGE {slide} SLIDE {slide}] x"
    assert_answers(text, rows, expected)


def test_windows_of_different_periods_have_no_bounds_in_common() -> None:
    for text in (
        "SELECT window_start FROM t [RANGE 5 SLIDE 5] x, t [RANGE 9 SLIDE 5] y",
        "SELECT window_start FROM (SELECT k FROM t [RANGE 5 SLIDE 5]) x, t [RANGE 5 SLIDE 2] y",
        "SELECT window_end FROM t [RANGE 5 SLIDE 5] x"
        " WHERE EXISTS (SELECT * FROM t [RANGE 5 SLIDE 5 ORIGIN 1])",
        "SELECT k FROM (SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM t [RANGE 5 SLIDE 1]) x"
        " GROUP BY k HAVING window_end > 7",
    ):
        with pytest.raises(QueryError, match="different periods") as error:
            compile_query(text, CATALOG)
        assert error.value.code == "window-bounds"
        assert error.value.span is not None
        assert error.value.hint is not None
        assert "nested query" in error.value.hint
