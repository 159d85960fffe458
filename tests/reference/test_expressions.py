"""Evaluation: NULLs, branches not taken, window bounds, errors with a way out."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from windrow.algebra.expressions import Call, Cast, ColumnRef, Literal, WindowBound
from windrow.algebra.functions import call, explicit_cast
from windrow.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    array,
    decimal,
    struct,
)
from windrow.errors import DataError
from windrow.reference.expressions import WindowContext, compile_expression, evaluate

A, B = ColumnRef("a", INT), ColumnRef("b", INT)
ONE, ZERO, NOTHING = Literal(1, INT), Literal(0, INT), Literal(None, NULL)
FAILING = call("div", (ONE, ZERO))


def constant(name, *args):
    return evaluate(call(name, args), {})


def test_columns_are_found_by_position():
    run = compile_expression(call("-", (A, B)), ["b", "x", "a"])
    assert run((1, "ignored", 5), None) == 4


def test_window_bounds_come_from_the_context():
    start, end = (WindowBound(name, TIMESTAMP) for name in ("window_start", "window_end"))
    run = compile_expression(call("-", (end, start)), [])
    assert run((), WindowContext(10, 70)) == 60


@pytest.mark.parametrize(
    "guarded",
    [
        call("and", (Literal(False, BOOLEAN), call("=", (FAILING, ONE)))),
        call("or", (Literal(True, BOOLEAN), call("=", (FAILING, ONE)))),
        call("case", (Literal(True, BOOLEAN), Literal(1, BIGINT), FAILING)),
        call("if", (Literal(False, BOOLEAN), FAILING, ONE)),
        call("coalesce", (ONE, FAILING)),
        call("in", (ONE, ONE, FAILING)),
        call("div", (FAILING, NOTHING)),
    ],
)
def test_what_is_not_needed_cannot_fail(guarded):
    evaluate(guarded, {})


@pytest.mark.parametrize(
    "eager",
    [
        call("and", (Literal(None, BOOLEAN), call("=", (FAILING, ONE)))),
        call("or", (Literal(False, BOOLEAN), call("=", (FAILING, ONE)))),
        call("greatest", (ONE, FAILING)),
        call("try_add", (FAILING, ONE)),
        Cast(FAILING, STRING, safe=True),
    ],
)
def test_what_is_needed_may_fail(eager):
    with pytest.raises(DataError) as caught:
        evaluate(eager, {})
    assert caught.value.code == "divide-by-zero"


@pytest.mark.parametrize(
    ("expression", "code", "hint"),
    [
        (call("+", (Literal(2**31 - 1, INT), ONE)), "arithmetic-overflow", "try_add gives NULL instead"),
        (call("/", (ONE, ZERO)), "divide-by-zero", "try_divide gives NULL instead"),
        (call("%", (ONE, ZERO)), "divide-by-zero", "try_mod gives NULL instead"),
        (explicit_cast(Literal("x", STRING), INT), "bad-cast", "TRY_CAST gives NULL instead"),
        (explicit_cast(Literal(300, INT), decimal(2, 0)), "bad-cast", "TRY_CAST gives NULL instead"),
        (call("split_part", (Literal("a", STRING), Literal(".", STRING), ZERO)), "bad-index", ""),
        (call("repeat", (Literal("a", STRING), Literal(2**31 - 1, INT))), "text-too-long", ""),
    ],
)
def test_errors_name_the_way_out(expression, code, hint):
    with pytest.raises(DataError) as caught:
        evaluate(expression, {})
    assert caught.value.code == code
    assert hint in str(caught.value)


def test_every_nan_is_the_same_object():
    infinite = Literal(math.inf, DOUBLE)
    results = [
        constant("-", infinite, infinite),
        constant("*", infinite, Literal(0.0, DOUBLE)),
        constant("sqrt", Literal(-1.0, DOUBLE)),
        constant("neg", Literal(math.nan, DOUBLE)),
        evaluate(explicit_cast(Literal("nan", STRING), DOUBLE), {}),
        evaluate(explicit_cast(Literal(math.nan, DOUBLE), FLOAT), {}),
    ]
    assert all(result is math.nan for result in results)


def test_arrays_and_structs_compare_by_their_elements():
    pair = struct(name=STRING, score=DOUBLE)
    left, right = (Literal(value, pair) for value in (("a", math.nan), ("a", 1.0)))
    assert constant(">", left, right)
    assert constant("=", left, left)
    numbers = array(INT)
    assert constant("<", Literal((1,), numbers), Literal((1, None), numbers))
    assert constant("=", Literal((None,), numbers), Literal((None,), numbers))


def test_intervals_round_to_the_nearest_microsecond():
    assert constant("/", Literal(5, INTERVAL), Literal(2, INT)) == 3
    assert constant("/", Literal(-5, INTERVAL), Literal(2, INT)) == -3
    assert constant("*", Literal(3, INTERVAL), Literal(0.5, DOUBLE)) == 2


def test_decimals_carry_the_scale_of_their_type():
    product = call("*", (Literal(Decimal("1.50"), decimal(3, 2)), Literal(2, INT)))
    assert str(evaluate(product, {})) == "3.00"
    assert product.type == decimal(5, 2)


truth = st.sampled_from([True, False, None])


@given(truth, truth)
def test_de_morgan_holds_with_unknown(p, q):
    row, columns = (p, q), ["p", "q"]
    left, right = ColumnRef("p", BOOLEAN), ColumnRef("q", BOOLEAN)
    both = call("not", (call("and", (left, right)),))
    either = call("or", (call("not", (left,)), call("not", (right,))))
    assert compile_expression(both, columns)(row, None) is compile_expression(either, columns)(row, None)


integers = st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1))


@given(integers, integers)
def test_the_try_form_agrees_or_is_null(a, b):
    for name in ("add", "subtract", "multiply", "divide", "mod"):
        sign = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "mod": "%"}[name]
        attempt = evaluate(call(f"try_{name}", (A, B)), {"a": a, "b": b})
        try:
            assert attempt == evaluate(call(sign, (A, B)), {"a": a, "b": b})
        except DataError:
            assert attempt is None


@given(integers, integers)
def test_quotient_and_remainder_make_up_the_dividend(a, b):
    if a is None or not b:
        return
    row = {"a": a, "b": b}
    assert evaluate(call("div", (A, B)), row) * b + evaluate(call("%", (A, B)), row) == a


@given(st.floats(allow_nan=False), st.floats())
def test_nan_is_the_greatest_and_order_is_total(x, y):
    row = {"x": x, "y": math.nan if y != y else y}
    columns = ColumnRef("x", DOUBLE), ColumnRef("y", DOUBLE)
    holds = [evaluate(Call(sign, columns, BOOLEAN), row) for sign in ("<", "=", ">")]
    assert holds.count(True) == 1
    assert holds[0] or y == y


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(x):
    text = evaluate(explicit_cast(Literal(x, DOUBLE), STRING), {})
    assert repr(evaluate(explicit_cast(Literal(text, STRING), DOUBLE), {})) == repr(x)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_timestamp_survives_its_text(micros):
    text = evaluate(explicit_cast(Literal(micros, TIMESTAMP), STRING), {})
    assert evaluate(explicit_cast(Literal(text, STRING), TIMESTAMP), {}) == micros
