"""What studies ask on the engine: the same queries over the same rows as on the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.registry import all_benchmarks
from benchmarks.setting import Setting
from benchmarks.studies import on_engine
from benchmarks.studies.on_engine import ENGINE, KERNELS, STUDIES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize("name", STUDIES)
def test_every_question_has_rows_and_answers(name: str) -> None:
    asked = list(STUDIES[name](all_benchmarks()[name].quick))
    assert len({tuple(each.variant.items()) for each in asked}) == len(asked)
    for each in asked:
        assert len(each.batches) >= each.timed > 1
        assert each.sure > 0
        assert each.rows > 0
    first = next((each for each in asked if each.share is None), None)
    if first is not None:
        answers = on_engine._on_kernels(first).answers
        assert answers is not None
        assert answers.collect()["n"].sum() > 0


@pytest.mark.thorough
def test_the_engine_gives_as_many_answers_as_the_kernels(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against each other at every instant; where windows are dropped, against those without."""
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    few = {"panes": slice(1), "shedding": slice(3, 5)}
    for name, part in few.items():
        asked = list(STUDIES[name](all_benchmarks()[name].quick))[part]
        monkeypatch.setitem(STUDIES, name, lambda _, asked=asked: iter(asked))  # type: ignore[misc]
        found = on_engine.on_engine(name, setting, all_benchmarks()[name].quick)
        assert all(each.answers for each in found.measurements)
        if name == "panes":
            assert {each.contestant for each in found.measurements} == {ENGINE, KERNELS}
        else:
            whole, half = found.measurements
            assert whole.answers > half.answers  # type: ignore[operator]
            assert half.figures["rows dropped"] > whole.figures["rows dropped"] == 0
