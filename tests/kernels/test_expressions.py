"""Oracle tests: an expression gives on columns what it gives row by row, or the error of the first row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings, strategies as st
from tests.kernels.functions.samples import COLUMNS, SAMPLES, SCHEMA, assert_columns_agree

from windrow.algebra.expressions import ColumnRef, Expression, Field, Literal, Schema
from windrow.algebra.functions import call, catalogue, explicit_cast
from windrow.algebra.types import BIGINT, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP
from windrow.errors import DataError, QueryError
from windrow.kernels.columnar.columns import frame_of
from windrow.kernels.columnar.expressions import can_fail, compile_expression

ROW = st.tuples(*(st.none() | st.sampled_from(SAMPLES[field.type]) for field in SCHEMA))
FUNCTIONS = [function for function in catalogue() if function.category != "refused"]
#: drawn more often: in them, what fails may not be asked for
CHOICES = [
    function for function in FUNCTIONS if function.name in ("and", "or", "if", "case", "coalesce", "in")
]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """A tree of any functions over any columns; what has no meaning is a column."""
    column = draw(st.sampled_from(COLUMNS))
    kind = draw(st.integers(0, 8)) if depth else 8
    if kind == 0:
        return Literal(draw(st.sampled_from(SAMPLES[column.type])), column.type)
    if kind == 1:
        inner, safe = draw(expressions(depth - 1)), draw(st.booleans())
        return _or_else(column, lambda: explicit_cast(inner, column.type, safe=safe))
    if kind == 8:
        return column
    function = draw(st.sampled_from(CHOICES if kind == 2 else FUNCTIONS))
    least, most = function.arity
    args = [draw(expressions(depth - 1)) for _ in range(draw(st.integers(least, most or least + 1)))]
    return _or_else(column, lambda: call(function.name, args))


def _or_else(column: ColumnRef, make: Any) -> Expression:
    try:
        made: Expression = make()
    except QueryError:
        return column
    return made


@settings(max_examples=300)
@given(expressions(), st.lists(ROW, min_size=1, max_size=6))
def test_columns_agree_with_rows(expression: Expression, rows: list[tuple[Any, ...]]) -> None:
    assume(not isinstance(expression, ColumnRef))
    assert_columns_agree(expression, rows)


N, S = ColumnRef("n", BIGINT), ColumnRef("s", STRING)
NUMBERS, TEXTS = Schema((Field("n", BIGINT),)), Schema((Field("s", STRING),))
ZERO, ONE = Literal(0, BIGINT), Literal(1, BIGINT)
QUOTIENT = call("div", [ONE, N])


def test_a_guarded_division_cannot_fail() -> None:
    guarded = call("if", [call("<>", [N, ZERO]), call("/", [ONE, N]), Literal(0.0, DOUBLE)])
    frame = frame_of(NUMBERS, [(0,), (4,), (None,)])
    assert compile_expression(guarded)(frame).to_list() == [0.0, 0.25, 0.0]


@pytest.mark.parametrize(
    "expression",
    [
        call("and", [call("<>", [N, ZERO]), call("=", [QUOTIENT, ONE])]),
        call("or", [call("=", [N, ZERO]), call("=", [QUOTIENT, ONE])]),
        call("coalesce", [call("nullif", [ONE, call("sign", [N])]), QUOTIENT]),
        call("in", [N, ZERO, QUOTIENT]),
        call("in", [call("nullif", [N, ZERO]), QUOTIENT]),
        call("+", [call("nullif", [N, ZERO]), QUOTIENT]),
        call("pmod", [QUOTIENT, call("nullif", [N, ZERO])]),
        call(
            "concat_ws",
            [call("if", [call("=", [N, ZERO]), Literal(None, STRING), Literal("-", STRING)]), QUOTIENT],
        ),
        call(
            "locate",
            [
                call("string", [QUOTIENT]),
                Literal("1", STRING),
                call("nullif", [call("int", [N]), Literal(0, INT)]),
            ],
        ),
    ],
    ids=str,
)
def test_what_is_not_asked_for_does_not_fail(expression: Expression) -> None:
    assert can_fail(expression)
    assert_columns_agree(expression, [(0,), (1,), (None,), (5,)], NUMBERS)


def test_the_error_is_that_of_the_first_row_with_one() -> None:
    """Even if an argument that is computed earlier fails in a later row."""
    expression = call("+", [explicit_cast(S, INT), call("div", [ONE, call("length", [S])])])
    with pytest.raises(DataError, match="division by zero"):
        compile_expression(call("+", [call("div", [ONE, call("length", [S])]), explicit_cast(S, INT)]))(
            frame_of(TEXTS, [("1",), ("",), ("x",)])
        )
    with pytest.raises(DataError, match="'x' is no INT"):
        compile_expression(expression)(frame_of(TEXTS, [("1",), ("x",), ("",)]))


@pytest.mark.parametrize("name", ["=", "<=>", "in", "greatest", "coalesce", "is_null"])
def test_null_without_a_type(name: str) -> None:
    nothing = Literal(None, NULL)
    expression = call(name, [nothing] * (1 if name == "is_null" else 2))
    assert_columns_agree(expression, [(1,), (None,)], NUMBERS)


def test_a_date_that_no_column_holds_is_an_error_unless_it_is_not_asked_for() -> None:
    distant = call("date_from_unix_date", [Literal((1 << 31) - 1, INT)])
    guarded = call("if", [call("=", [N, ZERO]), distant, Literal(0, DATE)])
    assert compile_expression(guarded)(frame_of(NUMBERS, [(1,)])).to_list() == [0]
    with pytest.raises(DataError, match=r"the date \+5881580-07-11 is out of range"):
        compile_expression(guarded)(frame_of(NUMBERS, [(0,)]))
    with pytest.raises(DataError, match="is out of range"):
        compile_expression(Literal(1 << 64, DATE))(frame_of(NUMBERS, [(0,)]))


def test_a_long_column_of_few_values() -> None:
    schema = Schema((Field("t", TIMESTAMP),))
    written = compile_expression(explicit_cast(ColumnRef("t", TIMESTAMP), STRING))
    frame = pl.concat([frame_of(schema, [(0,), (None,), (1_500_000,)])] * 1000)
    assert written(frame).unique(maintain_order=True).to_list() == [
        "1970-01-01 00:00:00",
        None,
        "1970-01-01 00:00:01.5",
    ]
