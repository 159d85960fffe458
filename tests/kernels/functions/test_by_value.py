"""The general form of a function on columns."""

from __future__ import annotations

import math

import polars as pl
import pytest

from windrow.algebra.functions.calendar import MOST_DAYS
from windrow.algebra.types import BIGINT, DATE, DOUBLE, STRING, array
from windrow.errors import DataError
from windrow.kernels.columnar.functions.base import by_value, explained


def test_each_combination_is_computed_once() -> None:
    seen: list[tuple[str, int]] = []

    def join(text: str, number: int) -> str:
        seen.append((text, number))
        return f"{text}{number}"

    columns = pl.Series(["a", "b", "a", "a"]), pl.Series([1, 1, 2, 1])
    assert by_value(join, [STRING, BIGINT], STRING)(*columns).result.to_list() == ["a1", "b1", "a2", "a1"]
    assert seen == [("a", 1), ("b", 1), ("a", 2)]


def test_zeros_of_either_sign_are_two_values() -> None:
    zeros = pl.Series([0.0, -0.0, 0.0])
    found = by_value(lambda x: math.copysign(1, x), [DOUBLE], DOUBLE)(zeros)
    assert found.result.to_list() == [1.0, -1.0, 1.0]


def test_every_row_that_fails_is_marked_and_the_first_is_told() -> None:
    def refuse(x: int) -> int:
        if x < 0:
            raise DataError(f"{x} is negative", code="bad-value")
        return x

    column = pl.Series([1, -2, -3, -2])
    outcome = by_value(refuse, [BIGINT], BIGINT)(column)
    assert outcome.failed is not None
    assert outcome.failed.tolist() == [False, True, True, True]
    assert outcome.or_null().to_list() == [1, None, None, None]
    assert str(explained(refuse, [BIGINT], [column], outcome.failed)) == "-2 is negative"


def test_arrays_are_taken_row_by_row() -> None:
    lists = pl.Series([[1, 2], [1, 2], []], dtype=pl.List(pl.Int64))
    assert by_value(len, [array(BIGINT)], BIGINT)(lists).result.to_list() == [2, 2, 0]


def test_a_date_that_no_column_holds_is_an_error() -> None:
    distant = by_value(lambda x: (MOST_DAYS + x) * 86_400_000_000, [BIGINT], DATE)
    assert distant(pl.Series([0])).result.to_list() == [MOST_DAYS * 86_400_000_000]
    with pytest.raises(DataError, match=r"the date \+294247-01-11 is out of range"):
        distant(pl.Series([0, 1]))
