"""Laws: what every aggregate's algebra and its declared facts promise, for every type it takes."""

from __future__ import annotations

import pickle
from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from windrow.algebra import types as t
from windrow.algebra.aggregates import Differential, Gray, Size, lookup, names
from windrow.algebra.aggregates.approx_count import Waved

pytestmark = pytest.mark.cases

few = settings(max_examples=10, deadline=None)


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_identity_is_neutral(case: Any, data: st.DataObject) -> None:
    aggregate, state = case.aggregate, data.draw(case.states)
    assert case.close(aggregate.combine(aggregate.identity(), state), state)
    assert case.close(aggregate.combine(state, aggregate.identity()), state)


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_combine_is_associative(case: Any, data: st.DataObject) -> None:
    combine = case.aggregate.combine
    a, b, c = (data.draw(case.states) for _ in range(3))
    assert case.close(combine(combine(a, b), c), combine(a, combine(b, c)))


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_combine_is_commutative_where_declared(commutative_case: Any, data: st.DataObject) -> None:
    a, b = data.draw(commutative_case.states), data.draw(commutative_case.states)
    assert commutative_case.close(
        commutative_case.aggregate.combine(a, b), commutative_case.aggregate.combine(b, a)
    )


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_subtract_undoes_combine_exactly_where_declared(invertible_case: Any, data: st.DataObject) -> None:
    aggregate = invertible_case.aggregate
    a, b = data.draw(invertible_case.states), data.draw(invertible_case.states)
    assert aggregate.subtract(aggregate.combine(a, b), b) == a


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_duplicates_change_nothing_where_declared(insensitive_case: Any, data: st.DataObject) -> None:
    aggregate = insensitive_case.aggregate
    a, b = data.draw(insensitive_case.states), data.draw(insensitive_case.states)
    once = aggregate.combine(a, b)
    assert repr(insensitive_case.value(aggregate.combine(once, b))) == repr(insensitive_case.value(once))


def test_duplicates_change_something_where_not_declared(sensitive_case: Any) -> None:
    aggregate = sensitive_case.aggregate
    rows = [(0, *pair) for pair in product(*(_distinct(kind, 2) for kind in sensitive_case.types))]
    once = aggregate.fold(map(sensitive_case.lift, rows))
    assert any(
        aggregate.lower(aggregate.combine(once, sensitive_case.lift(row))) != aggregate.lower(once)
        for row in rows
    )


def test_the_declared_size_is_the_size(unlimited_case: Any) -> None:
    few_rows, many_rows = (
        [(0, *row) for row in zip(*(_distinct(kind, size) for kind in unlimited_case.types), strict=True)]
        or [(0,)] * size
        for size in (8, 64)
    )
    small, large = (
        unlimited_case.aggregate.fold(map(unlimited_case.lift, rows)) for rows in (few_rows, many_rows)
    )
    most = unlimited_case.aggregate.most_cells
    if unlimited_case.aggregate.size is Size.SKETCH:
        assert len(large) <= most
    else:
        assert most is None
        assert (_parts(small) == _parts(large)) is (unlimited_case.aggregate.size is Size.BOUNDED)


def test_only_sketches_err(case: Any) -> None:
    errs = lookup(case.name).size in (Size.SKETCH, Size.LISTS)
    assert errs is (case.aggregate.error_bound is not None)


def test_facts_do_not_contradict_each_other(case: Any) -> None:
    aggregate = case.aggregate
    assert (aggregate.size is Size.HOLISTIC) is (aggregate.gray is Gray.HOLISTIC)
    if aggregate.differential is Differential.FULL:
        assert aggregate.size is not Size.HOLISTIC
    if aggregate.differential is Differential.PSEUDO:
        assert aggregate.size is Size.HOLISTIC
    if aggregate.invertible:
        assert aggregate.differential is not Differential.NONE
    assert aggregate.result == aggregate.result_type(case.types)


@pytest.mark.part(3)
@few
@given(data=st.data())
def test_states_can_be_pickled_and_hashed(case: Any, data: st.DataObject) -> None:
    a, b = data.draw(case.states), data.draw(case.states)
    copy = pickle.loads(pickle.dumps(a))
    hash(a)
    assert case.close(case.aggregate.combine(copy, b), case.aggregate.combine(a, b))
    if case.aggregate.size is Size.HOLISTIC:
        assert copy == a, "a NaN must be found again"


def test_every_name_is_tested(cases: Any) -> None:
    kinds = {lookup(name) for name in names()}
    assert {kind for kind in kinds if not issubclass(kind, Waved)} == {lookup(case.name) for case in cases}


def _parts(state: Any) -> int:
    """How many plain values a state consists of."""
    return sum(map(_parts, state)) if isinstance(state, tuple) else 1


def _distinct(kind: t.DataType, size: int) -> list[Any]:
    """That many different values of a type."""
    makers = {
        t.STRING: str,
        t.BOOLEAN: bool,
        t.DOUBLE: float,
        t.decimal(10, 2): Decimal,
        t.decimal(38, 6): Decimal,
    }
    return [makers.get(kind, int)(number) for number in range(size)]
