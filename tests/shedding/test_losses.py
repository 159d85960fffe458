"""Who loses how much, and who is suspended."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from windrow.shedding.controller import LIMIT, Admission, Bill, Member, QueryLoad

members = st.builds(Member, st.just("q"), st.floats(0.5, 0.95), st.integers(-2, 3), st.floats(0.01, 5))
bills = st.builds(
    lambda each, rows, early: Bill(
        tuple(Member(f"q{n}", m.most, m.priority, m.cost) for n, m in enumerate(each)), rows, early
    ),
    st.lists(members, min_size=1, max_size=5),
    st.floats(0, 10),
    st.floats(0, 1),
)


@given(bills, st.floats(0, 1))
def test_enough_is_saved_and_no_more(bill: Bill, wanted: float):
    losses = bill.losses(wanted)
    saved = bill.saved([losses[member.name] for member in bill.members])
    assert saved >= min(wanted, bill.most) - 1e-6
    assert saved <= wanted + 1e-6
    assert all(0 <= losses[member.name] <= member.most for member in bill.members)


@given(bills, st.floats(0, 1))
def test_the_important_lose_less(bill: Bill, wanted: float):
    losses = bill.losses(wanted)
    for one in bill.members:
        for other in bill.members:
            if one.priority < other.priority and losses[one.name] < one.most:
                assert losses[other.name] <= losses[one.name] + 1e-9


@given(st.lists(st.floats(0.5, 0.9), min_size=2, max_size=4), st.floats(0, 0.4))
def test_equals_lose_the_same(most: list[float], wanted: float):
    bill = Bill(tuple(Member(f"q{n}", limit) for n, limit in enumerate(most)))
    losses = sorted(bill.losses(wanted).values())
    assert losses[-1] - losses[0] < 1e-9


def run(admission: Admission, others: float, queries: list[QueryLoad], epochs: int) -> Admission:
    for _ in range(epochs):
        admission = admission.after(others, queries)
    return admission


def test_the_costliest_of_the_least_important_goes_first():
    queries = [
        QueryLoad("a", 1.0, 0.5, 1),
        QueryLoad("b", 0.9, 0.5),
        QueryLoad("c", 1.2, 0.5),
        QueryLoad("d", 0.2, 0.5, 5),
    ]
    first = run(Admission(), 0.0, queries, 3)
    assert first.suspended == ("c",)
    assert run(first, 0.0, queries, 3).suspended == ("c", "b")


def test_nobody_goes_for_a_short_peak():
    queries = [QueryLoad("a", 3.0, 0.5)]
    admission = run(Admission(), 0.0, queries, 2)
    admission = run(admission, 0.0, [QueryLoad("a", 0.5, 0.5)], 1)
    assert run(admission, 0.0, queries, 2).suspended == ()


def test_they_come_back_one_by_one_the_important_first():
    heavy = [QueryLoad("a", 2.4, 0.5, 1), QueryLoad("b", 2.4, 0.5)]
    away = run(Admission(), 0.2, heavy, 30)
    assert away.suspended == ("b", "a")
    light = [QueryLoad("a", 0.4, 0.5, 1), QueryLoad("b", 0.4, 0.5)]
    assert run(away, 0.2, light, 5).suspended == ("b", "a")
    assert run(away, 0.2, light, 6).suspended == ("b",)
    assert run(away, 0.2, light, 12).suspended == ()


@given(st.floats(0, 2), st.lists(st.tuples(st.floats(0, 2), st.floats(0.5, 0.9)), max_size=5))
def test_under_a_constant_load_it_comes_to_rest(others: float, each: list[tuple[float, float]]):
    queries = [QueryLoad(f"q{n}", load, most) for n, (load, most) in enumerate(each)]
    settled = run(Admission(), others, queries, 100)
    assert run(settled, others, queries, 60).suspended == settled.suspended
    fits = settled.least(others, queries) <= LIMIT
    assert fits or len(settled.suspended) == len(queries)


@pytest.mark.parametrize("load", [0.75, 0.85, 0.95])
def test_between_the_thresholds_nothing_changes(load: float):
    """Whoever runs goes on, whoever waits goes on waiting."""
    queries = [QueryLoad("a", 2 * load, 0.5)]
    assert run(Admission(), 0.0, queries, 50).suspended == ()
    assert run(Admission(("a",)), 0.0, queries, 50).suspended == ("a",)


def test_a_query_that_is_gone_is_forgotten():
    assert Admission(("gone",)).after(0.0, []).suspended == ()
