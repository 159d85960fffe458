"""Who may lose windows, who may not and why, and who loses them together."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tests.shedding.asked import Nested, Size, candidate, nested, sizes

from windrow.shedding.agreement import agree, share
from windrow.shedding.rules import CannotShed, WinDrop, fan_out

COUNT = "SELECT COUNT(*) AS n FROM "

REFUSED = {
    "no-max-gap": (f"{COUNT} s [RANGE 5 SLIDE 5]", None),
    "not-sheddable": (f"{COUNT} kept [RANGE 5 SLIDE 5]", 2),
    "not-per-window": ("SELECT ISTREAM(v) FROM s [RANGE 5 SLIDE 5]", 2),
    "count-based": (f"{COUNT} s [ROWS 5 SLIDE 5 ROWS]", 2),
    "unbounded-window": (f"{COUNT} s [LANDMARK SLIDE 5]", 2),
    "different-slides": (
        "SELECT a.v FROM s [RANGE 5 SLIDE 5] AS a, r [RANGE 6 SLIDE 6] AS b WHERE a.k = b.k",
        2,
    ),
    "different-origins": (
        "SELECT a.v FROM s [RANGE 5 SLIDE 5] AS a, r [RANGE 5 SLIDE 5 ORIGIN 1] AS b WHERE a.k = b.k",
        2,
    ),
    "other-attribute": (f"{COUNT} s [RANGE 5 SLIDE 5 WATTR v]", 2),
}
MORE_REFUSED = [
    ("count-based", f"SELECT SUM(n) AS n FROM ({COUNT} s [RANGE 5 SLIDE 5]) [ROWS 3 SLIDE 3 ROWS] AS x"),
    ("count-based", f"SELECT SUM(n) AS n FROM ({COUNT} s [ROWS 5 SLIDE 5 ROWS]) [RANGE 5 SLIDE 5] AS x"),
    ("count-based", f"{COUNT} s [SESSION 5]"),
    ("unbounded-window", f"SELECT SUM(n) AS n FROM ({COUNT} s [LANDMARK SLIDE 5]) [RANGE 5 SLIDE 5] AS x"),
    ("not-per-window", f"{COUNT} s [RANGE 5]"),
    ("not-per-window", "SELECT ISTREAM_RESTORE(v) FROM s [RANGE 5 SLIDE 5]"),
]


@pytest.mark.parametrize(("code", "text", "gap"), [(c, t, g) for c, (t, g) in REFUSED.items()])
def test_a_query_that_cannot_be_shed_is_refused_with_a_reason(code: str, text: str, gap: int | None):
    with pytest.raises(CannotShed) as refusal:
        agree(candidate("q", text, gap))
    assert refusal.value.code == code
    assert refusal.value.reason


@pytest.mark.parametrize(("code", "text"), MORE_REFUSED)
def test_refusals_in_nested_queries(code: str, text: str):
    with pytest.raises(CannotShed) as refusal:
        agree(candidate("q", text, 2))
    assert refusal.value.code == code


def test_queries_over_one_stream_are_one_group():
    sharing = share(
        [
            candidate("a", Nested((Size(3, 2), Size(4, 1))).sql, 6),
            candidate("b", Nested((Size(3, 3), Size(4, 1))).sql, 4),
            candidate("c", f"{COUNT} r [RANGE 5 SLIDE 5]", 1),
            candidate("d", f"{COUNT} s [RANGE 5 SLIDE 5]", None),
        ]
    )
    assert [group.name for group in sharing.groups] == ["a, b", "c"]
    assert sharing.groups[0].drop == WinDrop(10, 6, batch=2)
    assert [(name, reason.code) for name, reason in sharing.refused] == [("d", "no-max-gap")]


def test_a_join_connects_what_its_streams_have():
    join = "SELECT a.v FROM s [RANGE 5 SLIDE 5] AS a, r [RANGE 5 SLIDE 5] AS b WHERE a.k = b.k"
    asked = [
        candidate("a", f"{COUNT} s [RANGE 5 SLIDE 5]"),
        candidate("b", f"{COUNT} r [RANGE 5 SLIDE 5]"),
        candidate("c", join),
    ]
    assert [group.name for group in share(asked).groups] == ["a, b, c"]
    assert [group.name for group in share(asked[:2]).groups] == ["a", "b"]


@pytest.mark.parametrize(
    ("other", "code"),
    [("[RANGE 7 SLIDE 7]", "small-max-gap"), ("[RANGE 5 SLIDE 5 ORIGIN 2]", "different-origins")],
)
def test_queries_without_common_slots_shed_apart(other: str, code: str):
    asked = [candidate("a", f"{COUNT} s [RANGE 5 SLIDE 5]", 1), candidate("b", f"{COUNT} s {other}", 9)]
    sharing = share(asked)
    assert [group.name for group in sharing.groups] == ["a", "b"]
    assert [(names, reason.code) for names, reason in sharing.apart] == [("a, b", code)]
    assert [group.drop.batch for group in sharing.groups] == [1, 9]


@given(st.lists(st.tuples(nested(depth=2), st.integers(1, 20)), min_size=1, max_size=4))
def test_the_group_is_the_fan_out_of_its_pipelines(asked: list[tuple[Nested, int]]):
    sharing = share(candidate(f"q{n}", query.sql, gap) for n, (query, gap) in enumerate(asked))
    for group in sharing.groups:
        assert group.drop == fan_out(*(member.drop for member in group.members))
        for member in group.members:
            assert group.drop.batch * group.drop.slide // member.grid.period <= member.max_gap


@given(sizes(), sizes(), st.integers(1, 9))
def test_a_slot_holds_whole_windows_of_every_query(one: Size, other: Size, gap: int):
    asked = [
        candidate("a", f"{COUNT} s {one.bracket}", gap),
        candidate("b", f"{COUNT} s {other.bracket}", gap),
    ]
    for group in share(asked).groups:
        cycles = group.cycles
        for member in group.members:
            ends = member.grid.instants(cycles.origin + 3 * cycles.length, cycles.origin + 4 * cycles.length)
            assert len(ends) == cycles.length // member.grid.period
            assert ends[-1] == cycles.origin + 4 * cycles.length
