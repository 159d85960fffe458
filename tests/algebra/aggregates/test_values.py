"""Values where engines differ; the expected ones are what Spark 4.3 answers, unless a test says otherwise."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from windrow.algebra import types as t
from windrow.algebra.aggregates import make
from windrow.errors import DataError, QueryError

INF, NAN, BIG = math.inf, math.nan, (1 << 63) - 1


def answer(name: str, kind: str, *values: Any, params: tuple[Any, ...] = (), distinct: bool = False) -> Any:
    scalar = t.parse_type(kind)
    aggregate = make(name, params, distinct=distinct, types=(scalar,))
    made = [
        Decimal(value) if scalar.kind is t.Kind.DECIMAL and value is not None else value for value in values
    ]
    return aggregate.lower(aggregate.fold(aggregate.lift((v,), (i,)) for i, v in enumerate(made)))


@pytest.mark.parametrize(
    ("name", "kind", "values", "expected"),
    [
        ("sum", "tinyint", [127, 127], 254),
        ("sum", "int", [None], None),
        ("sum", "decimal(5,2)", ["1.1", "2"], Decimal("3.10")),
        ("sum", "double", [INF, -INF], NAN),
        ("avg", "double", [INF, None], INF),
        ("avg", "int", [1, 2], 1.5),
        ("avg", "decimal(5,2)", ["0.10", "0.10", "0.00"], Decimal("0.066667")),
        ("avg", "decimal(5,5)", ["0.00001", "0"], Decimal("0.000005000")),
        ("avg", "decimal(38,3)", ["12345.678", "1.001"], Decimal("6173.3395000")),
        ("avg", "interval", [1, 2], 2),
        ("avg", "interval", [-1, -2], -2),
        ("min", "double", [NAN, 1.0, INF, -INF], -INF),
        ("max", "double", [NAN, 1.0, INF, -INF], NAN),
        ("max", "string", ["é", "z", "\uffff", "\U0001f600"], "\U0001f600"),
        ("min", "boolean", [True, False, None], False),
        ("var_pop", "double", [1.0], 0.0),
        ("var_pop", "double", [INF], NAN),
        ("var_pop", "double", [1e200, -1e200], INF),
        ("var_samp", "double", [INF], None),
        ("var_samp", "int", [5], None),
        ("stddev", "double", [1.0, INF], NAN),
        ("stddev_pop", "int", [1, 3], 1.0),
        ("first", "int", [None, 1], None),
        ("last", "int", [None, 1], 1),
        ("median", "double", [NAN, 1.0, INF, -INF], INF),
        ("median", "double", [-INF, INF], NAN),
        ("median", "double", [-INF, 1.0], NAN),
        ("median", "double", [1.0, INF], INF),
        ("median", "double", [INF, INF], INF),
        ("median", "bigint", [], None),
    ],
)
def test_an_aggregate_of_values_is_this(name: str, kind: str, values: list[Any], expected: Any) -> None:
    assert repr(answer(name, kind, *values)) == repr(expected)


@pytest.mark.parametrize(
    ("fraction", "kind", "values", "expected"),
    [
        (0.9, "double", [NAN, 1.0, INF, -INF], NAN),
        (0.25, "decimal(3,2)", ["1.10", "2.20", None], 1.375),
        (0.1, "double", [1.0, 2.0, 2.0, 5.0], 1.3),
        (0.3, "bigint", [9007199254740993, 9007199254740995], 9007199254740994.0),
        (Decimal("1"), "int", [3, 1, 2], 3.0),
    ],
)
def test_a_quantile_of_values_is_this(fraction: Any, kind: str, values: list[Any], expected: float) -> None:
    assert repr(answer("quantile", kind, *values, params=(fraction,))) == repr(expected)


def test_distinct_takes_nan_and_both_zeros_as_one_value_each() -> None:
    assert answer("count", "double", NAN, float("nan"), 0.0, -0.0, distinct=True) == 2
    assert answer("sum", "int", 1, 1, None, 2, distinct=True) == 3
    assert answer("median", "int", 1, 1, 3, distinct=True) == 2.0


def test_count_of_several_arguments_needs_all_of_them() -> None:
    rows: list[tuple[Any, ...]] = [(1, None), (1, 2), (1, 2)]
    for distinct, expected in ((False, 2), (True, 1)):
        count = make("count", distinct=distinct, types=(t.INT, t.INT))
        assert count.lower(count.fold(map(count.lift, rows))) == expected


def test_a_sum_overflows_only_if_the_sum_does() -> None:
    """Spark fails here or not, depending on the order of the rows; an exact answer must not."""
    assert answer("sum", "bigint", BIG, 1, -1) == BIG
    with pytest.raises(DataError, match="does not fit BIGINT") as caught:
        answer("sum", "bigint", BIG, 1)
    assert caught.value.code == "arithmetic-overflow"


@pytest.mark.parametrize(
    ("name", "values"), [("sum", ["9" * 38, "1"]), ("sum", ["-" + "9" * 38, "-1"]), ("avg", ["9" * 37])]
)
def test_a_decimal_overflows_its_result_type(name: str, values: list[str]) -> None:
    with pytest.raises(DataError, match=r"does not fit DECIMAL\(38"):
        answer(name, "decimal(38,0)", *values)


def test_a_huge_value_leaves_nothing_behind() -> None:
    for name in ("sum", "avg", "var_pop"):
        assert not make(name, types=(t.DOUBLE,)).invertible
    assert make("median", types=(t.DOUBLE,)).invertible


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("sum", "int", "BIGINT"),
        ("sum", "float", "DOUBLE"),
        ("sum", "decimal(30,2)", "DECIMAL(38,2)"),
        ("avg", "decimal(30,2)", "DECIMAL(34,6)"),
        ("sum", "void", "DOUBLE"),
        ("min", "date", "DATE"),
        ("quantile", "decimal(5,2)", "DOUBLE"),
        ("top_k", "string", "ARRAY<STRUCT<value: STRING, count: BIGINT>>"),
        ("count", "string", "BIGINT"),
    ],
)
def test_the_type_of_an_answer_follows_from_the_argument(name: str, given: str, expected: str) -> None:
    params = {"quantile": (0.5,), "top_k": (3,)}.get(name, ())
    assert repr(make(name, params).result_type((t.parse_type(given),))) == expected


@pytest.mark.parametrize(
    ("name", "kinds", "message"),
    [
        ("sum", ["string"], "SUM of STRING has no meaning (cast it to a number first)"),
        ("avg", ["timestamp"], "AVG of TIMESTAMP has no meaning (it takes numbers)"),
        ("var_pop", ["interval"], "VAR_POP of INTERVAL has no meaning (it takes numbers)"),
        ("median", ["boolean"], "MEDIAN of BOOLEAN has no meaning (cast it to a number first)"),
        ("max", ["int", "int"], "MAX got 2 arguments (it takes 1)"),
        ("sum", [], "SUM got 0 arguments (it takes 1)"),
    ],
)
def test_wrong_arguments(name: str, kinds: list[str], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make(name, types=tuple(map(t.parse_type, kinds)))
    assert str(caught.value) == message
