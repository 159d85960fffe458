"""Panes: which aggregates have them, what they cost, and when they are chosen (paper 002)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.optimizer.checking import answers
from tests.support.optimised import optimise

from windrow.algebra.aggregates import make
from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.expressions import ColumnRef, Field, Schema
from windrow.algebra.operators import Aggregate, AggregateCall
from windrow.algebra.plan import Emit, Scan, Subquery, Window
from windrow.algebra.types import BIGINT, DOUBLE, INT, INTERVAL, STRING, DataType, decimal
from windrow.optimizer.costs import estimate, total_cost
from windrow.optimizer.flows import Statistics
from windrow.optimizer.optimizer import alternatives
from windrow.optimizer.use_panes import decomposed, use_panes
from windrow.reference.rows import AcceptedRow, World
from windrow.windows.ranges import RangeWindow

COLUMNS = Schema((Field("g", BIGINT), Field("x", BIGINT), Field("ts", BIGINT)))
BIDS = Scan(Stream("bids", COLUMNS, "ts"), "b")


def aggregated(name: str, spec: RangeWindow, groups: bool = False, scan: Scan = BIDS) -> Emit:
    x = scan.schema.column("b.x")
    keys = (("g", scan.schema.column("b.g")),) if groups else ()
    value = AggregateCall(name, (x,), make(name).result_type((x.type,)))
    return Emit(Aggregate(Window(scan, spec), keys, (("value", value),)))


def is_paned(plan: Emit) -> bool:
    return any(isinstance(node, Subquery) for node in plan.walk())


@pytest.mark.parametrize(
    ("name", "kind", "possible"),
    [
        ("count", STRING, True),
        ("min", STRING, True),
        ("max", DOUBLE, True),
        ("sum", INT, True),
        ("sum", BIGINT, True),
        ("sum", decimal(28, 2), True),
        ("sum", decimal(29, 2), False),
        ("sum", DOUBLE, False),
        ("sum", INTERVAL, False),
        ("avg", INT, True),
        ("avg", DOUBLE, False),
        ("avg", decimal(10, 2), False),
        ("first", STRING, True),
        ("median", DOUBLE, False),
        ("mode", STRING, False),
        ("var_pop", DOUBLE, False),
    ],
)
def test_which_aggregates_have_panes(name: str, kind: DataType, possible: bool) -> None:
    call = AggregateCall(name, (ColumnRef("x", kind),), make(name).result_type((kind,)))
    assert (decomposed(call) is not None) == possible


@pytest.mark.parametrize("name", ["count", "sum", "avg"])
def test_distinct_aggregates_have_no_panes(name: str) -> None:
    once = AggregateCall(name, (ColumnRef("x", BIGINT),), BIGINT, distinct=True)
    assert decomposed(once) is None


def run(kind: DataType, name: str, *values: Any) -> tuple[Any, Any]:
    """The answers of a sum over two panes, plain and paned."""
    schema = Schema((Field("g", BIGINT), Field("x", kind), Field("ts", BIGINT)))
    scan = Scan(Stream("s", schema, "ts"), "b")
    plain = aggregated(name, RangeWindow(4, 2), scan=scan)
    (paned,) = use_panes(plain)
    world = World({"s": tuple(AcceptedRow((1, value, n), n + 1) for n, value in enumerate(values))})
    return answers(plain, world), answers(paned, world)


def test_a_pane_may_overflow_what_its_window_does_not() -> None:
    """The pane [2, 4) sums to 2**63, which is too much; it is only ever part of the extent [2, 6)."""
    most = 2**63 - 1
    schema = Schema((Field("g", BIGINT), Field("x", BIGINT), Field("ts", BIGINT)))
    scan = Scan(Stream("s", schema, "ts"), "b")
    plain = aggregated("sum", RangeWindow(4, 6), scan=scan)
    (paned,) = use_panes(plain)
    rows = [(1, most, 2), (1, 1, 3), (1, -1, 4)]
    world = World({"s": tuple(AcceptedRow(row, n) for n, row in enumerate(rows, 1))})
    assert [change.row for change in answers(plain, world) or ()] == [(most,)]
    assert answers(paned, world) == answers(plain, world)


def test_query_1_over_panes_reads_each_row_once_and_answers_the_same() -> None:
    """RANGE 4 SLIDE 1: each row is in four extents, and in one pane."""
    plain = aggregated("max", RangeWindow(4, 1))
    (paned,) = use_panes(plain)
    (inner,) = [each for each in paned.walk() if isinstance(each, Window) and each.input == BIDS]
    assert inner.spec == RangeWindow(1, 1)
    values = [5, 9, None, 2, 7, 7, 1]
    world = World({"bids": tuple(AcceptedRow((1, value, n), n + 1) for n, value in enumerate(values))})
    assert answers(paned, world) == answers(plain, world)
    assert len(answers(plain, world) or ()) == len(values) + 3


def test_sums_of_decimals_keep_their_type() -> None:
    plain, paned = run(decimal(10, 2), "sum", Decimal("1.10"), Decimal("2.25"), None, Decimal("-0.35"))
    assert plain == paned
    assert str(plain[0].row[0]) == str(paned[0].row[0]) == "3.35"


def test_a_mean_of_integers_is_the_quotient_of_exact_sums() -> None:
    plain, paned = run(BIGINT, "avg", 2**52, 1, None, 4)
    assert plain == paned
    plain, paned = run(BIGINT, "avg", 2**53, 1, None, 4)
    assert [change.row for change in plain] == [pytest.approx(change.row, rel=1e-15) for change in paned]


# ---------------------------------------------------------------- costs


@given(
    st.sampled_from(["max", "count", "sum", "avg"]),
    st.integers(2, 400),
    st.integers(1, 400),
    st.floats(0.01, 1e6),
    st.floats(1, 1e6),
)
def test_kernels_have_panes_built_in_so_that_the_rule_is_never_chosen(
    name: str, size: int, slide: int, rate: float, groups: float
) -> None:
    """A paned plan takes every row once, as the plain one does there, and every pane once more."""
    plain = aggregated(name, RangeWindow(size, slide), groups=True)
    statistics = Statistics(rates={"bids": rate}, distinct={"bids.g": groups})
    for paned in use_panes(plain):
        assert isinstance(paned, Emit)
        assert total_cost(paned, statistics) > total_cost(plain, statistics)
    assert not is_paned(optimise(plain, statistics).plan)


def test_with_panes_built_in_an_overlap_costs_nothing_but_state() -> None:
    """Twice as long a window over the same slides: the same work, twice the panes."""
    statistics = Statistics(rates={"bids": 1000}, distinct={"bids.g": 10})
    short, long = (aggregated("max", RangeWindow(size, 5), groups=True) for size in (60, 120))
    assert total_cost(short, statistics) == pytest.approx(total_cost(long, statistics))
    kept = [estimate(plan, statistics)[(0,)].state_rows for plan in (short, long)]
    assert kept == [120, 240]


# ---------------------------------------------------------------- where panes would change more than the cost


def test_no_panes_where_late_rows_are_kept_or_extents_do_not_overlap() -> None:
    kept = Scan(Stream("bids", COLUMNS, "ts", late=Late.KEEP), "b")
    assert not list(use_panes(aggregated("max", RangeWindow(6, 2), scan=kept)))
    assert not list(use_panes(aggregated("max", RangeWindow(6, 6))))
    assert not list(use_panes(aggregated("max", RangeWindow(6))))
    assert not list(use_panes(aggregated("max", RangeWindow(6, 2, internal=True))))


def test_no_panes_of_panes() -> None:
    (paned,) = use_panes(aggregated("max", RangeWindow(6, 2)))
    assert not list(use_panes(paned))


def test_no_panes_where_groups_are_final_one_by_one() -> None:
    """Punctuation PER g closes a group by itself; the panes of a group would wait for all groups."""
    by_source = Stream("bids", COLUMNS, "ts", progress=ProgressRule(per="g"))
    plan = aggregated("max", RangeWindow(6, 2), groups=True, scan=Scan(by_source, "b"))
    assert list(use_panes(plan))
    assert not [name for name, _ in alternatives(plan) if name == "use_panes"]
