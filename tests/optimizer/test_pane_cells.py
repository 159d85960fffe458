"""The size of pane state that EXPLAIN expects follows the distinct values that were observed."""

from __future__ import annotations

import pytest

from windrow.engine.explain import explain
from windrow.optimizer.flows import Statistics

STREAMS = {"s": "k BIGINT, x BIGINT, ts TIMESTAMP"}


def state_rows(selected: str, distinct: float) -> float:
    known = Statistics(rates={"s": 1000}, distinct={"s.k": 10, "s.x": distinct})
    query = f"SELECT k, {selected} AS a FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE] GROUP BY k"
    found = explain(query, streams=STREAMS, statistics=known)
    (rows,) = [step.state_rows for step in found.plan.walk() if step.operator.startswith("γ")]
    assert rows is not None
    return rows


def test_counts_of_values_grow_with_the_values_and_sketches_up_to_their_cells() -> None:
    few, many = (state_rows("COUNT(DISTINCT x)", distinct) for distinct in (50, 10**6))
    assert few == pytest.approx(100 * 51, rel=0.01)
    assert many > 100 * 5000
    assert state_rows("APPROX_COUNT_DISTINCT(x)", 50) == pytest.approx(few)
    assert state_rows("APPROX_COUNT_DISTINCT(x)", 10**6) == pytest.approx(100 * 4097)
