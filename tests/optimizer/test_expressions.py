"""Expressions after folding and normalising have the value they had; conditions hold where they held."""

from __future__ import annotations

from hypothesis import given, strategies as st

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal
from windrow.algebra.functions import call
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, decimal
from windrow.errors import DataError
from windrow.optimizer.fold_constants import folded
from windrow.optimizer.simplify_predicates import disjunctive_form, normalised, simplified
from windrow.optimizer.trees import can_fail, is_movable, respects_grouping
from windrow.reference.expressions import evaluate

INTEGERS = st.sampled_from([ColumnRef("a", INT), ColumnRef("b", INT)]) | st.builds(
    Literal, st.sampled_from([None, 0, 1, 2, 2**31 - 1]), st.just(INT)
)
TRUTHS = st.sampled_from([ColumnRef("t", BOOLEAN), *(Literal(each, BOOLEAN) for each in (None, True, False))])


def made(*names: str):  # type: ignore[no-untyped-def]
    return lambda *args: st.sampled_from(names).map(lambda name: call(name, list(args)))


numbers = st.recursive(
    INTEGERS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).flatmap(lambda two: made("+", "-", "*", "coalesce")(*two)),
        inner.flatmap(lambda one: made("neg")(one)),
    ),
    max_leaves=5,
)
comparisons = st.tuples(numbers, numbers).flatmap(
    lambda two: made("=", "<>", "<", "<=", ">", ">=", "<=>")(*two)
)
truths = st.recursive(
    TRUTHS | comparisons | numbers.flatmap(lambda one: made("is_null", "is_not_null")(one)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).flatmap(lambda two: made("and", "or", "and", "or")(*two)),
        inner.flatmap(lambda one: made("not")(one)),
        st.tuples(inner, inner, inner).flatmap(lambda three: made("if", "case")(*three)),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, 0, 1, 2**31 - 1]),
        "b": st.sampled_from([None, 0, 2]),
        "t": st.sampled_from([None, True, False]),
    }
)


def value(expression: Expression, row: dict[str, object]) -> object:
    try:
        return evaluate(expression, row)
    except DataError:
        return "failed"


@given(truths | numbers, rows)
def test_folding_keeps_values_and_types(expression: Expression, row: dict[str, object]) -> None:
    short = folded(expression)
    assert short.type == expression.type
    expected = value(expression, row)
    assert expected == "failed" or value(short, row) == expected


@given(truths)
def test_folding_is_done_in_one_go(expression: Expression) -> None:
    assert folded(folded(expression)) == folded(expression)


@given(truths, rows)
def test_normalising_keeps_values(predicate: Expression, row: dict[str, object]) -> None:
    expected = value(predicate, row)
    assert expected == "failed" or value(normalised(predicate), row) == expected
    assert normalised(normalised(predicate)) == normalised(predicate)


@given(truths, rows)
def test_a_simplified_condition_holds_where_it_held(condition: Expression, row: dict[str, object]) -> None:
    expected = value(condition, row)
    assert expected == "failed" or (value(simplified(condition), row) is True) == (expected is True)


@given(truths, rows)
def test_clauses_hold_where_the_condition_holds(condition: Expression, row: dict[str, object]) -> None:
    clauses = disjunctive_form(condition)
    expected = value(condition, row)
    if clauses is None or expected == "failed":
        return
    values = [[value(part, row) for part in clause] for clause in clauses]
    if not any("failed" in clause for clause in values):
        assert any(all(each is True for each in clause) for clause in values) == (expected is True)


@given(truths | numbers, rows)
def test_what_cannot_fail_does_not_fail(expression: Expression, row: dict[str, object]) -> None:
    assert can_fail(expression) or value(expression, row) != "failed"


def test_clauses_are_few_or_none_at_all() -> None:
    columns = [ColumnRef(f"c{n}", BOOLEAN) for n in range(14)]
    pairs = [call("or", [columns[n], columns[n + 1]]) for n in range(0, 14, 2)]
    everything = pairs[0]
    for pair in pairs[1:]:
        everything = call("and", [everything, pair])
    assert disjunctive_form(everything) is None
    assert len(disjunctive_form(everything, most=128) or ()) == 128


def test_a_clause_that_says_more_than_another_is_not_needed() -> None:
    a, b = ColumnRef("a", BOOLEAN), ColumnRef("b", BOOLEAN)
    assert disjunctive_form(call("or", [a, call("and", [b, a])])) == ((a,),)


def test_what_may_move() -> None:
    a, x, s = ColumnRef("a", INT), ColumnRef("x", DOUBLE), ColumnRef("s", STRING)
    assert is_movable(call("*", [x, x]))
    assert is_movable(call("/", [a, Literal(4, INT)]))
    assert not is_movable(call("/", [a, Literal(0, INT)]))
    assert not is_movable(call("+", [a, a]))
    assert not is_movable(Cast(s, INT))
    assert is_movable(Cast(s, INT, safe=True))
    assert is_movable(Cast(a, decimal(12, 1)))
    assert not is_movable(Cast(a, decimal(10, 1)))
    assert respects_grouping(call("=", [x, x]))
    assert not respects_grouping(call("=", [call("*", [x, x]), x]))


def test_constants_that_would_fail_are_left_to_fail() -> None:
    most = Literal(2**31 - 1, INT)
    assert folded(call("+", [most, Literal(1, INT)])) == Call("+", (most, Literal(1, INT)), INT)
    moment = call("-", [Literal(10, TIMESTAMP), Literal(4, TIMESTAMP)])
    assert to_sql(folded(call("<", [ColumnRef("n", BIGINT), Cast(Literal(7, INT), BIGINT)])), str) == "n < 7L"
    assert isinstance(folded(moment), Literal)
