"""Spreads of doubles: no change is told where there is none, and none is lost."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.kernels.agreement import assert_same, run

from windrow.engine.explain import declared
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.aggregate.group_by import CLOSE, FAR, steadied
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor

COLUMNS = {"s": "k BIGINT, v DOUBLE, ts BIGINT"}


@pytest.mark.part(4)
@pytest.mark.parametrize("direct", [0, 1 << 30])
@pytest.mark.parametrize("function", ["STDDEV", "STDDEV_POP", "VAR_SAMP", "VAR_POP"])
def test_values_that_come_again_change_nothing(
    function: str, direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window as long as the period of its values always holds the same ones, in another order."""
    monkeypatch.setattr("windrow.kernels.relational.aggregate.group_by.DIRECT", direct)
    text = f"SELECT k, {function}(v) AS d FROM s [RANGE 7] GROUP BY k"
    emit = compile_query(text, declared(COLUMNS, {}))
    for seed in range(3):
        random = Random(seed)
        period = [random.choice([0.5, 1.25, 3.0, 7.75, -2.0]) for _ in range(7)]
        rows = [(0, period[t % 7], t) for t in range(60)]
        rows += [(1, random.choice(period), t) for t in range(60) for _ in range(t % 3)]
        rows.sort(key=lambda row: row[2])
        steps: list[Any] = []
        for place in range(0, len(rows), 23):
            batch = rows[place : place + 23]
            steps += [("push", batch), ("promise", batch[-1][2]), ("take", None)]
        steps += [("finish", None), ("take", None)]
        mine, theirs = run(GeneralExecutor(emit), steps), run(ReferenceExecutor(emit), steps)
        for found, expected in zip(mine, theirs, strict=True):
            assert found is not None
            assert expected is not None
            assert_same(found, expected)


values = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(0, 3)), max_size=30)


@given(values, st.sampled_from([0.0, 1.0, 3e7]))
def test_a_value_is_the_one_before_or_itself(drawn: list[tuple[int, int, int]], base: float) -> None:
    group = np.array([g for g, _, _ in drawn], dtype=np.int64)
    raw = np.array([base + coarse + base * fine * CLOSE / 2 for _, coarse, fine in drawn])
    found = steadied(np.array([]), np.array([], dtype=np.int64), raw, group)
    assert (np.abs(found - raw) <= FAR * np.abs(raw) * 1.01).all()
    before: dict[int, tuple[float, float]] = {}
    for g, computed, told in zip(group.tolist(), raw.tolist(), found.tolist(), strict=True):
        last_computed, last_told = before.get(g, (np.nan, np.nan))
        assert told in (computed, last_told)
        if abs(computed - last_computed) > CLOSE * abs(last_computed):
            assert told == computed
        before[g] = computed, told


def test_many_small_steps_do_not_add_up() -> None:
    raw = 5.0 * (1 + np.arange(200) * CLOSE / 2)
    found = steadied(np.array([5.0]), np.array([0]), raw, np.zeros(200, dtype=np.int64))
    assert (np.abs(found - raw) <= FAR * raw * 1.01).all()
    assert 5 < len(set(found.tolist())) < 20
