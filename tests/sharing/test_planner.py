"""What is shared with whom, by which rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sharing.queries import packets

from windrow.sharing.planner import Planner, share
from windrow.sharing.rules import SharingPlan
from windrow.sharing.synopses import SharedGrid, SynopsisKind

#: the thesis' six queries of 8.3.3
SIX = {
    "Q1": "SUM(length) AS a FROM S {w} WHERE protocol = 'TCP'",
    "Q2": "SUM(length) AS a FROM S {w} WHERE protocol = 'UDP'",
    "Q3": "SUM(length) AS a FROM S {w} WHERE protocol = 'TCP' OR protocol = 'UDP'",
    "Q4": "MAX(length) AS a FROM S {w} WHERE protocol = 'TCP'",
    "Q5": "MAX(length) AS a FROM S {w} WHERE user = 'U'",
    "Q6": "MAX(length) AS a FROM S {w} WHERE protocol = 'TCP' OR user = 'U'",
}
TEN = "[RANGE 10 MINUTES SLIDE 1 MINUTE]"


def six(name: str, window: str = TEN) -> Any:
    return packets("SELECT " + SIX[name].format(w=window))


def data_of(plan: SharingPlan, query: str) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """For each datum, the first users of the synopses that are combined, and of those subtracted."""

    def where(name: str) -> str:
        return plan.users[name][0]

    return {
        need.datum.text: (
            tuple(sorted(where(name) for name in relevant.added)),
            tuple(sorted(where(name) for name in relevant.subtracted)),
        )
        for need, relevant in plan.shares[query].recipes.items()
    }


def text_of(plan: SharingPlan, synopsis: str) -> str:
    return plan.synopses[synopsis].family.datum.text


def came(*names: str) -> SharingPlan:
    planner = Planner()
    for name in names:
        planner.add({name: six(name)})
    return planner.plan()


def test_two_sums_cover_the_third() -> None:
    plan = came("Q1", "Q2", "Q3")
    assert data_of(plan, "Q3")["total of length"] == (("Q1", "Q2"), ())
    assert all("SS4" in rules for rules in plan.shares["Q3"].rules.values())
    assert len(plan.synopses) == 6, "rows, count and total, of TCP and of UDP"


def test_a_sum_is_the_difference_of_two_others() -> None:
    plan = came("Q3", "Q2", "Q1")
    assert data_of(plan, "Q1")["total of length"] == (("Q3",), ("Q2",))


def test_maxima_need_no_disjoint_cover() -> None:
    plan = came("Q4", "Q5", "Q6")
    assert data_of(plan, "Q6")["greatest of length"] == (("Q4", "Q5"), ())
    assert "SS4" in {rule for rules in plan.shares["Q6"].rules.values() for rule in rules}


def test_a_count_over_conditions_that_overlap_is_not_covered() -> None:
    counted = "SELECT COUNT(length) AS n FROM S " + TEN + " WHERE "
    conditions = ["protocol = 'TCP'", "user = 'U'", "protocol = 'TCP' OR user = 'U'"]
    planner = Planner()
    for number, condition in enumerate(conditions):
        planner.add({f"q{number}": packets(counted + condition)})
    assert data_of(planner.plan(), "q2")["count of length"] == (("q2",), ())


def test_synopses_get_as_long_as_it_takes_for_a_query_that_combines_them() -> None:
    planner = Planner()
    planner.add({name: six(name) for name in ("Q4", "Q5")})
    planner.add({"Q6": six("Q6", "[RANGE 11 MINUTES SLIDE 1 MINUTE]")})
    plan = planner.plan()
    assert data_of(plan, "Q6")["greatest of length"] == (("Q4", "Q5"), ())
    assert {held.b for held in plan.synopses.values()} == {11}


def test_candidates_go_together_with_the_query_that_combines_them() -> None:
    plan = came("Q1", "Q2", "Q3")
    for query in ("Q1", "Q2", "Q3"):
        assert all("CS6" in rules for rules in plan.shares[query].rules.values())


def test_windows_of_all_lengths_share_one_synopsis() -> None:
    """The thesis' seven queries of 8.4.3: MAX on one basic interval synopsis with s = 1 minute."""
    sizes = [(10, 2), (5, 2), (6, 2), (15, 3), (12, 3), (20, 5), (30, 5)]
    text = "SELECT MAX(length) AS most FROM S [RANGE {} MINUTES SLIDE {} MINUTES]"
    queries = {f"Q{n}": packets(text.format(*size)) for n, size in enumerate(sizes, start=1)}
    plan = share(queries)
    (most,) = (held for name, held in plan.synopses.items() if text_of(plan, name) == "greatest of length")
    assert (most.grid, most.b) == (SharedGrid(60_000_000), 30)
    assert len(plan.users[most.name]) == 7
    assert all(share.rules[most.name][0] == "SS1" for share in plan.shares.values())


