"""Counts of values that are added and subtracted, and values in a buffer: the oracle's answers either way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.kernels.executor import KernelExecutor
from windrow.kernels.panes import subtract_on_evict as differences
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.panes.subtract_on_evict import Differences, is_buffered
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor

STREAM = {"s": ("k BIGINT, x DOUBLE, ts BIGINT", "SLACK 3 LATE KEEP")}
AGGREGATES = [
    "MEDIAN(x) AS m",
    "COUNT(DISTINCT x) AS n, MAX(CAST(x AS STRING)) AS top",
    "QUANTILE(x, 0.9) AS q, MODE(x) AS m, SUM(x) AS t",
    "TOP_K(x, 2) AS best, MEDIAN(x) FILTER (WHERE x > 3) AS m",
]
WINDOWS = ["RANGE 12 SLIDE 3", "RANGE 10 SLIDE 4", "RANGE 5 SLIDE 5", "RANGE 3 SLIDE 5", "RANGE 20 SLIDE 1"]


def plan(aggregates: str, window: str) -> Emit:
    query = f"SELECT k, {aggregates} FROM s [{window}] GROUP BY k"
    return compile_query(query, declared(STREAM, {}))


@st.composite
def batches(draw: st.DrawFn) -> list[list[tuple[Any, ...]]]:
    """Rows whose values recur or differ, by turns, some of them late, with gaps."""
    moment, number, found = 0, 0, []
    for _ in range(draw(st.integers(1, 12))):
        moment += draw(st.sampled_from([0, 2, 5, 40]))
        same = draw(st.booleans())
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            number += 1
            value = draw(st.sampled_from([1.0, 2.0, None, float("nan")])) if same else number / 8
            rows.append((draw(st.integers(0, 1)), value, moment + draw(st.integers(-4, 5))))
        found.append(rows)
    return found


@pytest.mark.parametrize("share", [0.0, 0.75, 2.0], ids=["always a buffer", "as seen", "always sums"])
@settings(max_examples=40)
@given(st.sampled_from(AGGREGATES), st.sampled_from(WINDOWS), batches())
def test_answers_are_the_oracles(
    share: float, aggregates: str, window: str, pushed: list[list[tuple[Any, ...]]]
) -> None:
    emit = plan(aggregates, window)
    oracle, kernels = ReferenceExecutor(emit), KernelExecutor(emit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "HARDLY_RECUR", share)
        for rows in pushed:
            for executor in (oracle, kernels):
                executor.push("s", rows)
            assert repr(kernels.take()) == repr(oracle.take())
        for executor in (oracle, kernels):
            executor.finish()
        assert repr(kernels.take()) == repr(oracle.take())


def test_these_queries_run_on_this_kernel() -> None:
    for aggregates in AGGREGATES:
        assert isinstance(PaneProgram(plan(aggregates, WINDOWS[0])).bottom.kernel, Differences)


def test_a_share_is_of_the_cells_that_are_kept() -> None:
    assert is_buffered({"distinct.a": 75, "cells.a": 100, "distinct.b": 1, "cells.b": 100}, "a")
    assert not is_buffered({"distinct.a": 75, "cells.a": 100, "distinct.b": 1, "cells.b": 100}, "b")
