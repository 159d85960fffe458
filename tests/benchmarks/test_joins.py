"""Joins: all orders and all algorithms give the oracle's answers; costs are those of the thesis."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from tests.benchmarks.reference import Answers, by_steps, by_the_reference

from benchmarks.setting import Setting
from benchmarks.studies import joins
from benchmarks.studies.join_streams import join, rows, streams
from benchmarks.studies.joins import ORDER_WAYS, algorithms, orders_tried, plan
from benchmarks.suite.joins import Options
from windrow.kernels.relational.join.order import WindowStats, order_cost


def test_costs_of_the_orders_are_those_of_the_thesis() -> None:
    costs = {name: order_cost(order) for name, order in orders_tried(streams()).items()}
    assert costs["s2 s1 s3 s4"] == pytest.approx(16200)
    assert costs["s1 s2 s3 s4"] == pytest.approx(21000)
    assert costs["s2 s3 s4 s1"] == pytest.approx(42600, rel=0.001)
    assert max(costs.values()) == pytest.approx(135150)


def test_rows_come_at_the_rates_of_their_streams() -> None:
    log = rows(streams(), 2000)
    counts = [frame.height for frame in log.rows.values()]
    assert sum(counts) == 13 * 2000
    assert counts[0] == pytest.approx(20_000, rel=0.05)
    assert log.rows["s3"]["k"].max() == 8


#: short windows of few values, since the oracle looks at all combinations
_SHORT = tuple(
    WindowStats(f"s{n}", rate, 5, values)
    for n, (rate, values) in enumerate([(2, 4), (1, 5), (1, 3), (1, 2)], start=1)
)


@pytest.mark.thorough
def test_orders_answer_as_the_oracle_does() -> None:
    batches = rows(_SHORT, 16).batches(0, 4, 4)
    orders = list(orders_tried(_SHORT).values())
    assert len(orders) > 2
    expected = by_the_reference(plan(join(orders[0])), batches)
    assert expected
    for order, how in product(orders, ORDER_WAYS.values()):
        assert by_steps(plan(join(order)), batches, how) == expected


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("interval", [2, 7])
def test_algorithms_answer_as_the_oracle_does(interval: int) -> None:
    batches = rows(_SHORT, 16).batches(0, 1, 16)
    expected: dict[str, Answers] = {}
    for name, (text, how) in algorithms(_SHORT, interval).items():
        if text not in expected:
            expected[text] = by_the_reference(plan(text), batches)
        assert expected[text]
        assert by_steps(plan(text), batches, how) == expected[text], name
    plain, restoring = expected.values()
    assert len(restoring) >= len(plain)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_measures_orders_and_algorithms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "streams", lambda scale=1: _SHORT)
    options = Options(order_steps=2, order_batch=2, intervals=(2,), units=4)
    findings = joins.run(Setting(data=tmp_path, scratch=tmp_path, rounds=1), options)
    assert {row[0] for row in findings.tables[0].rows} == set(orders_tried(_SHORT))
    assert findings.tables[0].rows[0][1:3] == ("1.00", "1.00")
    assert {series.name for series in findings.charts[0].series} == set(algorithms(_SHORT, 2))
    assert all(target.found is not None for target in findings.targets)
