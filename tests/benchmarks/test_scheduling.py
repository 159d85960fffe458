"""The scheduling benchmark: every technique on every workload, and figures that can be compared."""

from __future__ import annotations

from pathlib import Path

from benchmarks.scheduled_queries import GROUPS, LONGEST, SHORTEST, measured_costs, random_groups
from benchmarks.setting import Setting
from benchmarks.suite.scheduling import Options, run
from benchmarks.theory.scheduling.techniques import TECHNIQUES


def test_all_techniques_play_all_workloads(tmp_path: Path) -> None:
    told: list[str] = []
    setting = Setting(tmp_path / "data", tmp_path / "scratch", 1, say=told.append)
    findings = run(setting, Options(queries=(8, 16), updates=40, trials=1))
    cases = {(each.contestant, *each.variant.values()) for each in findings.measurements}
    assert cases == {(name, rate, n) for name in TECHNIQUES for rate in (1500, 3000) for n in (8, 16)}
    assert all(each.figures["refreshes per second"] > 0 for each in findings.measurements)
    assert [table.title for table in findings.tables] == ["1500 rows per second", "3000 rows per second"]
    assert {len(chart.series) for chart in findings.charts} == {len(TECHNIQUES)}
    assert all(target.found is not None for target in findings.targets)
    assert told


def test_the_workload_is_that_of_the_thesis_and_always_the_same() -> None:
    groups = random_groups(240, seed=3)
    assert len(groups) == GROUPS
    assert {len(queries) for queries in groups.values()} == {30}
    everyone = [query for queries in groups.values() for query in queries]
    assert all(SHORTEST <= query.length <= LONGEST for query in everyone)
    assert all(1 <= query.period <= query.length // 2 for query in everyone)
    assert random_groups(240, seed=3) == groups != random_groups(240, seed=4)


def test_costs_are_measured() -> None:
    costs = measured_costs(rows=200, distinct=50)
    assert costs.read > 0
    assert costs.answer > 0
