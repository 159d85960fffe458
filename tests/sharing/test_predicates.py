"""Conditions as terms: what is said of them holds for every row."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

from hypothesis import given, settings, strategies as st

from windrow.algebra.expressions import ColumnRef, Expression, Field, Literal, Schema
from windrow.algebra.functions import call
from windrow.algebra.types import BOOLEAN, DOUBLE, INT
from windrow.kernels.columnar.columns import frame_of
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.sharing.predicates import (
    Predicate,
    Term,
    find_cover,
    find_difference,
    find_disjoint_cover,
    predicate_of,
)

SCHEMA = Schema((Field("a", INT), Field("x", DOUBLE), Field("b", BOOLEAN)))
ROWS = list(product([None, 1, 2, 3, 4], [None, 0.5, 1.0, float("nan")], [None, True, False]))
FRAME = frame_of(SCHEMA, ROWS)
_OPERATORS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def _atoms() -> list[Expression]:
    a, x, b = (SCHEMA.column(name) for name in ("a", "x", "b"))
    found: list[Expression] = [b, call("is_null", [a]), call("is_not_null", [x])]
    found += [call(op, [a, Literal(value, INT)]) for op in _OPERATORS for value in (2, 3)]
    found += [call(op, [x, Literal(value, DOUBLE)]) for op in _OPERATORS for value in (1.0, float("nan"))]
    found += [call("in", [a, Literal(1, INT), Literal(4, INT)]), call("=", [a, Literal(None, INT)])]
    return found


conditions = st.recursive(
    st.sampled_from(_atoms()),
    lambda inner: st.one_of(
        st.builds(lambda part: call("not", [part]), inner),
        st.builds(lambda one, other: call("and", [one, other]), inner, inner),
        st.builds(lambda one, other: call("or", [one, other]), inner, inner),
    ),
    max_leaves=4,
)


def satisfied(condition: Expression) -> set[int]:
    chosen = holds(compile_expression(condition), FRAME)
    return {place for place, each in enumerate(chosen.to_list()) if each}


def by_term(term: Term) -> set[int]:
    """The rows that satisfy a term, by looking at each value."""
    found = set(range(len(ROWS)))
    for subject, allowed in term.parts:
        values = compile_expression(subject)(FRAME).to_list()
        found &= {place for place, value in enumerate(values) if _is_allowed(allowed, value)}
    return found


def _is_allowed(allowed: Any, value: Any) -> bool:
    if value is None:
        return bool(allowed.null)
    at = (isinstance(value, float) and value != value, 0 if value != value else value)
    above = allowed.low is None or at > allowed.low or (at == allowed.low and allowed.low_is_in)
    below = allowed.high is None or at < allowed.high or (at == allowed.high and allowed.high_is_in)
    return above and below and at not in allowed.without and not allowed.null


@settings(max_examples=80)
@given(conditions)
def test_the_terms_are_the_condition(condition: Expression) -> None:
    predicate = predicate_of(condition)
    assert set().union(*map(by_term, predicate.terms)) == satisfied(condition)


@settings(max_examples=80)
@given(conditions, conditions)
def test_what_is_said_of_two_conditions_is_true(one: Expression, other: Expression) -> None:
    mine, theirs = predicate_of(one), predicate_of(other)
    if mine == theirs:
        assert satisfied(one) == satisfied(other)
    for term in mine.terms:
        for another in theirs.terms:
            if term.is_disjoint_from(another):
                assert not by_term(term) & by_term(another)
            if term.implies(another):
                assert by_term(term) <= by_term(another)


@settings(max_examples=30)
@given(st.lists(conditions, min_size=1, max_size=5), st.data())
def test_covers_hold_the_rows_of_the_query(parts: list[Expression], data: st.DataObject) -> None:
    """Whatever is found, each row of the query is in it: once, if it is to be disjoint."""
    chosen = data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=3))
    whole = chosen[0]
    for part in chosen[1:]:
        whole = call("or", [whole, part])
    query = predicate_of(whole)
    held: dict[int, Predicate] = {n: predicate_of(part) for n, part in enumerate(parts)}
    held[-1] = predicate_of(call("or", [whole, parts[-1]]))
    rows = {name: satisfied(each.expression) for name, each in held.items()}
    cover = find_cover(query, held, 4)
    if cover is not None:
        assert set().union(*(rows[name] for name in cover.added)) == satisfied(whole)
    for find in (find_disjoint_cover, find_difference):
        found = find(query, held, 4)
        if found is not None:
            counts = Counter(place for name in found.added for place in rows[name])
            counts.subtract(place for name in found.subtracted for place in rows[name])
            assert +counts == Counter(satisfied(whole))
            assert not -counts


def test_a_set_of_all_its_terms_is_found() -> None:
    """So that the property above does not hold for want of covers."""
    a = ColumnRef("a", INT)
    ones = [call("=", [a, Literal(value, INT)]) for value in range(4)]
    either = call("or", [call("or", ones[:2]), call("or", ones[2:])])
    held = dict(enumerate(map(predicate_of, ones)))
    found = find_disjoint_cover(predicate_of(either), held, 4)
    assert found is not None
    assert set(found.added) == {0, 1, 2, 3}
    assert find_disjoint_cover(predicate_of(either), held, 3) is None
    del held[0]
    held[9] = predicate_of(either)
    rest = find_difference(predicate_of(ones[0]), held, 4)
    assert rest is not None
    assert (rest.added, set(rest.subtracted)) == ((9,), {1, 2, 3})
