"""The oracle's own values, worked out by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from windrow.algebra import types as t
from windrow.errors import DataError
from windrow.reference.aggregates import evaluate


def column(*values: Any) -> list[tuple[Any, ...]]:
    return [(value,) for value in values]


@pytest.mark.parametrize(
    ("name", "params", "kind", "values", "expected"),
    [
        ("COUNT", (), t.INT, [1, None, 1], 2),
        ("sum", (), t.INT, [1, None, 2], 3),
        ("sum", (), t.decimal(4, 2), [Decimal("0.10"), Decimal("0.2")], Decimal("0.30")),
        (
            "avg",
            (),
            t.decimal(4, 2),
            [Decimal("0.01"), Decimal("0.00"), Decimal("0.01")],
            Decimal("0.006667"),
        ),
        ("mean", (), t.INT, [1, 2], 1.5),
        ("avg", (), t.INTERVAL, [-1, -2], -2),
        ("min", (), t.DOUBLE, [math.nan, 2.0, -0.0], -0.0),
        ("max", (), t.DOUBLE, [math.nan, 2.0, None], math.nan),
        ("var_pop", (), t.INT, [2, 4, 4, 4, 5, 5, 7, 9], 4.0),
        ("stddev_pop", (), t.DOUBLE, [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 2.0),
        ("variance", (), t.INT, [1, 2, 3], 1.0),
        ("var_samp", (), t.INT, [1], None),
        ("first", (), t.INT, [None, 2], None),
        ("last", (), t.INT, [None, 2], 2),
        ("median", (), t.INT, [4, 1, 2, 3], 2.5),
        ("quantile", (0.25,), t.INT, [1, 2, 3, 4, 5], 2.0),
        ("mode", (), t.STRING, ["b", "a", None, None, None], "a"),
        ("any_value", (), t.STRING, ["b", "a", None], "a"),
        ("top_k", (2,), t.STRING, ["c", "b", "a", "c"], (("c", 2), ("a", 1))),
        ("top_k", (2,), t.DOUBLE, [math.nan, 0.0, math.nan], ((math.nan, 2), (0.0, 1))),
        ("top_k", (2,), t.STRING, [None], ()),
        ("sum", (), t.INT, [None], None),
    ],
)
def test_an_aggregate_of_values_is_this(
    name: str, params: tuple[Any, ...], kind: t.DataType, values: list[Any], expected: Any
) -> None:
    assert repr(evaluate(name, params, False, column(*values), (kind,))) == repr(expected)


def test_distinct_counts_equal_rows_once() -> None:
    pairs: list[tuple[Any, ...]] = [(1, "a"), (1, "a"), (1, None), (2, "a")]
    assert evaluate("count", (), True, pairs, (t.INT, t.STRING)) == 2
    assert evaluate("count", (), False, pairs, (t.INT, t.STRING)) == 3
    assert evaluate("count", (), True, column(math.nan, float("nan"), 0.0, -0.0), (t.DOUBLE,)) == 2
    assert evaluate("sum", (), True, column(5, 5, 6), (t.INT,)) == 11


def test_count_star_counts_rows_without_arguments() -> None:
    assert evaluate("count", (), False, [(), (), ()], ()) == 3


def test_sums_of_doubles_are_rounded_once() -> None:
    assert evaluate("sum", (), False, column(1e16, 1.0, -1e16), (t.DOUBLE,)) == 1.0
    assert evaluate("sum", (), False, column(1e308, 1e308), (t.DOUBLE,)) == math.inf


def test_a_sum_that_its_type_cannot_hold_is_an_error() -> None:
    most = (1 << 63) - 1
    with pytest.raises(DataError):
        evaluate("sum", (), False, column(most, 1), (t.BIGINT,))
    assert evaluate("sum", (), False, column(-most, -1), (t.BIGINT,)) == -most - 1
    with pytest.raises(DataError):
        evaluate("sum", (), False, column(Decimal("9" * 38), Decimal(1)), (t.decimal(38, 0),))
