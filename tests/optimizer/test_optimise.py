"""The optimiser as a whole: rules by name, a fixpoint, and reasons to leave a query alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.optimizer.strategies import queries
from tests.support.optimised import optimise
from tests.support.plans import STREAMS

from windrow.algebra.expressions import Literal, WindowBound
from windrow.algebra.functions import call
from windrow.algebra.operators import Filter, Join, Project, Union
from windrow.algebra.plan import Emit, Scan, StreamWord, Subquery, Window
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.optimizer.costs import total_cost
from windrow.optimizer.optimizer import ALTERNATIVES, RULES, normalise, reports_alike
from windrow.windows.ranges import RangeWindow

pytestmark = pytest.mark.deep

A, B = (Scan(stream, alias) for stream, alias in zip(STREAMS, "ab", strict=True))
SAME = call("=", [A.schema.column("a.k"), B.schema.column("b.k")])
LARGE = call(">", [A.schema.column("a.v"), Literal(1, BIGINT)])


def query() -> Emit:
    joined = Join((Window(A, RangeWindow(5)), Window(B, RangeWindow(5))), SAME)
    return Emit(Project(Filter(joined, LARGE), (("v", B.schema.column("b.v")),)))


def test_conditions_and_columns_go_below_the_windows() -> None:
    found = optimise(query())
    left, right = found.plan.leaves
    assert left.input == Project(Filter(A, LARGE), (("a.k", A.schema.column("a.k")),))
    assert right.schema.names == ("b.k", "b.v")
    assert found.fired == ("push_filters", "prune_columns")


def test_a_rule_can_be_left_out_by_name() -> None:
    found = optimise(query(), disabled=["push_filters"])
    assert found.fired == ("prune_columns",)
    assert any(isinstance(node, Filter) and isinstance(node.input, Join) for node in found.plan.walk())


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(QueryError, match="did you mean `push_filters`"):
        optimise(query(), disabled=["push_filter"])


def test_names_are_unique_and_are_those_of_the_functions() -> None:
    names = [name for name, _ in (*RULES, *ALTERNATIVES)]
    assert len(set(names)) == len(names)
    assert [rule.__name__ for _, rule in RULES] == [name for name, _ in RULES]


@settings(max_examples=25)
@given(queries(depth=3))
def test_rules_come_to_an_end(plan: Emit) -> None:
    once = normalise(plan).plan
    assert normalise(once).fired == ()


@settings(max_examples=25)
@given(queries(depth=2))
def test_an_alternative_is_taken_only_if_it_is_cheaper(plan: Emit) -> None:
    found = optimise(plan)
    steps = [name for name in found.fired if name in dict(ALTERNATIVES)]
    before, after = total_cost(normalise(plan).plan), total_cost(found.plan)
    assert after < before if steps else after == before


def test_nested_queries_are_optimised_too() -> None:
    inner = Emit(Project(Filter(Window(A, RangeWindow(4, 4)), LARGE), (("k", A.schema.column("a.k")),)))
    stream = Subquery(inner, "q")
    plan = optimise(Emit(Window(stream, RangeWindow(8)))).plan
    (window,) = [node for node in plan.walk() if isinstance(node, Window) and node.streams]
    assert isinstance(window.input, Project)
    assert isinstance(window.input.input, Filter)


def test_a_condition_enters_a_nested_query_that_reports_extents_but_not_one_that_repeats_itself() -> None:
    def outer(word: StreamWord, slide: int | None) -> Emit:
        inner = Emit(Project(Window(A, RangeWindow(4, slide)), (("v", A.schema.column("a.v")),)), word)
        stream = Subquery(inner, "q")
        test = call("=", [stream.schema.column("q.v"), Literal(1, BIGINT)])
        return optimise(Emit(Filter(Window(stream, RangeWindow(8)), test))).plan

    def stays_outside(plan: Emit) -> bool:
        return isinstance(plan.leaves[0].input, Filter)

    assert not stays_outside(outer(StreamWord.RSTREAM, 2))
    assert not stays_outside(outer(StreamWord.ISTREAM, None))
    assert stays_outside(outer(StreamWord.RSTREAM, None))


def test_bounds_of_extents_never_move() -> None:
    window = Window(A, RangeWindow(6, 2))
    late = call(">", [WindowBound("window_start", BIGINT), Literal(3, BIGINT)])
    plan = Emit(Filter(window, call("and", [late, LARGE])))
    found = optimise(plan).plan
    assert found == Emit(Filter(Window(Filter(A, LARGE), RangeWindow(6, 2)), late))


def test_a_plan_that_would_report_otherwise_is_recognised() -> None:
    periodic = Emit(Window(A, RangeWindow(6, 2)))
    assert reports_alike(periodic, periodic)
    assert not reports_alike(periodic, Emit(Window(A, RangeWindow(6))))
    assert not reports_alike(periodic, Emit(Window(A, RangeWindow(6, 2)), StreamWord.ISTREAM))


def test_a_union_of_selections_becomes_one_window_over_narrow_streams() -> None:
    parts = [
        Project(Filter(Window(scan, RangeWindow(9)), test), (("v", scan.schema.column(f"{alias}.v")),))
        for scan, alias, test in ((A, "a", LARGE), (B, "b", call("is_not_null", [B.schema.column("b.k")])))
    ]
    found = optimise(Emit(Union(tuple(parts)))).plan
    assert isinstance(found.input, Window)
    assert isinstance(found.input.input, Union)
    for part in found.input.input.inputs:
        assert isinstance(part, Project)
        assert isinstance(part.input, Filter)
