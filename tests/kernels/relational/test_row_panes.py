"""Panes of rows: answers as the oracle's over every cut into batches, and bounded state."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.agreement import assert_same

from windrow.algebra.plan import Emit
from windrow.engine.explain import declared, explain
from windrow.errors import DataError
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.aggregate.row_panes import RowPanes
from windrow.kernels.relational.expiry_layouts import Options
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor

STREAM = {"s": "k BIGINT, x STRING, v DOUBLE, ts BIGINT"}
Row = tuple[Any, ...]

WINDOWS = [
    "ROWS 12 SLIDE 4 ROWS",
    "ROWS 9 SLIDE 6 ROWS",
    "ROWS 5 SLIDE 5 ROWS",
    "ROWS 2 SLIDE 5 ROWS",
    "ROWS 7 SLIDE 3 ROWS",
    "ROWS 40 SLIDE 1 ROWS",
    "ROWS 8 SLIDE 2 ROWS WATTR row_num",
    "ROWS 5 SLIDE 3 ROWS WATTR row_num",
]
SHAPES = [
    "SELECT FREQUENT(x, {n}) AS f FROM s [{window}]",
    "SELECT k, FREQUENT(x, {n}) FILTER (WHERE x <> 'b') AS f, COUNT(*) AS c FROM s [{window}] GROUP BY k",
    "SELECT window_start, window_end, FREQUENT(x, {n}) AS f FROM s [{window}] WHERE x <> 'c'",
    "SELECT k, TOP_K(x, {n}) AS t, MEDIAN(v) AS m, COUNT(DISTINCT x) AS d, MAX(v) AS g FROM s [{window}]"
    " GROUP BY k HAVING COUNT(*) > 1",
    "SELECT APPROX_TOP_K(x, {n}) AS t, MODE(x) AS m, HEAVY_HITTERS(x, 0.3) AS h, SUM(v) AS v"
    " FROM s [{window}]",
    "SELECT ISTREAM(k, FREQUENT(x, {n}) AS f) FROM s [{window}] GROUP BY k",
    "SELECT DSTREAM(FREQUENT(x, {n}) AS f) FROM s [{window}] WHERE k = 1",
    "SELECT FREQUENT(q.y, {n}) AS f FROM (SELECT x AS y FROM s [{window}]) AS q",
    "SELECT COUNT(*) AS n, FREQUENT(6 / k, {n}) AS f FROM s [{window}]",
]


def plan(query: str) -> Emit:
    return compile_query(query, declared(STREAM, {}))


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    values = st.tuples(
        st.sampled_from([0, 1, 1, 2, None]),
        st.sampled_from([*"aaaabbbcd", None]),
        st.sampled_from([0.5, 1.0, -2.25, None]),
        st.integers(0, 2),
    )
    moment, found = 0, []
    for k, x, v, step in draw(st.lists(values, min_size=1, max_size=60)):
        moment += step
        found.append((k, x, v, moment))
    return found


def batches(rows: list[Row], sizes: list[int]) -> list[list[Row]]:
    found, begin = [], 0
    for size in [*sizes, len(rows)]:
        found.append(rows[begin : begin + size])
        begin += size
    return [batch for batch in found if batch]


def outcome(executor: Any, parts: list[list[Row]], promises: list[bool]) -> tuple[list[Any], str | None]:
    """All changes, and the code of the error that ended them."""
    found: list[Any] = []
    try:
        for number, batch in enumerate(parts):
            executor.push("s", batch)
            later = [row[3] for part in parts[number + 1 :] for row in part]
            if promises[number % len(promises)] and later:
                executor.punctuate("s", min(later))
            found += executor.take()
        executor.finish()
        return [*found, *executor.take()], None
    except DataError as error:
        return [], error.code


@settings(max_examples=70)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(WINDOWS),
    st.integers(1, 3),
    histories(),
    st.lists(st.integers(1, 20), max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_answers_are_those_of_the_oracle(
    shape: str,
    window: str,
    n: int,
    rows: list[Row],
    sizes: list[int],
    promises: list[bool],
    chance: random.Random,
) -> None:
    emit = plan(shape.format(n=n, window=window))
    executor = GeneralExecutor(emit)
    assert any(isinstance(operator, RowPanes) for _, operator in executor.program.operators())
    parts = batches(rows, sizes)
    for part in parts:
        chance.shuffle(part)
    expected, wrong = outcome(ReferenceExecutor(emit), parts, promises)
    found, error = outcome(executor, parts, promises)
    assert error == wrong
    assert_same(found, expected)


@given(st.sampled_from(SHAPES[:7]), st.sampled_from(WINDOWS), histories(), st.integers(0, 60))
@settings(max_examples=25)
def test_the_relation_at_an_instant_is_the_oracles(shape: str, window: str, rows: list[Row], at: int) -> None:
    emit = plan(shape.format(n=2, window=window))
    if emit.reads_window_bounds:
        return
    oracle, executor = ReferenceExecutor(emit), GeneralExecutor(emit)
    for each in (oracle, executor):
        each.push("s", rows)
        each.finish()
    assert executor.relation(at) == oracle.relation(at)


def test_an_error_in_a_row_of_no_extent_is_none() -> None:
    """Rows after the last end are in no extent, nor are those between extents."""
    emit = plan("SELECT FREQUENT(6 / k, 3) AS f FROM s [ROWS 2 SLIDE 4 ROWS]")
    executor = GeneralExecutor(emit)
    executor.push("s", [(k, "a", 0.0, ts) for ts, k in enumerate([0, 0, 1, 2, 0, 1])])
    executor.finish()
    assert [change.row for change in executor.take()] == [(((3.0, 1), (6.0, 1)),)]
    executor = GeneralExecutor(emit)
    executor.push("s", [(k, "a", 0.0, ts) for ts, k in enumerate([1, 1, 0, 2])])
    executor.finish()
    with pytest.raises(DataError):
        executor.take()


# ------------------------------------------------------------------ what is kept


def kept(executor: GeneralExecutor) -> int:
    """Rows of all chunks of all states."""
    return sum(
        chunk.table.num_rows
        for state in executor.states.values()
        for chunks in state.chunks.values()
        for chunk in chunks
    )


def fed(window: str, options: Options | None = None) -> GeneralExecutor:
    """After 2500 rows of 2000 values in two groups, in batches that are no multiple of the slide."""
    emit = plan(f"SELECT k, FREQUENT(x, 3) AS f FROM s [{window}] GROUP BY k")
    executor, chance = GeneralExecutor(emit, options), random.Random(3)
    for begin in range(0, 2500, 170):
        batch = [(n % 2, f"v{chance.randrange(2000)}", 0.0, n) for n in range(begin, min(begin + 170, 2500))]
        executor.push("s", batch)
        executor.punctuate("s", batch[-1][3] + 1)
    executor.take()
    return executor


@pytest.mark.part(2)
@pytest.mark.parametrize("slides", [5, 20])
def test_a_window_keeps_lists_of_its_panes_and_no_rows(slides: int) -> None:
    k, groups, slide = 3, 2, 50
    executor = fed(f"ROWS {slides * slide} SLIDE {slide} ROWS")
    # of each pane and group: k counts, δ and a count of rows; the running sums are no more than that again.
    # The slide that is open has at most its rows, as counts, and two counts of rows
    assert kept(executor) <= 2 * slides * groups * (k + 2) + 2 * slide + 8
    assert kept(fed(f"ROWS {slides * slide} SLIDE {slide} ROWS", Options(bins=False))) >= slides * slide


@pytest.mark.thorough
def test_windows_of_more_panes_grow_by_lists_alone() -> None:
    small, large = (kept(fed(f"ROWS {size} SLIDE 50 ROWS")) for size in (500, 2000))
    assert large - small <= 30 * 2 * 2 * (3 + 2)


@settings(max_examples=20)
@given(st.sampled_from(WINDOWS), histories(), *[st.lists(st.integers(1, 15), max_size=8)] * 2)
def test_state_does_not_depend_on_the_cut(
    window: str, rows: list[Row], one: list[int], other: list[int]
) -> None:
    """After the same rows and one promise, what comes next is the same, whatever was cut where before."""
    emit = plan(f"SELECT k, FREQUENT(x, 2) AS f FROM s [{window}] GROUP BY k")
    half = len(rows) // 2
    tails = []
    for sizes in (one, other):
        executor = GeneralExecutor(emit)
        for part in batches(rows[:half], sizes):
            executor.push("s", part)
        executor.punctuate("s", rows[half][3])
        executor.take()
        executor.push("s", rows[half:])
        executor.finish()
        tails.append(executor.take())
    assert tails[0] == tails[1]


def test_explain_names_the_panes() -> None:
    text = str(
        explain("SELECT k, FREQUENT(x, 3) FROM s [ROWS 100000 SLIDE 1000 ROWS] GROUP BY k", streams=STREAM)
    )
    assert "panes of rows: states of 100 panes per window" in text
    assert "no rows are kept" in text
