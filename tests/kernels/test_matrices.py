"""Windows of all lengths from matrices of intervals: as combined one by one; the same ones are found once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from windrow.kernels.columnar.combiners import (
    FLOAT_TOTAL,
    GREATEST,
    LEAST,
    MOMENTS,
    TOTAL,
    Combiner,
    Lanes,
    take,
)
from windrow.kernels.shared.kernel import Block, Matrix

INTERVALS, GROUPS = 37, 3


def states(combiner: Combiner, numbers: list[int]) -> Lanes:
    values = np.array(numbers).reshape(INTERVALS, GROUPS)
    if combiner is MOMENTS:
        return np.ones_like(values), values.astype(float), np.zeros(values.shape)
    return (values.astype(combiner.identity((1,))[0].dtype),)


@pytest.mark.parametrize("combiner", [TOTAL, FLOAT_TOTAL, LEAST, GREATEST, MOMENTS], ids=repr)
@given(
    numbers=st.lists(st.integers(-9, 9), min_size=INTERVALS * GROUPS, max_size=INTERVALS * GROUPS),
    bounds=st.lists(st.tuples(st.integers(0, INTERVALS), st.integers(0, INTERVALS)), min_size=1, max_size=30),
)
def test_windows_are_as_combined_one_by_one(
    combiner: Combiner, numbers: list[int], bounds: list[tuple[int, int]]
) -> None:
    cells = states(combiner, numbers)
    begins, ends = np.sort(np.array(bounds), axis=1).T
    found = Matrix(combiner, cells).windows(begins, ends)
    for place, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        expected = combiner.identity((GROUPS,))
        for interval in range(begin, end):
            expected = combiner.combine(expected, take(cells, interval))
        for lane, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(lane[place], value, rtol=1e-12, atol=1e-9)


def test_the_same_windows_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    windows = Matrix.windows

    def counted(self: Matrix, begins: Any, ends: Any) -> Lanes:
        asked.append(len(begins))
        return windows(self, begins, ends)

    monkeypatch.setattr(Matrix, "windows", counted)
    places = np.arange(4)
    page: Any = SimpleNamespace(panes=places, ids=np.zeros(4, dtype=np.int64), places=places)
    shapes = {"p1": SimpleNamespace(combiners=[TOTAL]), "p2": SimpleNamespace(combiners=[GREATEST])}
    states: Any = {
        name: SimpleNamespace(entry=SimpleNamespace(shape=shape), lanes=[(places + 1,)])
        for name, shape in shapes.items()
    }
    block = Block(page, states, (0, 1))
    begins, ends = np.array([0, 1]), np.array([2, 4])
    for entry in ("p1", "p2", "p1", "p1"):
        block.windows(entry, begins, ends)
    assert asked == [2, 2]
    assert block.windows("p1", begins, ends)[0][0].ravel().tolist() == [3, 9]
    assert block.windows("p2", begins, ends)[0][0].ravel().tolist() == [2, 4]
    monkeypatch.setattr("windrow.kernels.shared.kernel.REMEMBERED", 3)
    block.windows("p1", begins + 0, ends - 1)
    block.windows("p1", begins, ends)
    assert asked == [2, 2, 2, 2]  # not for ever
