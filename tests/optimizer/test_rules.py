"""Every rule leaves the answers of the oracle as they are: on plans of its own shape, and on any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import strategies as st
from tests.optimizer.checking import check, late_worlds
from tests.optimizer.shapes import keeping_late_rows, nested_joins, roundabout, trivial, with_constants
from tests.optimizer.strategies import any_window, few, internal, logical, one_slide, physical, queries
from tests.support.optimised import optimise
from tests.support.plans import plans

from windrow.algebra.plan import Emit, Plan, StreamWord
from windrow.optimizer.optimizer import RULES, reports_alike
from windrow.optimizer.trees import as_query

pytestmark = pytest.mark.deep

BY_NAME = dict(RULES)
RESTORE = (StreamWord.ISTREAM_RESTORE, StreamWord.RSTREAM_RESTORE)
RELATIONAL = ("filter", "rename", "union", "distinct", "group", "join", "exists", "except", "limit")
WITHOUT_NEGATION = ("filter", "rename", "union", "group", "join")

#: plans in which a rule has something to do
SHAPES: dict[str, st.SearchStrategy[Emit]] = {
    "fold_constants": with_constants(),
    "simplify_predicates": roundabout(),
    "remove_trivial": trivial(),
    "merge_projects": queries(operators=("rename", "join"), top="rename"),
    "merge_filters": queries(operators=("filter",), top="filter", depth=3),
    "flatten_unions": queries(operators=("union",), top="union"),
    "flatten_joins": nested_joins(),
    "push_filters": queries(top="filter"),
    "merge_windows": queries(few, operators=("union",), top="union", depth=1),
    "prune_columns": queries(),
}


def only(name: str) -> Callable[[Emit], Iterable[Plan]]:
    return lambda plan: [BY_NAME[name](plan)]


def every(plan: Emit) -> Iterable[Plan]:
    """What each rule makes of the plan, if the optimiser would take it."""
    found = [as_query(rule(plan)) for rule in BY_NAME.values()]
    return [other for other in found if reports_alike(plan, other)]


def test_every_rule_has_a_shape_of_its_own() -> None:
    assert SHAPES.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_rule_keeps_the_answers_where_it_fires(name: str) -> None:
    check(only(name), SHAPES[name], share=0.05)


@pytest.mark.parametrize("specs", [logical, physical, any_window])
def test_conditions_move_through_any_window(specs: Callable[[str], st.SearchStrategy]) -> None:
    check(
        only("push_filters"), queries(specs, operators=("filter", "group", "join"), top="filter"), share=0.05
    )


def test_all_rules_on_the_plans_of_all_tests() -> None:
    check(every, plans())


def test_all_rules_over_internal_windows() -> None:
    check(every, queries(internal, WITHOUT_NEGATION))


@pytest.mark.parametrize("word", RESTORE)
def test_all_rules_under_restore(word: StreamWord) -> None:
    check(every, st.integers(1, 4).flatmap(lambda slide: queries(one_slide(slide), RELATIONAL, word=word)))


def test_all_rules_where_late_rows_are_kept() -> None:
    check(every, queries(logical, RELATIONAL).map(keeping_late_rows), worlds=late_worlds())


def test_the_optimised_plan_gives_the_same_answers() -> None:
    check(lambda plan: [optimise(plan).plan], queries(depth=3), tried=40)
