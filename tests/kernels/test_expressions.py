"""Oracle tests: an expression on columns gives what it gives row by row, or an error where a row does."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.kernels.agreement import alike

from windrow.algebra.expressions import Column, Expression, Literal
from windrow.algebra.functions import call, explicit_cast
from windrow.algebra.schema import Field, Schema
from windrow.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    decimal,
)
from windrow.errors import DataError, QueryError
from windrow.kernels.columns import frame_of, values_of
from windrow.kernels.expressions import compile_expression, supports, unsupported
from windrow.reference.expressions import compile_expression as compile_row

DAY = 86_400_000_000
NARROW, WIDE = decimal(10, 2), decimal(30, 5)
CHOICES: dict[DataType, list[Any]] = {
    TINYINT: [0, 1, -1, 127, -128, 5],
    INT: [0, 1, -1, 3, 7, (1 << 31) - 1, -(1 << 31)],
    BIGINT: [0, 1, -2, 10, 3_037_000_500, (1 << 63) - 1, -(1 << 63)],
    FLOAT: [0.0, 0.5, -2.0, math.inf, math.nan],
    DOUBLE: [0.0, -0.0, 0.5, 2.5, -1.1, 1e300, 9.3e18, -math.inf, math.nan],
    NARROW: [Decimal(text) for text in ("0.00", "1.25", "-1.25", "99999999.99", "2.50")],
    WIDE: [Decimal(text) for text in ("0.00000", "3.00001", "-7.50000", "12345678901234567890.12345")],
    BOOLEAN: [True, False],
    STRING: ["", "a", "b", "é"],
    TIMESTAMP: [0, 1_500_000, -1, 17 * DAY + 5],
    DATE: [0, DAY, -3 * DAY],
    INTERVAL: [0, 1_000_000, -DAY],
}
SCHEMA = Schema(tuple(Field(f"c{place}", kind) for place, kind in enumerate(CHOICES)))
ROW = st.tuples(*(st.none() | st.sampled_from(values) for values in CHOICES.values()))
FUNCTIONS = [
    *(("+", 2), ("-", 2), ("*", 2), ("/", 2), ("%", 2), ("div", 2), ("neg", 1)),
    *(("try_add", 2), ("try_subtract", 2), ("try_multiply", 2), ("try_divide", 2), ("try_mod", 2)),
    *((sign, 2) for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>", "greatest", "least", "and", "or")),
    *(("not", 1), ("is_null", 1), ("is_not_null", 1), ("isnan", 1), ("abs", 1), ("sign", 1), ("sqrt", 1)),
    *(("ceil", 1), ("floor", 1), ("round", 1), ("bround", 1)),
    *(("in", 3), ("if", 3), ("case", 4), ("coalesce", 2)),
]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Expression:
    """A tree of any functions over any columns; what has no meaning, or no form on columns, is a column."""
    column = draw(st.sampled_from([SCHEMA.column(name) for name in SCHEMA.names]))
    if depth == 0:
        return column
    kind = draw(st.integers(0, 8))
    if kind == 0:
        return Literal(draw(st.sampled_from(CHOICES[column.type])), column.type)
    if kind == 1:
        inner, safe = draw(expressions(depth - 1)), draw(st.booleans())
        return _or_else(column, lambda: explicit_cast(inner, column.type, safe=safe))
    name, arity = draw(st.sampled_from(FUNCTIONS))
    args = [draw(expressions(depth - 1)) for _ in range(arity)]
    if name in ("round", "bround") and draw(st.booleans()):
        args.append(Literal(draw(st.integers(-2, 3)), INT))
    return _or_else(column, lambda: call(name, args))


def _or_else(column: Column, make: Any) -> Expression:
    try:
        made: Expression = make()
    except QueryError:
        return column
    return made if supports(made) else column


def by_rows(expression: Expression, rows: list[tuple[Any, ...]]) -> list[Any] | None:
    compiled = compile_row(expression, SCHEMA.names)
    try:
        return [compiled(row, None) for row in rows]
    except DataError:
        return None


@settings(max_examples=250)
@given(expressions(), st.lists(ROW, min_size=1, max_size=6))
def test_columns_agree_with_rows(expression: Expression, rows: list[tuple[Any, ...]]) -> None:
    assume(not isinstance(expression, Column))
    expected = by_rows(expression, rows)
    evaluate, frame = compile_expression(expression), frame_of(SCHEMA, rows)
    if expected is None:
        with pytest.raises(DataError):
            evaluate(frame)
    else:
        found = values_of(evaluate(frame), expression.type)
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert alike(mine, theirs), (expression, mine, theirs)


@pytest.mark.parametrize(("name", "arity"), FUNCTIONS)
def test_every_function_on_every_type_it_takes(name: str, arity: int) -> None:
    """Each function, with each column in all its places, on all values of that column."""
    tried = 0
    for kind, values in CHOICES.items():
        column = next(SCHEMA.column(field.name) for field in SCHEMA if field.type == kind)
        other = Literal(values[1], kind)
        args = [column, other, other, column][:arity]
        if name in ("if", "case"):
            args[::2] = [call("is_null", [column])] * len(args[::2])
        for placed in (args, args[::-1]):
            try:
                expression = call(name, placed)
            except QueryError:
                continue
            tried += supports(expression)
            for value in [*values, None] if supports(expression) else ():
                row = tuple(value if field.type == kind else None for field in SCHEMA)
                expected = by_rows(expression, [row])
                evaluate = compile_expression(expression)
                if expected is None:
                    with pytest.raises(DataError):
                        evaluate(frame_of(SCHEMA, [row]))
                else:
                    found = values_of(evaluate(frame_of(SCHEMA, [row])), expression.type)
                    assert alike(found[0], expected[0]), (expression, value)
    assert tried


CASTS = [(a, b) for a in CHOICES for b in CHOICES if a != b]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_every_cast(source: DataType, target: DataType) -> None:
    column = next(SCHEMA.column(field.name) for field in SCHEMA if field.type == source)
    for safe in (False, True):
        try:
            expression = explicit_cast(column, target, safe=safe)
        except QueryError:
            return
        if not supports(expression):
            return
        for value in [*CHOICES[source], None]:
            row = tuple(value if field.type == source else None for field in SCHEMA)
            expected = by_rows(expression, [row])
            if expected is None:
                with pytest.raises(DataError):
                    compile_expression(expression)(frame_of(SCHEMA, [row]))
            else:
                found = compile_expression(expression)(frame_of(SCHEMA, [row]))
                assert alike(values_of(found, target)[0], expected[0]), value


def test_what_has_no_form_on_columns_is_refused_by_name() -> None:
    expression = call("=", [call("upper", [Column("s", STRING)]), Literal("A", STRING)])
    assert not supports(expression)
    assert unsupported(expression) == call("upper", [Column("s", STRING)])
    with pytest.raises(QueryError, match="`upper` of STRING"):
        compile_expression(expression)


def test_a_guarded_division_cannot_fail() -> None:
    n = Column("n", BIGINT)
    quotient, zero = call("/", [Literal(1, BIGINT), n]), Literal(0.0, DOUBLE)
    guarded = call("if", [call("<>", [n, Literal(0, BIGINT)]), quotient, zero])
    frame = frame_of(Schema((Field("n", BIGINT),)), [(0,), (4,), (None,)])
    assert compile_expression(guarded)(frame).to_list() == [0.0, 0.25, 0.0]
