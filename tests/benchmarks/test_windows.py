"""Windows: every operator over every kind of window gives the oracle's answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.reference import by_steps, by_the_reference

from benchmarks.setting import Setting
from benchmarks.studies.connections import links, query
from benchmarks.studies.windows import BY_ORDER, HOW, JOIN, LINKS, NEGATIVE, QUERIES, figures, run
from benchmarks.suite.windows import Options

_RATE, _WAVES = 12, 8
_OPTIONS = Options(
    rate=_RATE, steps=2, slides=(1, 2), extents=(3,), sizes=(20, 40), rates=(6, 12), landmarks=(2, 4)
)


@pytest.mark.thorough
@pytest.mark.parametrize("figure", figures(_OPTIONS), ids=lambda figure: str(figure.name))
def test_operators_answer_as_the_oracle_does(figure: object) -> None:
    assert hasattr(figure, "window")
    window = figure.window.format(x=figure.places[-1]).replace("RANGE 10", "RANGE 4")
    batches = links(LINKS, _WAVES, _RATE).batches(0, 1, _WAVES)
    for who in figure.who:
        text = QUERIES[JOIN if who in HOW else who].format(w=window).replace("b.dst", "b.src")
        emit = query(text, LINKS)
        expected = by_the_reference(emit, batches)
        assert expected
        assert by_steps(emit, batches, HOW.get(who)) == expected, who


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_has_every_figure(tmp_path: Path) -> None:
    findings = run(Setting(data=tmp_path, scratch=tmp_path, rounds=1), _OPTIONS)
    found = {(each.variant["figure"], each.contestant) for each in findings.measurements}
    assert found == {(figure.name, who) for figure in figures(_OPTIONS) for who in figure.who}
    assert {chart.name for chart in findings.charts} == {f"windows-{n}" for n in range(6, 14)}
    joins = [each for each in findings.measurements if each.contestant in (BY_ORDER, NEGATIVE)]
    assert len(joins) == 2 * len(_OPTIONS.sizes)
