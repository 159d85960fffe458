"""What studies ask on the engine: the same queries over the same rows as on the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.benchmark import Findings
from benchmarks.registry import all_benchmarks
from benchmarks.setting import Setting
from benchmarks.studies import on_engine
from benchmarks.studies.on_engine import ENGINE, KERNELS, STUDIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize("name", STUDIES)
def test_every_question_has_rows_and_answers(name: str) -> None:
    asked = list(STUDIES[name](all_benchmarks()[name].quick))
    assert len({each.name for each in asked}) == len(asked)
    for each in asked:
        assert len(each.batches) > 1
        assert each.sure > 0
    first = next((each for each in asked if each.share is None), None)
    if first is not None:
        answers = on_engine._on_kernels(first).answers
        assert answers is not None
        assert answers.collect()["n"].sum() > 0


def test_the_engine_gives_as_many_answers_as_the_kernels(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against each other at every instant; otherwise the run fails."""
    panes, study = all_benchmarks()["panes"].quick, STUDIES["panes"]

    def first(options: object) -> Iterator[on_engine.Asked]:
        yield next(study(options))
        yield from list(STUDIES["shedding"](all_benchmarks()["shedding"].quick))[2:3]

    monkeypatch.setitem(STUDIES, "panes", first)  # type: ignore[arg-type]
    setting = Setting(data=tmp_path / "data", scratch=tmp_path / "scratch", rounds=1, given_spark=spark)
    found = on_engine.on_engine("panes", Findings({}, [], [], []), setting, panes)
    assert {each.contestant for each in found.measurements} == {ENGINE, KERNELS}
    assert all(each.answers for each in found.measurements)