def test_enough_queries_at_a_time_make_a_basic_interval_synopsis() -> None:
    text = "SELECT src, MAX(delay) AS most FROM S [RANGE {} SECONDS SLIDE 1 SECOND] GROUP BY src"

    def planned(count: int) -> SharingPlan:
        return share({f"q{n}": packets(text.format(64 - n)) for n in range(count)})

    def kind(plan: SharingPlan) -> SynopsisKind:
        found = [held.kind for name, held in plan.synopses.items() if "greatest" in text_of(plan, name)]
        return found[0]

    assert kind(planned(10)) is SynopsisKind.INTERVAL
    plan = planned(42)
    assert kind(plan) is SynopsisKind.BASIC
    assert "shares synopsis p2 with 41 queries by SS1, CS2" in plan.lines("q7")
    assert all("CS2" in share.rules["p2"] for share in plan.shares.values())


def test_an_average_takes_the_totals_and_counts_of_others() -> None:
    text = "SELECT {}(length) AS a FROM S " + TEN
    planner = Planner()
    planner.add({name: packets(text.format(name)) for name in ("sum", "count")})
    before = set(planner.plan().synopses)
    planner.add({"avg": packets(text.format("avg"))})
    plan = planner.plan()
    assert set(plan.synopses) == before
    rules = {rule for each in plan.shares["avg"].rules.values() for rule in each}
    assert {"SS2", "CS3"} <= rules
    assert {held.kind for held in plan.synopses.values()} == {SynopsisKind.RUNNING}


def test_the_same_query_less_often_takes_the_answers() -> None:
    text = "SELECT SUM(length) AS a FROM S [RANGE 10 MINUTES SLIDE {} MINUTES]"
    plan = share({"often": packets(text.format(1)), "rarely": packets(text.format(5))})
    assert all("CS8" in rules for share in plan.shares.values() for rules in share.rules.values())


def test_what_is_different_is_not_shared() -> None:
    texts = {
        "other grouping": "SELECT user, SUM(length) AS a FROM S {w} GROUP BY user",
        "other column": "SELECT src, SUM(delay) AS a FROM S {w} WHERE delay > 1 GROUP BY src",
        "one": "SELECT src, SUM(length) AS a FROM S {w} GROUP BY src",
        "other stream": "SELECT src, SUM(length) AS a FROM T {w} GROUP BY src",
    }
    plan = share({name: packets(text.format(w=TEN)) for name, text in texts.items()})
    assert {len(users) for users in plan.users.values()} == {1}
    assert all("for itself" in line for name in texts for line in plan.lines(name))


def test_the_same_question_in_other_words_is_shared() -> None:
    texts = [
        "SELECT src, SUM(length) AS a FROM S {w} WHERE length > 99"
        " AND protocol IN ('UDP', 'TCP') GROUP BY src",
        "SELECT p.src AS who, SUM(p.length) AS b FROM S {w} AS p WHERE NOT p.length < 100"
        " AND (p.protocol = 'TCP' OR p.protocol = 'UDP') GROUP BY p.src",
    ]
    plan = share({f"q{n}": packets(text.format(w=TEN)) for n, text in enumerate(texts)})
    assert {len(users) for users in plan.users.values()} == {2}


def test_finer_intervals_are_only_for_the_queries_that_need_them() -> None:
    text = "SELECT MAX(length) AS a FROM S [RANGE {} SECONDS SLIDE {} SECONDS]"
    sizes = [(600, 60), (300, 30), (120, 60), (21, 7)]
    plan = share({f"q{n}": packets(text.format(*size)) for n, size in enumerate(sizes)})
    widths = {held.grid.width // 1_000_000 for held in plan.synopses.values()}
    assert widths == {30, 7}


def test_a_filter_clause_shares_with_a_where_clause() -> None:
    plan = share(
        {
            "where": packets(f"SELECT SUM(length) AS a FROM S {TEN} WHERE protocol = 'TCP'"),
            "filter": packets(f"SELECT SUM(length) FILTER (WHERE protocol = 'TCP') AS a FROM S {TEN}"),
        }
    )
    shared = [name for name, users in plan.users.items() if len(users) == 2]
    assert {plan.synopses[name].family.datum.text for name in shared} == {
        "count of length",
        "total of length",
    }  # type: ignore[attr-defined]


def test_queries_go_and_leave_what_others_use() -> None:
    planner = Planner()
    for name in ("Q1", "Q2", "Q3"):
        planner.add({name: six(name)})
    before = set(planner.plan().synopses)
    planner.drop("Q1")
    assert set(planner.plan().synopses) == before, "Q3 still combines them"
    planner.drop("Q3")
    left = planner.plan()
    assert set(left.users.values()) == {("Q2",)}
    planner.drop("Q2")
    assert not planner.plan().synopses


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT SUM(length) AS a FROM S [LANDMARK SLIDE 1 MINUTE]", "a landmark window"),
        ("SELECT length FROM S [RANGE 1 MINUTE]", "kernels do not run"),
        (
            "SELECT COUNT(*) AS n FROM S [RANGE 1 MINUTE], T [RANGE 1 MINUTE] WHERE S.src = T.src",
            "kernels do not run",
        ),
        ("SELECT SUM(CAST(src AS INT)) AS a FROM S " + TEN, "an expression may fail"),
        (
            "SELECT SUM(length) AS a FROM S [RANGE 1 HOUR SLIDE 7000001 MICROSECONDS]",
            "its windows would be cut",
        ),
    ],
)
def test_why_a_query_shares_nothing(text: str, reason: str) -> None:
    plan = share({"q": packets(text)})
    (line,) = plan.lines("q")
    assert line.startswith(f"shares nothing: {reason}")
