"""The cost model: the published formulae, the direction of every effect, and the choices it leads to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from tests.optimizer.strategies import queries
from tests.support.optimised import optimise

from windrow.algebra.catalog import Stream, Table, TableKind
from windrow.algebra.expressions import Field, Literal, Schema
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Exists, Filter, Join, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, TableScan, Window
from windrow.algebra.types import BIGINT, TIMESTAMP
from windrow.kernels.relational.join.order import WindowStats, join_size
from windrow.optimizer.costs import Estimate, estimate, total_cost
from windrow.optimizer.flows import Statistics
from windrow.optimizer.reorder_joins import reorder_joins
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.spec import WindowSpec

COLUMNS = Schema((Field("k", BIGINT), Field("ts", BIGINT)))


def window(name: str, length: int = 100, spec: WindowSpec | None = None) -> Window:
    return Window(Scan(Stream(name, COLUMNS, "ts"), name), spec or RangeWindow(length))


def joined(*windows: Window) -> Join:
    first, *others = [each.schema.column(each.schema.names[0]) for each in windows]
    tests = [call("=", [first, other]) for other in others]
    predicate = tests[0]
    for test in tests[1:]:
        predicate = call("and", [predicate, test])
    return Join(windows, predicate)


def own_cost(plan: Plan, statistics: Statistics) -> Estimate:
    return estimate(plan, statistics)[()]


@pytest.mark.parametrize(
    ("spec", "rows"),
    [
        (RangeWindow(60), 300),
        (RangeWindow(60, 20), 300),
        (NowWindow(), 5),
        (RowsWindow(7), 7),
        (RowsWindow(7, partition_by=("k",)), 700),
        (SessionWindow(10), 100),
        (UnboundedWindow(), 5 * 86_400),
        (LandmarkWindow(0, 99), 500),
    ],
)
def test_how_many_rows_a_window_holds(spec: WindowSpec, rows: float) -> None:
    assert own_cost(window("s", spec=spec), Statistics(rates={"s": 5})).rows == rows


def test_windows_over_time_are_measured_in_units() -> None:
    stream = Stream("s", Schema((Field("ts", TIMESTAMP),)), "ts")
    plan = Window(Scan(stream, "s"), RangeWindow(60_000_000))
    assert own_cost(plan, Statistics(rates={"s": 5})).rows == 300


def test_gaps_between_extents_let_rows_pass_by() -> None:
    assert own_cost(window("s", spec=RangeWindow(10, 40)), Statistics(rates={"s": 8})).rate == 2


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 50), st.integers(1, 60)), min_size=2, max_size=4)
)
def test_a_join_has_and_keeps_the_rows_that_the_thesis_says(parameters: list[tuple[int, int, int]]) -> None:
    names = "abcd"[: len(parameters)]
    stats = [WindowStats(name, *row) for name, row in zip(names, parameters, strict=True)]
    known = Statistics(
        rates={each.name: each.rate for each in stats},
        distinct={f"{each.name}.k": each.distinct for each in stats},
    )
    found = own_cost(joined(*(window(each.name, int(each.length)) for each in stats)), known)
    assert found.rows == pytest.approx(join_size(stats))
    assert found.state_rows == sum(each.tuples for each in stats)


def test_the_order_of_a_join_follows_the_thesis_heuristic() -> None:
    """Table 5.5, with the rate its text computes with."""
    parameters = {"a": (10, 40), "b": (1, 100), "c": (1, 8), "d": (1, 5)}
    known = Statistics(
        rates={name: rate for name, (rate, _) in parameters.items()},
        distinct={f"{name}.k": values for name, (_, values) in parameters.items()},
    )
    plan = joined(*(window(name) for name in "dcba"))
    (better,) = reorder_joins(plan, known)
    assert total_cost(better, known) < total_cost(plan, known)
    assert better.schema == plan.schema
    assert not list(reorder_joins(better, known))
    assert "reorder_joins" in optimise(Emit(plan), known).fired


def figure_3_5(pulled_up: bool) -> Emit:
    a, b, r = window("a"), window("b"), window("r")
    matched = call("=", [a.schema.column("a.k"), r.schema.column("r.k")])
    if pulled_up:
        return Emit(Exists(joined(a, b), r, matched, negated=True))
    return Emit(Join((Exists(a, r, matched, negated=True), b), joined(a, b).predicate))


def test_negation_is_pulled_up_where_it_drops_little_and_pushed_down_where_it_drops_much() -> None:
    """Thesis, 3.5.3: the two plans of Figure 3.5, either of which can be the cheaper one."""
    rarely = Statistics(rates={"r": 0.01}, distinct={f"{name}.k": 1000 for name in "abr"})
    often = Statistics(rates={"r": 20}, distinct={f"{name}.k": 10 for name in "abr"})
    assert "pull_up_negation" in optimise(figure_3_5(pulled_up=False), rarely).fired
    assert "push_down_negation" in optimise(figure_3_5(pulled_up=True), often).fired


def test_negative_rows_are_processed_twice() -> None:
    known = Statistics(rates={"s": 5})
    weak, strict = window("s"), window("s", spec=RowsWindow(500))
    test = call(">", [weak.schema.column("s.k"), Literal(1, BIGINT)])
    assert own_cost(Filter(strict, test), known).cost == 2 * own_cost(Filter(weak, test), known).cost


def test_distinct_keeps_twice_its_answer_or_all_of_a_strict_input() -> None:
    known = Statistics(rates={"s": 50}, distinct={"s.k": 3, "s.ts": 1})
    direct = own_cost(Distinct(window("s")), known)
    strict = own_cost(Distinct(window("s", spec=RowsWindow(5000))), known)
    assert direct.state_rows == pytest.approx(6)
    assert strict.state_rows == pytest.approx(5003)


def test_a_relation_table_has_to_keep_the_rows_it_may_still_change() -> None:
    def with_table(kind: TableKind) -> Estimate:
        table = TableScan(Table("t", Schema((Field("k", BIGINT),)), kind), "t")
        source = window("s")
        same = call("=", [source.schema.column("s.k"), table.schema.column("t.k")])
        return own_cost(TableJoin(source, table, same), Statistics(table_rows={"t": 50}))

    assert with_table(TableKind.NRR).state_rows == 0
    assert with_table(TableKind.RELATION).state_rows == 100
    assert with_table(TableKind.NRR).rate == pytest.approx(0.5)
    assert with_table(TableKind.NRR).cost < with_table(TableKind.RELATION).cost


def test_a_periodic_answer_is_reported_once_per_slide() -> None:
    total = Aggregate(window("s", spec=RangeWindow(60, 20)), (), (("n", AggregateCall("count", (), BIGINT)),))
    assert own_cost(Emit(total), Statistics()).rate == pytest.approx(1 / 20)
    assert own_cost(Emit(total, StreamWord.ISTREAM), Statistics()).rate == pytest.approx(1 / 20)


def test_observed_selectivities_come_first() -> None:
    source = window("s")
    test = call("=", [source.schema.column("s.k"), Literal(1, BIGINT)])
    assert own_cost(Filter(source, test), Statistics(selectivities={test: 0.75})).rows == 75


@settings(max_examples=25)
@given(queries(depth=3))
def test_every_plan_has_an_estimate_for_every_node(plan: Emit) -> None:
    found = estimate(plan)
    assert len(found) == sum(1 for _ in plan.walk())
    assert all(each.cost >= 0 and each.rows >= 0 and each.state_rows >= 0 for each in found.values())
