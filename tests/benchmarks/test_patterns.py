"""Update patterns: every strategy gives what the oracle gives, in every query of the benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.reference import by_steps, by_the_reference

from benchmarks.setting import Setting
from benchmarks.studies.connections import links
from benchmarks.studies.patterns import HOW, LINKS, QUERIES, contestants, plan, run
from benchmarks.suite.patterns import Options

_WINDOW, _UNITS = 40, 100


@pytest.mark.part(3)
@pytest.mark.parametrize("name", QUERIES)
def test_strategies_answer_as_the_oracle_does(name: str) -> None:
    log = links(LINKS, _UNITS, 1)
    batches = log.batches(0, 20, _UNITS // 20)
    text = QUERIES[name].replace("ftp", "smtp").replace("telnet", "http")  # so few rows have enough of these
    expected = by_the_reference(plan(text, _WINDOW, "NT", log), batches)
    assert {op for _, op, _ in expected} == {"+", "-"}
    for who in contestants(name):
        assert by_steps(plan(text, _WINDOW, who, log), batches, HOW[who]) == expected, who


def test_links_have_sources_of_their_own() -> None:
    log = links(LINKS, 3000, 1)
    sources = [set(frame["src"].to_list()) for frame in log.rows.values()]
    assert sources[0] & sources[1]
    assert sources[0] - sources[1]
    odd = [{source for source in mine if source % 2} for mine in sources]
    assert not odd[0] & odd[1]
    assert sum(frame.height for frame in log.rows.values()) == 3 * 3000


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_measures_everyone_at_every_window(tmp_path: Path) -> None:
    options = Options(windows=(50,), telnet_windows=(50,), rows_per_batch=25, steps=2)
    findings = run(Setting(data=tmp_path, scratch=tmp_path, rounds=1), options)
    found = {(each.variant["query"], each.contestant) for each in findings.measurements}
    assert found == {(name, who) for name in QUERIES for who in contestants(name)}
    assert all(target.found is not None for target in findings.targets)
    assert {series.name for series in findings.charts[0].series} == set(contestants("1 join ftp"))
