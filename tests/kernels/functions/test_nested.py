"""Arrays and structs on columns: they are compared, chosen and handed on, and nothing else."""

from __future__ import annotations

import math

import polars as pl
import pytest
from tests.kernels.functions.samples import JSON_TEXTS, assert_columns_agree, exactly

from windrow.algebra.expressions import ColumnRef, Field, Literal, Schema
from windrow.algebra.functions import call
from windrow.algebra.types import BIGINT, DOUBLE, STRING, DataType, array, struct
from windrow.kernels.columnar.columns import polars_type, values_of
from windrow.kernels.columnar.expressions import compile_expression
from windrow.reference.expressions import compile_expression as compile_row

ARRAYS = [None, (), (1.0,), (1.0, None), (math.nan,), (-0.0,), (0.0,), (1.0, 2.0)]
STRUCTS = [None, (1, 2.0), (1, None), (None, math.nan), (1, 2.5)]
TESTS = ["=", "<>", "<", "<=", ">", ">=", "<=>", "in", "coalesce"]


@pytest.mark.parametrize("name", [*TESTS, "greatest", "least"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [(array(DOUBLE), ARRAYS), (array(array(BIGINT)), [None, ((1,), None), ()])],
    ids=["array", "array of arrays"],
)
def test_arrays_are_compared_as_rows_compare_them(name: str, kind: DataType, values: list[object]) -> None:
    schema = Schema((Field("a", kind), Field("b", kind)))
    expression = call(name, [ColumnRef("a", kind), ColumnRef("b", kind)])
    assert_columns_agree(expression, [(a, b) for a in values for b in values], schema)


@pytest.mark.parametrize("name", TESTS)
def test_structs_are_compared_as_rows_compare_them(name: str) -> None:
    kind = struct(n=BIGINT, x=DOUBLE)
    expression = call(name, [ColumnRef("a", kind), ColumnRef("b", kind)])
    pairs = [(a, b) for a in STRUCTS for b in STRUCTS]
    frame = pl.DataFrame(
        {
            column: pl.Series(
                [value and dict(zip("nx", value, strict=True)) for value in values], dtype=polars_type(kind)
            )
            for column, values in zip("ab", zip(*pairs, strict=True), strict=True)
        }
    )
    found = values_of(compile_expression(expression)(frame), expression.type)
    expected = compile_row(expression, ["a", "b"])
    assert [exactly(value) for value in found] == [exactly(expected(pair, None)) for pair in pairs]


@pytest.mark.parametrize(
    "more",
    [
        ("get_json_object", "$.a"),
        ("get_json_object", "$[0]"),
        ("get_json_object", "$.s"),
        ("json_array_length",),
        ("from_json", "s STRING, a STRING, n BIGINT"),
        ("from_json", "ARRAY<STRING>"),
        ("from_json", "MAP<STRING, STRING>"),
    ],
    ids=" ".join,
)
def test_texts_that_a_parser_stumbles_over_give_a_value_or_null(more: tuple[str, ...]) -> None:
    name, *words = more
    schema = Schema((Field("text", STRING),))
    expression = call(name, [schema.column("text"), *(Literal(word, STRING) for word in words)])
    assert_columns_agree(expression, [(text,) for text in JSON_TEXTS], schema)
