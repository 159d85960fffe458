"""The benchmarks of frequent and of holistic aggregates, in small: what they measure is what they say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.frequent_items import traffic, trials
from benchmarks.pane_runs import query, run_panes
from benchmarks.setting import Setting
from benchmarks.suite import frequent, holistic
from windrow.spark.sources.generators import Settings


@pytest.mark.parametrize("b", [10, 50])
def test_a_trial_is_an_execution_of_the_algorithm(b: int) -> None:
    values = traffic(Settings(keys=40), first=12_345, rows=1000, train=3)
    true = Counter(values.tolist())
    for k, trial in trials(values, b, [1, 2, 5]):
        counters: Counter[int] = Counter()
        limit = pairs = 0
        for begin in range(0, len(values), b):
            counts = Counter(values[begin : begin + b].tolist())
            ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:k]
            counters.update(dict(ranked))
            limit += ranked[-1][1] if len(ranked) == k else 0
            pairs += len(ranked)
        over = [value for value, count in true.items() if count > limit]
        assert trial.threshold == limit / len(values)
        assert trial.over == len(over)
        assert trial.reported == sum(count > limit for count in counters.values())
        assert trial.pairs == pairs + len(counters)
        if over:
            missed = [(true[value] - counters[value]) / true[value] for value in over]
            assert trial.error == pytest.approx(sum(missed) / len(missed))


def test_rows_come_in_trains_of_the_length_that_is_asked_for() -> None:
    for train in (1, 5):
        values = traffic(Settings(keys=1650), 0, 50_000, train)
        runs = 1 + np.count_nonzero(np.diff(values))
        again = 0.02  # a train may be followed by one of the same source
        assert len(values) / runs == pytest.approx(train, rel=0.05 + again)


def test_the_kernel_is_run_pane_by_pane() -> None:
    panes = [np.array([n, n + 1, 7]) for n in range(6)]
    found = run_panes(query("TOP_K(x, 1)", 4), panes)
    assert found.answer == [{"value": 7, "count": 4}]
    assert run_panes(query("COUNT(*)", 4), panes).answer == 12


@pytest.mark.thorough
def test_both_benchmarks_run_in_small(tmp_path: Path) -> None:
    setting = Setting(data=tmp_path, scratch=tmp_path / "scratch", rounds=1)
    options = frequent.Options(window=400, sub_windows=(20, 100), lists=(1, 3, 7), sources=50, starts=1)
    found = frequent.run(setting, options)
    assert len(found.charts) == 6
    assert [len(table.rows) for table in found.tables] == [6, 6, 6]
    other = holistic.run(setting, holistic.Options(distinct=(50,), rows=400, panes=4))
    errors = {row[1]: row[-1] for row in other.tables[0].rows}
    assert all(errors[form.exact] == "0.00 %" for form in holistic.FORMS)
    assert set(errors) == {form.sql for form in holistic.FORMS}
