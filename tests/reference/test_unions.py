"""UNION ALL at the top of a query, or of a nested one under a window, is a union of streams: each branch has
its own clock, reporting instants, bounds and last report.

Oracle, kernels and engine are held against a few lines that know nothing but rows, RANGE and SLIDE. Random
branches on the engine are in `tests.spark.test_relational`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from tests.reference.test_bounds import CATALOG, Answers, Rows, Shape, histories, reports, selected, shapes

from windrow.algebra.plan import Emit, StreamUnion, StreamWord
from windrow.algebra.values import Change
from windrow.engine.explain import declared, explain
from windrow.errors import QueryError
from windrow.language.compile import compile_once, compile_query
from windrow.language.printer import print_query
from windrow.testing import Harness

STREAMS = dict.fromkeys(("t", "u"), ("k BIGINT, ts BIGINT", "ORDERED"))
EXECUTORS = ["reference", "kernels", "engine"]

any_executor = pytest.mark.parametrize("executor", EXECUTORS)


def with_bounds(shape: Shape) -> str:
    return f"SELECT window_start AS a, window_end AS b, k FROM t [RANGE {shape[0]} SLIDE {shape[1]}]"


def told(text: str, executor: str, *steps: tuple[str, Any]) -> list[tuple[Any, ...]]:
    """`at` and row of all changes; a step is a stream and its rows."""
    harness = Harness(text, STREAMS, executor=executor)
    for stream, rows in steps:
        harness.push(stream, rows)
    return [(change.at, *change.row) for change in harness.take()]


@any_executor
@settings(max_examples=25)
@given(one=shapes, other=shapes, rows=histories)
def test_each_branch_reports_its_own_extents(executor: str, one: Shape, other: Shape, rows: Rows) -> None:
    expected: Answers = Counter()
    for shape in (one, other):
        for at in reports((shape,)):
            expected.update((at, row) for row in selected(shape, rows, at))
    harness = Harness(f"{with_bounds(one)} UNION ALL {with_bounds(other)}", STREAMS, executor=executor)
    harness.push("t", sorted(rows, key=lambda row: row[1]))
    harness.finish()
    assert Counter((change.at, change.row) for change in harness.take()) == expected


@any_executor
def test_a_branch_waits_for_no_other(executor: str) -> None:
    text = "SELECT COUNT(*) AS n FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT COUNT(*) FROM u [RANGE 5 SLIDE 5]"
    assert told(text, executor, ("t", [(1, 0), (1, 12)])) == [(5, 1)]
    assert told(text, executor, ("t", [(1, 0), (1, 12)]), ("u", [(1, 7), (1, 10)])) == [(5, 1), (10, 1)]


@any_executor
def test_a_branch_has_its_own_last_report(executor: str) -> None:
    """What a LANDMARK window holds never leaves: it is reported until its own input ends."""
    text = "SELECT COUNT(*) AS n FROM t [LANDMARK SLIDE 5] UNION ALL SELECT COUNT(*) FROM u [RANGE 2 SLIDE 2]"
    harness = Harness(text, STREAMS, executor=executor)
    harness.push("t", [(1, 1)])
    harness.push("u", [(1, 20)])
    harness.finish()
    assert [(change.at, *change.row) for change in harness.take()] == [(5, 1), (22, 1)]


@any_executor
def test_equal_rows_of_two_branches_are_not_netted(executor: str) -> None:
    """At 5 the row leaves one window and enters another."""
    text = "SELECT ISTREAM(k) FROM t [RANGE 5] UNION ALL SELECT ISTREAM(k) FROM u [RANGE 5]"
    steps = ("t", [(7, 0), (8, 20)]), ("u", [(7, 5), (8, 20)])
    assert told(text, executor, *steps) == [(0, 7), (5, 7)]


@any_executor
def test_words_may_differ_from_branch_to_branch(executor: str) -> None:
    text = (
        "SELECT ISTREAM(k) FROM t [RANGE 5] UNION ALL SELECT DSTREAM(k) FROM t [RANGE 5]"
        " UNION ALL SELECT RSTREAM(k) FROM t [RANGE 5 SLIDE 4]"
    )
    expected = [(0, 7), (4, 7), (5, 7), (6, 9), (8, 9), (11, 9)]
    assert told(text, executor, ("t", [(7, 0), (9, 6), (8, 20)])) == expected


@any_executor
def test_nested_under_a_window_each_branch_has_its_own_instants(executor: str) -> None:
    """Rows of the periodic branch are of E-1, those of the other of their `at`."""
    nested = "SELECT RSTREAM(COUNT(*) AS n) FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT ISTREAM(k) FROM u [NOW]"
    text = f"SELECT ISTREAM(n) FROM ({nested}) [NOW] x"
    steps = ("t", [(1, 0), (1, 9)]), ("u", [(7, 2), (8, 6), (9, 9)])
    assert told(text, executor, *steps) == [(2, 7), (4, 1), (6, 8)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]", ["", ""]),
        ("SELECT ISTREAM(k) FROM t [NOW] UNION ALL SELECT ISTREAM(k) FROM u [NOW]", ["ISTREAM", "ISTREAM"]),
        ("SELECT RSTREAM(k) FROM t [NOW] UNION ALL SELECT DSTREAM(k) FROM u [NOW]", ["RSTREAM", "DSTREAM"]),
    ],
)
def test_a_union_of_streams_keeps_the_words_of_its_branches(text: str, words: list[str]) -> None:
    plan = compile_query(text, declared(STREAMS, {}))
    assert [branch.word.value for branch in plan.branches] == words
    assert not plan.emits_deletions
    assert compile_query(print_query(plan), declared(STREAMS, {})) == plan


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [NOW]",
        "SELECT k FROM t [RANGE 5] UNION ALL SELECT k FROM u [RANGE 5]",
        "SELECT k FROM (SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]) x",
        "SELECT DISTINCT k FROM"
        " (SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]) x",
        "(SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2])"
        " EXCEPT ALL SELECT k FROM t [RANGE 1 SLIDE 1]",
    ],
)
def test_unions_of_relations(text: str) -> None:
    plan = compile_query(text, declared(STREAMS, {}))
    assert plan.branches == (plan,)
    assert not any(isinstance(node, StreamUnion) for node in plan.walk())


def test_a_select_by_itself_asks_for_one_relation() -> None:
    once = compile_once(
        "SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]", declared(STREAMS, {})
    )
    assert once.plan.branches == (once.plan,)
    assert once.plan.word is StreamWord.RSTREAM


def test_columns_are_called_as_in_the_first_branch() -> None:
    text = (
        "SELECT k AS a FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT DISTINCT ts FROM u [RANGE 2 SLIDE 2]"
        " UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]"
    )
    plan = compile_query(text, declared(STREAMS, {}))
    assert {branch.schema.names for branch in plan.branches} == {("a",)}
    assert compile_query(print_query(plan), declared(STREAMS, {})) == plan


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ISTREAM(k) FROM t [NOW] UNION ALL SELECT k FROM u [NOW]",
        "SELECT k FROM t [NOW] UNION ALL SELECT k FROM t [NOW] UNION ALL SELECT ISTREAM(k) FROM u [NOW]",
        "SELECT ISTREAM(k) FROM t [NOW] EXCEPT ALL SELECT RSTREAM(k) FROM u [NOW]",
        "(SELECT ISTREAM(k) FROM t [NOW] UNION ALL SELECT RSTREAM(k) FROM t [NOW])"
        " EXCEPT ALL SELECT ISTREAM(k) FROM u [NOW]",
    ],
)
def test_a_word_on_some_branches_only_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as error:
        compile_query(text, CATALOG.copy() if "u" not in text else declared(STREAMS, {}))
    assert error.value.code == "set-words"
    assert error.value.span is not None


def test_a_registered_union_is_read_as_what_it_is() -> None:
    catalog = declared(STREAMS, {})
    whole = compile_query(
        "SELECT k FROM t [RANGE 5 SLIDE 5] UNION ALL SELECT k FROM u [RANGE 2 SLIDE 2]", catalog
    )
    assert isinstance(whole, Emit)
    shown = str(explain(print_query(whole), STREAMS))
    assert "UNION ALL of streams, each with a clock of its own" in shown
    assert "branch 1, by the clock of t" in shown
    assert "branch 2, by the clock of u" in shown


def test_changes_are_told_in_order() -> None:
    harness = Harness(f"{with_bounds((5, 5))} UNION ALL {with_bounds((2, 2))}", STREAMS, executor="engine")
    harness.push("t", [(1, 0), (2, 3), (3, 30)])
    found = harness.take()
    assert found == sorted(found, key=lambda change: change.place)
    assert Change("+", (0, 5, 1), 5) in found
