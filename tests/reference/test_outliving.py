"""Results that outlive their windows: INTERNAL, WSTREAM, and what restore brings back."""

from __future__ import annotations

import pytest

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError
from windrow.testing import Harness
from windrow.windows.patterns import Pattern

STREAMS = {"s": "a BIGINT, ts BIGINT", "r": "b BIGINT, ts BIGINT"}
NRR = {"t": ("k BIGINT, v BIGINT", "NRR")}
RELATION = {"t": ("k BIGINT, v BIGINT", "RELATION")}


def run(
    query: str,
    s: list[tuple[int, int]],
    r: list[tuple[int, int]] | None = None,
    table: list[tuple[int, tuple[int, int]]] | None = None,
) -> list[tuple[str, tuple[object, ...], int]]:
    h = Harness(query, STREAMS, RELATION)
    for at, row in table or ():
        h.update("t", at, insert=[row])
    h.push("s", s)
    if r:
        h.push("r", r)
    h.finish()
    return [(change.op, change.row, change.at) for change in h.take()]


def test_a_result_stays_until_its_first_external_window_lets_go() -> None:
    query = "SELECT a FROM s [RANGE 10 INTERNAL], r [RANGE 5] WHERE a = b"
    assert run(query, s=[(1, 0)], r=[(1, 8)]) == [("+", (1,), 8), ("-", (1,), 13)]


def test_every_extent_of_a_periodic_aggregate_is_a_result_of_its_own() -> None:
    query = "SELECT SUM(a) FROM s [RANGE 5 SLIDE 5 INTERNAL]"
    assert run(query, s=[(7, 1), (7, 6)]) == [("+", (7,), 5), ("+", (7,), 10)]


def test_a_semi_join_expires_with_its_external_side() -> None:
    query = "SELECT a FROM s [RANGE 10 INTERNAL] WHERE EXISTS (SELECT 1 FROM r [RANGE 5] WHERE a = b)"
    assert run(query, s=[(1, 0)], r=[(1, 3)]) == [("+", (1,), 3), ("-", (1,), 8)]


def test_a_semi_join_does_not_multiply_its_left_side() -> None:
    query = "SELECT a FROM s [RANGE 10] WHERE EXISTS (SELECT 1 FROM r [RANGE 5 INTERNAL] WHERE a = b)"
    assert run(query, s=[(1, 0)], r=[(1, 3), (1, 9)]) == [("+", (1,), 3), ("-", (1,), 10)]


def test_unrelated_changes_of_a_table_leave_a_result_alone() -> None:
    query = "SELECT ISTREAM_RESTORE(a, v) FROM s [RANGE 5 SLIDE 10], t WHERE a = k"
    assert run(query, s=[(1, 3)], table=[(0, (1, 7)), (5, (2, 9))]) == [("+", (1, 7), 10)]
    h = Harness("SELECT a, v FROM s [RANGE 5 INTERNAL], t WHERE a = k", STREAMS, RELATION)
    h.update("t", 0, insert=[(1, 7)])
    h.update("t", 10, insert=[(2, 9)])
    h.push("s", [(1, 3)])
    h.finish()
    assert h.relation(9) == h.relation(10) == {(1, 7): 1}


def test_a_periodic_plan_reads_a_table_as_of_the_instant_before() -> None:
    for internal in ("", "INTERNAL"):
        query = f"SELECT ISTREAM(a, v) FROM s [RANGE 10 SLIDE 10 {internal}], t WHERE a = k"
        assert run(query, s=[(1, 5), (9, 30)], table=[(10, (1, 7))]) == []
        assert run(query, s=[(1, 5), (9, 30)], table=[(9, (1, 7))]) == [("+", (1, 7), 10)]


def test_wstream_windows_an_append_only_output() -> None:
    """At 13 one row replaces its equal; the output has both all the same."""
    assert run("SELECT WSTREAM(a)[RANGE 50] FROM s [RANGE 10]", s=[(1, 3), (1, 13)]) == [
        ("+", (1,), 3),
        ("+", (1,), 13),
        ("-", (1,), 53),
        ("-", (1,), 63),
    ]


def test_restore_does_not_repeat_a_value_that_did_not_change() -> None:
    query = "SELECT ISTREAM_RESTORE(COUNT(*) > 0 AS busy) FROM s [RANGE 5 SLIDE 10]"
    assert run(query, s=[(1, 1), (1, 2)]) == [("+", (True,), 10)]


def test_an_nrr_table_is_not_read_below_a_join_of_streams() -> None:
    query = """
        SELECT ISTREAM(x.a, x.v)
        FROM (SELECT a, v FROM s [RANGE 10], t WHERE a = k) x, r [RANGE 10]
        WHERE x.a = b
    """
    with pytest.raises(QueryError) as refused:
        Harness(query, STREAMS, NRR)
    assert refused.value.code == "table-below-join"


@pytest.mark.parametrize(
    ("query", "pattern", "word"),
    [
        ("SELECT a FROM s [RANGE 5 INTERNAL], r [RANGE 5 INTERNAL]", Pattern.MON, StreamWord.ISTREAM),
        ("SELECT a FROM s [RANGE 5 INTERNAL], r [RANGE 5]", Pattern.WK, StreamWord.AUTO),
        ("SELECT MAX(a) FROM s [RANGE 50 INTERNAL], r [RANGE 10]", Pattern.STR, StreamWord.AUTO),
        ("SELECT a, v FROM s [RANGE 5 INTERNAL], t WHERE a = k", Pattern.STR, StreamWord.AUTO),
    ],
)
def test_labels_know_what_still_takes_results_back(query: str, pattern: Pattern, word: StreamWord) -> None:
    plan = Harness(query, STREAMS, RELATION).plan
    assert plan.label.pattern is pattern
    assert plan.meaning is word


def test_first_and_last_go_by_arrival_where_the_window_counts_arrivals() -> None:
    rows = [(1, 5), (2, 3), (3, 4)]
    assert run("SELECT FIRST(a), LAST(a) FROM s [ROWS 3 WATTR row_num]", s=rows) == [("+", (1, 3), 5)]
    assert run("SELECT RSTREAM(FIRST(a), LAST(a)) FROM s [ROWS 3]", s=rows)[-1] == ("+", (2, 1), 5)
