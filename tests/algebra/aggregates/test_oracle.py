"""Oracle: states combined in any order and grouping give the value defined over the whole list."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra.aggregates import sortable
from windrow.errors import DataError
from windrow.reference.aggregates import evaluate

pytestmark = pytest.mark.cases


@pytest.mark.part(3)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_order_and_grouping_gives_the_defined_value(case: Any, data: st.DataObject) -> None:
    rows = data.draw(case.rows)
    arrived = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    aggregate = case.aggregate
    parts = [aggregate.fold(map(case.lift, part)) for part in (arrived[:cut], arrived[cut:])]
    actual = case.value(aggregate.combine(*parts))
    expected = _defined(case, rows)
    assert type(actual) is type(expected)
    assert case.close(actual, expected), (actual, expected)
    assert isinstance(actual, float) or str(_plain(actual)) == str(_plain(expected)), "decimals have a scale"


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40))
def test_any_doubles_give_the_defined_value_up_to_rounding(double_case: Any, values: list[float]) -> None:
    aggregate = double_case.aggregate
    rows = [(number, value) for number, value in enumerate(values)]
    actual = aggregate.lower(aggregate.fold(map(double_case.lift, rows)))
    expected = _defined(double_case, rows)
    assert double_case.close(actual, expected, scale=max(1.0, *map(abs, values))), (actual, expected)


def _defined(case: Any, rows: list[tuple[Any, ...]]) -> Any:
    """The reference's value over the arguments in row order: by instant, then by all columns."""
    ordered = sorted(rows, key=sortable)
    arguments, instants = [row[1:] for row in ordered], [row[0] for row in ordered]
    try:
        return evaluate(case.name, case.params, case.distinct, arguments, case.types, instants)
    except DataError as error:
        return error.code


def _plain(value: Any) -> Any:
    """-0.0 and 0.0 are one value."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value + 0.0 if isinstance(value, float) and not math.isnan(value) else value
