"""Rows that go in the order in which they came: spans from neighbours are those from all rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.agreement import assert_same, run

from benchmarks.studies.steps import Batch, Standing
from windrow.engine.explain import declared
from windrow.kernels.aggregates.partials import FloatMoments, FloatTotal
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.aggregate.group_by import order_of, spans
from windrow.kernels.state import PANE, ROWS, TableLayout
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor

LAYOUT = TableLayout((), (ROWS, FloatTotal("p0"), FloatMoments("p1")))


@st.composite
def covering(draw: st.DrawFn) -> tuple[Any, Any]:
    """Ranges of spans in which neither end goes back, of several groups one after the other; some empty."""
    low, high, base = [], [], 0
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 9))
        count = draw(st.integers(1, 12))
        edges = st.lists(st.integers(0, size), min_size=count, max_size=count).map(sorted)
        begins, ends = draw(edges), draw(edges)
        low += [base + min(pair) for pair in zip(begins, ends, strict=True)]
        high += [base + max(pair) for pair in zip(begins, ends, strict=True)]
        base += size
    return np.array(low), np.array(high)


def states(values: Any) -> pl.DataFrame:
    ones, zeros = np.ones(len(values), dtype=np.int64), np.zeros(len(values))
    columns = {"rows.0": ones, "p0.0": ones, "p0.1": values, "p1.0": ones, "p1.1": values, "p1.2": zeros}
    return pl.DataFrame(columns)


@settings(max_examples=150)
@given(covering(), st.randoms(use_true_random=False), st.sampled_from([0, 64]))
def test_spans_are_what_their_rows_come_to(case: tuple[Any, Any], random: Any, long: int) -> None:
    low, high = case
    mixed = random.sample(range(len(low)), len(low))
    order = order_of(low[mixed], high[mixed])
    if not (low < high).any():
        return
    assert order is not None
    low, high = low[mixed][order], high[mixed][order]
    values = np.array([random.randint(-9, 9) / 2 for _ in low])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("windrow.kernels.columnar.combiners.LONG", long)
        found = {row[PANE]: row for row in spans(states(values), LAYOUT, low, high).rows(named=True)}
    expected = {span: values[(low <= span) & (span < high)] for span in range(int(high.max()))}
    assert set(found) == {span for span, covered in expected.items() if len(covered)}
    for span, row in found.items():
        covered = expected[span]
        assert row["rows.0"] == row["p1.0"] == len(covered)
        assert row["p0.1"] == pytest.approx(covered.sum(), abs=1e-9)
        assert row["p1.2"] == pytest.approx(((covered - covered.mean()) ** 2).sum(), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6))
def test_there_is_an_order_unless_a_row_outlives_a_later_one(ranges: list[tuple[int, int]]) -> None:
    low, high = (np.array(part, dtype=np.int64) for part in zip(*ranges, strict=True)) if ranges else ((), ())
    low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
    some = [pair for pair in ranges if pair[0] < pair[1]]
    nested = any(a[0] < b[0] and a[1] > b[1] for a in some for b in some)
    order = order_of(low, high)
    assert (order is None) == nested
    assert order is None or sorted(order.tolist()) == [n for n, pair in enumerate(ranges) if pair in some]


@pytest.mark.part(3)
@pytest.mark.parametrize("window", ["RANGE 60", "RANGE 60 SLIDE 7", "ROWS 20"])
def test_groups_have_the_same_values_either_way(window: str) -> None:
    """Half of all rows in one key, sums of whole doubles, which no order of adding changes."""
    text = f"SELECT k, SUM(v) AS t, MAX(v) AS m, COUNT(*) AS n FROM s [{window}] WHERE v < 90 GROUP BY k"
    emit = compile_query(text, declared({"s": "k BIGINT, v DOUBLE, ts BIGINT"}, {}))
    random = np.random.default_rng(5)
    keys = random.integers(0, 8, 600)
    rows = pl.DataFrame(
        {
            "k": np.where(keys % 2 == 0, 0, keys),
            "v": random.integers(0, 100, 600).astype(float),
            "ts": np.arange(600) // 2,
        }
    )
    batches = [Batch({"s": rows.slice(n, 60)}, (n + 60) // 2) for n in range(0, 600, 60)]
    taken = []
    for direct, ordered in ((0, True), (0, False), (1 << 30, False)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("windrow.kernels.relational.aggregate.group_by.DIRECT", direct)
            if not ordered:
                patched.setattr(
                    "windrow.kernels.relational.aggregate.group_by.order_of", lambda low, high: None
                )
            standing = Standing.of(emit)
            taken.append([sorted(standing.step(batch)[1].rows(), key=repr) for batch in batches])
    assert taken[0] == taken[1] == taken[2]
    assert any(taken[0])


@pytest.mark.part(2)
@pytest.mark.parametrize("window", ["RANGE 6", "RANGE 7 SLIDE 2", "ROWS 5", "RANGE 9, ROWS 4"])
def test_values_from_neighbours_are_the_oracles(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step goes by neighbours where rows leave in order, however few they are; sums here are exact."""
    monkeypatch.setattr("windrow.kernels.relational.aggregate.group_by.DIRECT", 0)
    calls: list[int] = []

    def counted(states: pl.DataFrame, layout: TableLayout, low: Any, high: Any) -> pl.DataFrame:
        calls.append(states.height)
        return spans(states, layout, low, high)

    monkeypatch.setattr("windrow.kernels.relational.aggregate.group_by.spans", counted)
    own, *other = window.split(", ")
    source = f"s [{own}]" + "".join(f", s AS z [{each}]" for each in other)
    values = "SUM(s.v) AS t, MAX(s.v) AS m, AVG(s.v) AS d, LAST(s.v) AS e, COUNT(*) AS n"
    where = " WHERE s.k = z.k" if other else ""
    text = f"SELECT s.k AS k, {values} FROM {source}{where} GROUP BY s.k"
    emit = compile_query(text, declared({"s": "k BIGINT, v DOUBLE, ts BIGINT"}, {}))
    compared = 0
    for seed in range(6):
        random = Random(seed)
        steps: list[Any] = []
        now = 0
        for _ in range(5):
            times = sorted(random.randint(now, now + 6) for _ in range(random.randint(1, 6)))
            rows = [(random.choice([0, 0, 1]), random.choice([None, 0.5, -2.0, 4.0]), t) for t in times]
            now = random.randint(now, now + 7)
            steps += [("push", rows), ("promise", now), ("take", None)]
            now = max([now, *times])
        steps += [("finish", None), ("take", None)]
        expected, found = run(ReferenceExecutor(emit), steps), run(GeneralExecutor(emit), steps)
        for mine, theirs in zip(found, expected, strict=True):
            assert mine is not None
            assert theirs is not None
            assert_same(mine, theirs)
            compared += len(mine)
    assert compared > 50
    assert calls
