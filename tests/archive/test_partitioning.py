"""How even the parts are, and who is touched: Theorem 4.1, by counting."""

from __future__ import annotations

import random
from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from windrow.archive.declaration import ALLOCATIONS, Declaration, DoublyPartitioned


def sizes(cut: DoublyPartitioned, span: int, now: int, rate: list[int] | None = None) -> list[int]:
    """Rows of each sub-index after the update of period `now`: lives are uniform, from 1 to `span` periods.

    One row of each length of life comes in each period, or as many as `rate` says.
    """
    found = [0] * cut.count
    for inserted in range(now - span + 1, now + 1):
        for expires in range(now + 1, inserted + span + 1):
            found[cut.place(inserted, expires)] += rate[inserted] if rate else 1
    return found


def variance(cut: DoublyPartitioned, span: int, now: int, rate: list[int] | None = None) -> Fraction:
    """As the appendix has it: the sum of the squares, not their mean."""
    found = sizes(cut, span, now, rate)
    mean = Fraction(sum(found), len(found))
    return sum(((size - mean) ** 2 for size in found), Fraction(0))


@pytest.mark.parametrize("side", [2, 3, 4, 5])
@pytest.mark.parametrize("times", [2, 3, 4, 6])
def test_round_robin_varies_less_than_chronological_by_theorem_4_1(side: int, times: int) -> None:
    """By turns, sizes vary less than one piece after the other, averaged over all updates of a cycle.

    The lemmas of Appendix A print other variances. That of the chronological index holds for n = 4 only, as
    it has all sub-indices change at every update; that of the other is too large: it is p²(n-1)/4n.
    """
    span, count = side * times, side * side
    average = {
        name: sum(
            variance(DoublyPartitioned(side, side, span, name), span, now) for now in range(span, 2 * span)
        )
        / span
        for name in ("round-robin", "chronological")
    }
    assert average["round-robin"] < average["chronological"]
    assert average["round-robin"] == Fraction(span**2 * (count - 1), 4 * count)


def test_with_one_period_per_part_there_is_no_difference() -> None:
    cuts = [DoublyPartitioned(3, 3, 3, name) for name in ("round-robin", "chronological")]
    assert sizes(cuts[0], 3, 8) == sizes(cuts[1], 3, 8)


def test_a_rate_in_step_with_the_turns_is_broken_by_shuffling() -> None:
    """Section 4.3.3: slow and bursty periods by turns are the worst for two parts by turns."""
    span = 16
    rate = [10 if period % 2 else 1 for period in range(6 * span)]
    average = {
        name: fmean(
            float(variance(DoublyPartitioned(2, 2, span, name), span, now, rate))
            for now in range(2 * span, 6 * span)
        )
        for name in ("round-robin", "shuffled")
    }
    assert average["shuffled"] < average["round-robin"] / 4


def test_a_rate_that_changes_for_good_is_soon_spread() -> None:
    """After a rate has risen tenfold, sizes by turns are even again while chronological ones differ."""
    span, change = 16, 40
    rate = [1] * change + [10] * 60
    for now in range(change + 4, change + span):
        by_turns, in_order = (
            variance(DoublyPartitioned(2, 2, span, name), span, now, rate)
            for name in ("round-robin", "chronological")
        )
        assert by_turns < in_order


@given(
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 30),
    st.sampled_from(sorted(ALLOCATIONS)),
    st.integers(-100, 100),
    st.integers(1, 30),
)
def test_rows_are_where_updates_look_for_them(
    insertions: int, expiries: int, span: int, name: str, period: int, life: int
) -> None:
    cut = DoublyPartitioned(insertions, expiries, span, name)
    place = cut.place(period, period + life)
    assert place in cut.inserting(period)
    assert place in cut.expiring(period + life)
    assert len(cut.touched(period)) == insertions + expiries - 1
    told = Declaration("k", 9, 1, cut)
    assert Declaration.from_json(told.to_json()) == told


@given(st.integers(1, 6), st.integers(0, 50))
def test_shuffled_turns_are_turns(parts: int, turn: int) -> None:
    """In each round every part has one."""
    deal = ALLOCATIONS["shuffled"]
    assert sorted(deal(turn * parts + place, parts, 99) for place in range(parts)) == list(range(parts))


def test_shuffling_does_not_depend_on_the_state_of_chance() -> None:
    deal = ALLOCATIONS["shuffled"]
    before = [deal(period, 4, 16) for period in range(40)]
    random.seed(1)
    assert [deal(period, 4, 16) for period in range(40)] == before
