"""Policies: what may be concluded from rows, whatever their order."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise
from math import nan
from typing import Any

import pytest
from hypothesis import given, strategies as st

from windrow.errors import QueryError, StateError
from windrow.windows.progress import (
    Batch,
    NoPolicy,
    Ordered,
    OrderedPer,
    Policy,
    Progress,
    Punctuated,
    Slack,
    SlackRows,
    SourceProgress,
    is_late,
)

INF = float("inf")
ROWS = st.lists(
    st.tuples(
        st.integers(-50, 50),
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(-50, 50)),
        st.booleans(),
    ),
    max_size=6,
)
HISTORIES = st.lists(st.tuples(ROWS, st.integers(0, 40)), max_size=6)
POLICIES = st.sampled_from(
    [
        NoPolicy(),
        Ordered(),
        Slack(7),
        SlackRows(0),
        SlackRows(3),
        OrderedPer(),
        OrderedPer(idle=30),
        Punctuated(),
        Punctuated(per=True),
    ]
)


def batch(rows: list[tuple[Any, ...]]) -> Batch:
    columns = tuple(zip(*rows, strict=True)) if rows else ((), (), (), ())
    return Batch(*columns)


def states(policy: Policy, history: list[tuple[list[Any], int]]) -> list[Progress]:
    found, now = [policy.start()], 1000
    for rows, wait in history:
        now += wait
        found.append(policy.observe(found[-1], batch(rows), now))
    return found


@given(POLICIES, HISTORIES)
def test_progress_never_goes_back(policy: Policy, history: Any) -> None:
    found = states(policy, history)
    for before, after in pairwise(found):
        assert after.progress >= before.progress
        assert all(after.progress_of(source) >= before.progress_of(source) for source in ("a", "b", None))


@given(POLICIES, HISTORIES, st.randoms())
def test_the_order_of_rows_in_a_batch_does_not_matter(policy: Policy, history: Any, random: Any) -> None:
    shuffled = [(random.sample(rows, len(rows)), wait) for rows, wait in history]
    written = [state.to_json() for state in states(policy, history)]
    assert written == [state.to_json() for state in states(policy, shuffled)]


@given(POLICIES, HISTORIES)
def test_progress_survives_json(policy: Policy, history: Any) -> None:
    for state in states(policy, history):
        assert Progress.from_json(json.loads(json.dumps(state.to_json(), allow_nan=False))) == state


@given(HISTORIES)
def test_ordered_is_the_greatest_value_seen(history: Any) -> None:
    seen = [t for rows, _ in history for t, _, _, only in rows if not only]
    last = states(Ordered(), history)[-1]
    assert last.progress == max(seen, default=-INF)
    assert states(Slack(7), history)[-1].progress == last.progress - 7
    assert states(SlackRows(0), history)[-1].progress == last.progress


@given(HISTORIES, st.integers(0, 4))
def test_slack_in_rows_leaves_n_accepted_rows_ahead(history: Any, n: int) -> None:
    found, accepted = states(SlackRows(n), history), []
    for before, (rows, _) in zip(found, history, strict=False):
        accepted += [t for t, _, _, only in rows if not only and t >= before.progress]
    ahead = sorted(accepted, reverse=True)
    assert found[-1].progress == (ahead[n] if len(ahead) > n else -INF)


@given(HISTORIES)
def test_ordered_per_source_waits_for_the_slowest(history: Any) -> None:
    last: dict[Any, int] = {}
    reached = -INF
    for (rows, _), state in zip(history, states(OrderedPer(), history)[1:], strict=True):
        for t, source, _, only in rows:
            if not only:
                last[source] = max(t, last.get(source, t))
        reached = max(reached, min(last.values(), default=-INF))
        assert state.progress == reached
        assert all(state.progress_of(source) == max(t, reached) for source, t in last.items())


@given(HISTORIES)
def test_progress_per_source_is_never_ahead_of_all_sources(history: Any) -> None:
    for policy in (OrderedPer(), OrderedPer(idle=30), Punctuated(per=True)):
        for state in states(policy, history):
            assert state.progress <= max((seen.progress for seen in state.sources.values()), default=-INF)


def test_no_policy_knows_only_the_end() -> None:
    state = NoPolicy().observe(NoPolicy().start(), Batch([1, 2, 3]))
    assert state.progress == -INF
    assert state.with_progress(INF).progress == INF


def test_an_idle_source_does_not_hold_the_others() -> None:
    policy = OrderedPer(idle=60)
    state = policy.observe(policy.start(), Batch([10, 4], ["a", "b"]), now=0)
    assert state.progress == 4
    state = policy.observe(state, Batch([20], ["a"]), now=59)
    assert state.progress == 4
    state = policy.observe(
        state, Batch(), now=60
    )  # b has been silent for 60 ticks; no row is needed to notice
    assert state.progress == 20
    state = policy.observe(
        state, Batch([5, 30], ["b", "a"]), now=70
    )  # b is back, late, and holds P where it is
    assert state.progress == 20
    assert is_late(Progress(20), 5, "b")


def test_when_all_are_idle_progress_stays() -> None:
    policy = OrderedPer(idle=60)
    state = policy.observe(policy.start(), Batch([10, 4], ["a", "b"]), now=0)
    assert policy.observe(state, Batch(), now=1000).progress == 4


def test_without_a_clock_no_source_is_idle() -> None:
    policy = OrderedPer(idle=60)
    state = policy.observe(policy.start(), Batch([10, 4], ["a", "b"]), now=0)
    assert policy.observe(state, Batch([99], ["a"])).progress == 4


def test_marks_are_progress_and_rows_are_not() -> None:
    policy = Punctuated()
    state = policy.observe(
        policy.start(), Batch([90, None, 91], marks=[None, 60, 50], only_mark=[False, True, False])
    )
    assert state.progress == 60


def test_a_source_without_a_mark_holds_progress_back() -> None:
    policy = Punctuated(per=True)
    state = policy.observe(policy.start(), Batch([5], ["s6"], marks=[60]))
    assert state.progress == 60
    held = policy.observe(policy.start(), Batch([5, 6], ["s6", "s7"], marks=[60, None]))
    assert (held.progress, held.progress_of("s6"), held.progress_of("s7")) == (-INF, 60, -INF)
    assert policy.observe(held, Batch([7], ["s7"], marks=[50])).progress == 50


def test_a_row_can_be_late_for_its_source_only() -> None:
    state = Progress(10, {"a": SourceProgress(20)})
    assert is_late(state, 15, "a")
    assert not is_late(state, 15, "b")
    assert is_late(state, 9, "b")
    assert not is_late(state, 20, "a")


def test_late_rows_do_not_count_for_slack_in_rows() -> None:
    policy = SlackRows(1)
    state = policy.observe(policy.start(), Batch([10, 20]))
    assert state.progress == 10
    assert policy.observe(state, Batch([1, 2, 3])) == state
    ahead = policy.start().with_progress(100)
    assert policy.observe(ahead, Batch([50, 60, 110])).largest == (110,)


def test_punctuation_set_by_hand() -> None:
    state = Progress().with_progress_of("s6", 11, at=7).with_progress_of("s6", 5, at=6)
    assert state.sources["s6"] == SourceProgress(11, 7)
    assert state.with_progress(30).progress_of("s6") == 30


@pytest.mark.parametrize("source", [None, True, 7, "s6", 2.5, nan, Decimal("1.50"), b"\x00\xff"])
def test_sources_of_every_atomic_type_survive_json(source: Any) -> None:
    state = Progress(1, {source: SourceProgress(2)})
    back = Progress.from_json(json.loads(json.dumps(state.to_json(), allow_nan=False)))
    assert back.progress_of(source) == 2
    assert [type(key) for key in back.sources] == [type(source)]


def test_sources_must_be_atomic() -> None:
    with pytest.raises(StateError, match="a source cannot be a tuple"):
        Progress(1, {(1, 2): SourceProgress()}).to_json()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Slack(-1), "SLACK must not be negative, but is -1"),
        (lambda: SlackRows(-1), "SLACK must not be negative"),
        (lambda: OrderedPer(idle=0), "IDLE must be positive"),
    ],
)
def test_policies_are_checked(make: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        make()


def test_columns_of_a_batch_have_one_length() -> None:
    with pytest.raises(ValueError, match="a column of 1 rows in a batch of 2"):
        Batch([1, 2], sources=["a"])
