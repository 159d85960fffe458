"""FREQUENT and HEAVY_HITTERS: kernels as the oracle, the oracle as the thesis promises, and bounded state."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.agreement import assert_same

from windrow.algebra.aggregates import make
from windrow.algebra.aggregates.frequent import Frequent
from windrow.algebra.plan import Emit
from windrow.engine.explain import declared, explain
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor, KernelExecutor
from windrow.kernels.relational.expiry_layouts import Options, Strategy
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor
from windrow.testing import Harness

STREAM = {"s": "k BIGINT, x STRING, ts BIGINT", "z": "k BIGINT, x STRING, ts BIGINT"}
SKEWED = st.sampled_from([*"aaaaaabbbbccd", None])
Row = tuple[Any, ...]


def plan(query: str) -> Emit:
    return compile_query(query, declared(STREAM, {}))


def changes(executor: Any, rows: list[Row], size: int) -> list[Any]:
    """All changes; the clock follows the rows, which are in order."""
    found = []
    for begin in range(0, len(rows), size):
        executor.push("s", rows[begin : begin + size])
        executor.punctuate("s", rows[min(begin + size, len(rows)) - 1][2])
        found += executor.take()
    executor.finish()
    return [*found, *executor.take()]


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    rows = draw(st.lists(st.tuples(st.integers(0, 1), SKEWED, st.integers(0, 3)), min_size=1, max_size=60))
    moment, found = 0, []
    for k, x, step in rows:
        moment += step
        found.append((k, x, moment))
    return found


WINDOWS = ["RANGE 12 SLIDE 4", "RANGE 10 SLIDE 4", "RANGE 5 SLIDE 5", "RANGE 3 SLIDE 5", "LANDMARK SLIDE 6"]
SHAPES = [
    "SELECT FREQUENT(x, {k}) AS f FROM s [{window}]",
    "SELECT k, FREQUENT(x, {k}) FILTER (WHERE x <> 'b') AS f, HEAVY_HITTERS(x, 0.3) AS h FROM s [{window}]"
    " GROUP BY k",
]


@pytest.mark.parametrize("stacked", [True, False, None])
@settings(max_examples=25)
@given(st.sampled_from(WINDOWS), st.sampled_from(SHAPES), st.integers(1, 4), histories(), st.integers(1, 20))
def test_sliding_kernels_answer_as_the_oracle(
    stacked: bool | None, window: str, shape: str, k: int, rows: list[Row], size: int
) -> None:
    emit = plan(shape.format(k=k, window=window))
    expected = changes(ReferenceExecutor(emit), rows, size)
    assert_same(changes(KernelExecutor(emit, stacked=stacked, by_group=False), rows, size), expected)


GENERAL = [
    "SELECT FREQUENT(x, {k}) AS f FROM s [ROWS 12 SLIDE 4 ROWS]",
    "SELECT k, FREQUENT(x, {k}) AS f FROM s [ROWS 9 SLIDE 6 ROWS] WHERE x <> 'd' GROUP BY k",
    "SELECT FREQUENT(x, {k}) AS f FROM s [ROWS 8 SLIDE 2 ROWS WATTR row_num]",
    "SELECT ISTREAM(k, FREQUENT(x, {k}) AS f) FROM s [ROWS 6 SLIDE 3 ROWS] GROUP BY k",
    "SELECT ISTREAM(FREQUENT(x, {k}) AS f) FROM s [RANGE 10 SLIDE 4]",
    "SELECT DSTREAM(k, FREQUENT(x, {k}) AS f) FROM s [RANGE 12 SLIDE 4] GROUP BY k",
    "SELECT FREQUENT(q.x, {k}) AS f FROM"
    " (SELECT x FROM s [RANGE 8 SLIDE 4] UNION ALL SELECT x FROM s [RANGE 8 SLIDE 4]) AS q",
]


@settings(max_examples=40)
@given(
    st.sampled_from(GENERAL),
    st.integers(1, 3),
    st.sampled_from(Strategy),
    histories(),
    st.integers(1, 20),
)
def test_general_kernels_answer_as_the_oracle(
    query: str, k: int, strategy: Strategy, rows: list[Row], size: int
) -> None:
    emit = plan(query.format(k=k))
    expected = changes(ReferenceExecutor(emit), rows, size)
    assert_same(changes(GeneralExecutor(emit, Options(strategy=strategy)), rows, size), expected)


@pytest.mark.parametrize("executor", ["reference", "kernels"])
def test_a_table_may_be_joined_below(executor: str) -> None:
    chance = random.Random(5)
    rows = [(chance.choice([1, 1, 1, 2, 2, 3]), "", n) for n in range(40)]
    named = Harness(
        "SELECT FREQUENT(t.name, 2) AS f FROM s [RANGE 20 SLIDE 5] JOIN t ON s.k = t.k",
        streams=STREAM,
        tables={"t": ("k BIGINT, name STRING, KEY (k)", "NRR")},
        executor=executor,
    )
    plain = Harness("SELECT FREQUENT(k, 2) AS f FROM s [RANGE 20 SLIDE 5]", streams=STREAM)
    named.update("t", -1, insert=[(1, "1"), (2, "2"), (3, "3")], delete=[])
    for harness in (named, plain):
        harness.push("s", rows)
        harness.finish()
    as_names = [tuple((str(value), count) for value, count in change.row[0]) for change in plain.take()]
    assert [change.row[0] for change in named.take()] == as_names
    assert any(len(each) > 1 for each in as_names)


# ------------------------------------------------------------------ what the thesis promises


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 6), histories())
def test_what_is_reported_is_frequent(k: int, slide: int, slides: int, rows: list[Row]) -> None:
    """No value is reported that is not over δ, and none too often; with room for all, all are exact."""
    size = slide * slides
    emit = plan(f"SELECT FREQUENT(x, {k}) AS f, COUNT(x) AS n FROM s [RANGE {size} SLIDE {slide}]")
    for change in changes(KernelExecutor(emit), rows, 7):
        (found, values), end = change.row, change.at
        inside = [(x, ts) for _, x, ts in rows if end - size <= ts < end and x is not None]
        true = Counter(x for x, _ in inside)
        panes = [Counter(x for x, ts in inside if ts // slide == pane) for pane in range(end // slide)]
        limit = sum(pane.most_common(k)[-1][1] for pane in panes if len(pane) >= k)
        assert sum(true.values()) == values
        assert all(true[value] >= count > limit for value, count in found)
        assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)
        if all(len(pane) < k for pane in panes):
            assert dict(found) == true, "every value is on every list"
        for value, count in true.items():
            missed = sum(pane[value] for pane in panes if pane[value] <= _last(pane, k))
            if count - missed > limit:
                assert value in dict(found), "it is on the list wherever it is above the last one"


def _last(pane: Counter[str], k: int) -> int:
    """The count up to which a value may be missing on a list."""
    return pane.most_common(k)[-1][1] if len(pane) > k else 0


def test_one_execution_worked_out_by_hand() -> None:
    """Lists of two: a 3 and b 2, then a 2 and d 2, then c 6 and a 1, hence δ = 2 + 2 + 1.

    a is on all lists, and c is above δ by one of them alone; b and d are not.
    """
    rows = [(0, x, moment) for moment, pane in enumerate(["aaabbc", "aadbd", "ccccccab"]) for x in pane]
    emit = plan("SELECT FREQUENT(x, 2) AS f, TOP_K(x, 4) AS exact FROM s [RANGE 3 SLIDE 1]")
    for executor in (ReferenceExecutor(emit), KernelExecutor(emit)):
        (whole,) = [change.row for change in changes(executor, rows, 99) if change.at == 3]
        assert whole[0] == (("a", 6), ("c", 6))
        assert whole[1] == (("c", 7), ("a", 6), ("b", 4), ("d", 2)), "one c was on no list"


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("aaabbcd")), max_size=30),
    st.integers(1, 3),
)
def test_states_of_closed_sub_windows_add_up(rows: list[tuple[int, str]], k: int) -> None:
    top = make("frequent", (k,))
    assert isinstance(top, Frequent)
    parts = [top.fold(top.lift((x,), (pane,)) for pane, x in rows if pane == own) for own in range(4)]
    closed = [top.closed(part) for part in parts]
    assert all(len(part) <= k + 1 for part in closed)
    assert top.lower(top.fold(closed)) == top.lower(top.fold(parts))
    assert top.lower(top.fold([*closed[:2], *parts[2:]])) == top.lower(top.fold(parts)), "some still open"
    assert top.subtract(top.fold(closed), closed[0]) == top.fold(closed[1:])
    assert top.closed(top.closed(top.fold(parts))) == top.closed(top.fold(parts))


@pytest.mark.part(3)
@pytest.mark.parametrize("stacked", [True, False, None])
def test_panes_that_are_over_keep_lists_only(stacked: bool | None) -> None:
    chance, k, panes, width = random.Random(1), 3, 8, 10
    emit = plan(f"SELECT k, FREQUENT(x, {k}) AS f FROM s [RANGE {panes * width} SLIDE {width}] GROUP BY k")
    executor = KernelExecutor(emit, stacked=stacked, by_group=False)
    for n in range(40):
        rows = [
            (g, f"v{chance.randrange(500)}", n * width + chance.randrange(width))
            for g in (0, 1)
            for _ in range(100)
        ]
        executor.push("s", rows)
        executor.punctuate("s", (n + 1) * width)
    executor.take()
    (state,) = executor._states
    kept = [chunk.table for name, part in state.chunks.items() if name.startswith("values") for chunk in part]
    assert kept
    # of each pane and group k counts and a threshold; stacks keep what is left after each pane, differences
    # the sum of all
    cells = 2 * panes * (k + 1)
    assert sum(table.num_rows for table in kept) <= {True: 5, False: 1, None: 2}[stacked] * cells
    assert all(table.column("v1").null_count == table.num_rows for table in kept), "nothing is open"


@given(st.lists(st.sampled_from("aaabbcd"), max_size=40), st.sampled_from(["0", "0.1", "0.3", "0.5", "1"]))
def test_heavy_hitters_are_above_the_fraction_as_it_is_written(values: list[str], fraction: str) -> None:
    heavy = make("heavy_hitters", (float(fraction),))
    found = heavy.lower(heavy.fold(heavy.lift((value,)) for value in values))
    counts = Counter(values)
    limit = Fraction(fraction) * len(values)
    assert dict(found) == {value: count for value, count in counts.items() if count > limit}
    least = make("heavy_hitters", (float(fraction), ">="))
    found = least.lower(least.fold(least.lift((value,)) for value in values))
    assert dict(found) == {value: count for value, count in counts.items() if count >= limit}


# ------------------------------------------------------------------ where it is refused

REFUSED = {
    "no SLIDE": ("SELECT FREQUENT(x, 3) FROM s [RANGE 10]", "no-sub-windows"),
    "all rows": ("SELECT FREQUENT(x, 3) FROM s [UNBOUNDED]", "no-sub-windows"),
    "rows one by one": ("SELECT FREQUENT(x, 3) FROM s [ROWS 10]", "no-sub-windows"),
    "rows by time": ("SELECT FREQUENT(x, 3) FROM s [ROWS 10 SLIDE 5]", "no-sub-windows"),
    "partitions": (
        "SELECT k, FREQUENT(x, 3) FROM s [ROWS 8 SLIDE 4 ROWS PARTITION BY k] GROUP BY k",
        "not-fifo",
    ),
    "a session": ("SELECT FREQUENT(x, 3) FROM s [SESSION 5]", "not-fifo"),
    "a join": (
        "SELECT FREQUENT(s.x, 3) FROM s [RANGE 8 SLIDE 4], z [RANGE 8 SLIDE 4] WHERE s.k = z.k",
        "not-fifo",
    ),
    "DISTINCT below": (
        "SELECT FREQUENT(q.x, 3) FROM (SELECT DISTINCT x FROM s [RANGE 8 SLIDE 4]) AS q",
        "not-fifo",
    ),
    "groups below": (
        "SELECT FREQUENT(q.n, 3) FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 8] GROUP BY k) AS q",
        "not-fifo",
    ),
    "other windows": (
        "SELECT FREQUENT(q.x, 3) FROM"
        " (SELECT x FROM s [RANGE 8 SLIDE 4] UNION ALL SELECT x FROM s [RANGE 8 SLIDE 2]) AS q",
        "no-sub-windows",
    ),
    "INTERNAL": ("SELECT FREQUENT(x, 3) FROM s [RANGE 8 SLIDE 4 INTERNAL]", "internal-window"),
    "DISTINCT": ("SELECT FREQUENT(DISTINCT x, 3) FROM s [RANGE 8 SLIDE 4]", "bad-aggregate"),
    "RESTORE": ("SELECT ISTREAM_RESTORE(FREQUENT(x, 3)) FROM s [RANGE 8 SLIDE 4]", "restore"),
    "no k": ("SELECT FREQUENT(x, 0) FROM s [RANGE 8 SLIDE 4]", "bad-aggregate"),
    "a fraction": ("SELECT HEAVY_HITTERS(x, 1.5) FROM s [RANGE 8 SLIDE 4]", "bad-aggregate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case: str) -> None:
    query, code = REFUSED[case]
    with pytest.raises(QueryError) as caught:
        plan(query)
    assert caught.value.code == code, caught.value
    assert caught.value.hint


def test_late_rows_that_are_kept_are_refused() -> None:
    keeping = {"s": ("x STRING, ts BIGINT", "WATTR ts SLACK 2 LATE KEEP")}
    for window in ("RANGE 8 SLIDE 4", "LANDMARK SLIDE 4"):
        with pytest.raises(QueryError, match="LATE KEEP") as caught:
            explain(f"SELECT FREQUENT(x, 2) FROM s [{window}]", streams=keeping)
        assert caught.value.code == "late-keep"


def test_explain_tells_lists_from_counts_and_sketches() -> None:
    text = str(
        explain(
            "SELECT FREQUENT(x, 3), HEAVY_HITTERS(x, 0.1), TOP_K(x, 3), APPROX_TOP_K(x, 3), COUNT(*)"
            " FROM s [RANGE 100 SLIDE 10]",
            streams=STREAM,
        )
    )
    assert "lists of the most frequent values for FREQUENT" in text
    assert "counts of values for HEAVY_HITTERS, TOP_K" in text
    assert "sum of the 3rd highest counts of all panes" in text
