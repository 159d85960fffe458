"""Panes: all four ways give the oracle's answers, whatever the shape of the window."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.benchmarks.reference import by_the_reference

from benchmarks.contestant import Outcome
from benchmarks.setting import Setting
from benchmarks.studies.extents import Buffered, Paned, batches_of, greatest_by_key, readings
from benchmarks.studies.panes import WHO, run
from benchmarks.suite.panes import Options


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 3), st.integers(3, 40))
def test_panes_and_buffers_answer_as_the_oracle_does(length: int, slide: int, keys: int, size: int) -> None:
    emit = greatest_by_key(f"RANGE {length} SLIDE {slide}")
    batches = batches_of(readings(80, keys, seed=length), size)
    expected = sorted((at, *row) for at, _, row in by_the_reference(emit, batches))
    assert _answers(Paned(emit).run(batches)) == expected
    assert _answers(Buffered(length, slide).run(batches)) == expected


def _answers(outcome: Outcome) -> list[tuple[int, ...]]:
    assert outcome.answers is not None
    return sorted(outcome.answers.select("at", "k", "m").collect().rows())


@pytest.mark.thorough
def test_a_run_compares_every_way_at_every_shape(tmp_path: Path) -> None:
    small = {"rows_per_pane": (5, 10), "panes_per_window": (2, 3), "groups": (1, 40)}
    options = Options(rows=200, keys=2, rows_per_batch=100, **small)
    findings = run(Setting(data=tmp_path, scratch=tmp_path, rounds=1), options)
    assert {each.contestant for each in findings.measurements} == set(WHO)
    assert len(findings.measurements) == len(WHO) * (4 + 2)
    shaped = [each for each in findings.measurements if each.variant.get("rows per pane") == 5]
    assert len({each.answers for each in shaped}) <= 2
    by_groups = findings.tables[-2]
    assert [row[0] for row in by_groups.rows] == ["1", "40"]
    assert float(by_groups.rows[0][-1]) < float(by_groups.rows[1][-1])  # more groups, less gain
    kept = {each.contestant: each.figures["state rows"] for each in shaped if "state rows" in each.figures}
    assert set(kept) == {"pane kernels", "buffering"}
    predicted = findings.tables[-1]
    assert float(predicted.rows[0][1]) > float(predicted.rows[0][2])  # more panes, more gain
