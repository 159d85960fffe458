"""Every alternative gives the answers of the plan it is an alternative to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from tests.optimizer.checking import check, late_worlds
from tests.optimizer.shapes import (
    distinct_joins,
    keeping_late_rows,
    negations,
    sliding_aggregates,
    table_joins,
    three_way_joins,
    united_streams,
)
from tests.optimizer.strategies import internal, one_slide, queries
from tests.support.plans import STREAMS, TABLES, plans

from windrow.algebra.catalog import TableKind
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Exists, Join, Project, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, TableScan, Window
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.optimizer.flows import Statistics
from windrow.optimizer.move_negation import pull_up_negation
from windrow.optimizer.move_tables import push_down_tables
from windrow.optimizer.optimizer import ALTERNATIVES, alternatives
from windrow.windows.ranges import RangeWindow

pytestmark = pytest.mark.deep

#: rates that make the thesis' heuristic change an order
UNEVEN = Statistics(rates={"s1": 9.0, "s2": 1.0}, distinct={"s1.k": 40, "s2.k": 3})

SHAPES: dict[str, st.SearchStrategy[Emit]] = {
    "push_down_negation": negations(low=False),
    "pull_up_negation": negations(low=True),
    "push_down_tables": table_joins(low=False),
    "pull_up_tables": table_joins(low=True),
    "push_distinct": distinct_joins(),
    "reorder_joins": three_way_joins(),
    "use_panes": sliding_aggregates(),
    "split_windows": united_streams(),
}


def called(name: str) -> Callable[[Emit], list[Plan]]:
    return lambda plan: [other for found, other in alternatives(plan, UNEVEN) if found == name]


def everything(plan: Emit) -> list[Plan]:
    return [other for _, other in alternatives(plan, UNEVEN)]


def test_every_alternative_has_a_shape_of_its_own() -> None:
    assert SHAPES.keys() == dict(ALTERNATIVES).keys()


@pytest.mark.parametrize("name", list(SHAPES))
def test_an_alternative_keeps_the_answers_where_it_fires(name: str) -> None:
    check(called(name), SHAPES[name], tried=40, share=0.05)


def test_all_alternatives_on_the_plans_of_all_tests() -> None:
    check(everything, plans(), share=0.0)


def test_all_alternatives_over_internal_windows() -> None:
    check(everything, queries(internal, ("filter", "union", "group", "join", "table")), share=0.0)


@pytest.mark.parametrize("word", [StreamWord.ISTREAM_RESTORE, StreamWord.RSTREAM_RESTORE])
@pytest.mark.parametrize("shape", [negations, distinct_joins])
def test_alternatives_under_restore(word: StreamWord, shape: Callable[..., st.SearchStrategy[Emit]]) -> None:
    extra = {"low": True} if shape is negations else {}
    check(everything, st.integers(1, 3).flatmap(lambda s: shape(specs=one_slide(s), word=word, **extra)))


def test_panes_are_not_used_under_restore() -> None:
    scan = Scan(STREAMS[0], "s")
    total = AggregateCall("count", (), BIGINT)
    grouped = Aggregate(Window(scan, RangeWindow(6, 2)), (), (("n", total),))
    assert not alternatives(Emit(grouped, StreamWord.ISTREAM_RESTORE))


def test_alternatives_where_late_rows_are_kept() -> None:
    """Panes would lose a late row for the extents still to come."""
    check(everything, sliding_aggregates().map(keeping_late_rows), worlds=late_worlds(), share=0.0)


def test_an_nrr_table_does_not_move_into_a_join_where_it_would_be_read_earlier() -> None:
    """Joined with `a` first, the table would be read as of a's row, and not as of the result's youngest."""
    a, b = (Window(Scan(STREAMS[n], alias), RangeWindow(10)) for n, alias in enumerate("ab"))
    table = TableScan(next(table for table in TABLES if table.kind is TableKind.NRR), "t")
    matched = call("=", [a.schema.column("a.k"), table.schema.column("t.k")])
    high = TableJoin(Join((a, b)), table, matched)
    assert not list(push_down_tables(high))
    with pytest.raises(QueryError, match="NRR table is joined below a join of streams"):
        Join((TableJoin(a, table, matched), b))


def test_negation_is_pulled_up_next_to_an_input_that_renames() -> None:
    """Projections that only drop columns are looked through; others are inputs like any."""
    x, y, r = (Window(Scan(STREAMS[0], alias), RangeWindow(4)) for alias in "xyr")
    renamed = Project(y, (("k", y.schema.column("y.k")),))
    absent = Exists(x, r, call("=", [x.schema.column("x.k"), r.schema.column("r.k")]), negated=True)
    narrow = Project(absent, (("x.k", x.schema.column("x.k")),))
    joined = Join((renamed, narrow), call("=", [x.schema.column("x.k"), renamed.schema.column("k")]))
    (pulled,) = pull_up_negation(joined)
    assert pulled.schema == joined.schema
    assert isinstance(pulled.children[0], Exists)
