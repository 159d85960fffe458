"""Labels against observation: never more optimistic than the oracle, and tight for single operators."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.support.observation import is_fifo, pieces_of, refutes
from tests.support.plans import STREAMS, named, plans, worlds

from windrow.algebra.catalog import Late, Stream
from windrow.algebra.expressions import ColumnRef
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Except, Exists, Filter, Join, Union
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.algebra.types import BIGINT
from windrow.language.compile import Catalog, compile_query
from windrow.reference.rows import AcceptedRow, World
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.patterns import Pattern
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec


def own_relations(plan: Plan) -> list[Plan]:
    """The relations of a query, its windows included."""
    return [plan, *(node for child in plan.children if not child.is_stream for node in own_relations(child))]


@given(plans(arrival=False), worlds())
def test_a_label_is_never_more_optimistic_than_what_is_observed(plan: Emit, world: World) -> None:
    """What was known at an instant is what had happened by then: true of instants, not of arrivals."""
    for node in own_relations(plan.input):
        if type(node).__name__ != "TableScan":
            assert not refutes(plan, node, node.label, world), node.label


@given(plans(tables=False, nested=False), worlds())
def test_order_of_expiry_is_fifo_where_the_label_says_so(plan: Emit, world: World) -> None:
    for node in own_relations(plan.input):
        if node.label.fifo:
            assert is_fifo(pieces_of(plan, node, world)), node.label


def leaf(spec: WindowSpec, alias: str = "a", stream: Stream = STREAMS[0]) -> Plan:
    return named(Window(Scan(stream, alias), spec), alias, f"{alias}.k", f"{alias}.v")


def history(*streams: list[tuple[int, int, int, int]]) -> World:
    """Rows (k, v, lifetime, ts) of each stream."""
    numbered = ([AcceptedRow(row, n) for n, row in enumerate(rows, start=1)] for rows in streams)
    return World({stream.name: tuple(rows) for stream, rows in zip(STREAMS, numbered, strict=True)})


ROWS = history(
    [(1, 1, 5, 0), (1, 1, 1, 1), (2, 2, 9, 2), (1, 1, 2, 4), (2, 2, 2, 5), (1, 3, 3, 8), (1, 1, 3, 13)],
    [(3, 3, 1, 0), (1, 1, 2, 2), (2, 2, 4, 3), (2, 2, 2, 6), (1, 1, 3, 14)],
)
WINDOWS = {
    "RANGE 4": (RangeWindow(4), Pattern.WKS),
    "RANGE 4 SLIDE 2": (RangeWindow(4, 2), Pattern.WKS),
    "RANGE 4 SLIDE 4": (RangeWindow(4, 4), Pattern.WKS),
    "RANGE 4 SLIDE 3": (RangeWindow(4, 3), Pattern.WK),
    "NOW": (NowWindow(), Pattern.WKS),
    "UNBOUNDED": (UnboundedWindow(), Pattern.MON),
    "LANDMARK FROM 1": (LandmarkWindow(1, None, None), Pattern.MON),
    "LANDMARK FROM 1 UNTIL 7 SLIDE 2": (LandmarkWindow(1, 7, 2), Pattern.MON),
    "LIFETIME e": (LifetimeWindow(ColumnRef("a.e", BIGINT)), Pattern.WK),
    "ROWS 2": (RowsWindow(2), Pattern.STR),
    "ROWS 2 SLIDE 2 ROWS": (RowsWindow(2, 2), Pattern.STR),
    "ROWS 2 PARTITION BY k": (RowsWindow(2, partition_by=("k",)), Pattern.STR),
    "RANGE 4 SLIDE 2 ROWS": (SlideByTupleWindow(4, 2, None, True), Pattern.STR),
    "SESSION 3": (SessionWindow(3), Pattern.STR),
}


def easier(pattern: Pattern) -> list[Pattern]:
    return [other for other in Pattern if other < pattern]


def shown(plan: Plan, pattern: Pattern) -> bool:
    """Whether the history refutes every pattern simpler than this one."""
    label = plan.label
    claims = [type(label)(simpler, "", lifetime=label.lifetime) for simpler in easier(pattern)]
    return all(
        refutes(Emit(plan), plan, claim, ROWS)
        if claim.pattern is not Pattern.WKS
        else len({piece.ve - piece.vs for piece in pieces_of(Emit(plan), plan, ROWS)}) > 1
        for claim in claims
    )


@pytest.mark.parametrize("name", WINDOWS)
def test_labels_of_windows_are_tight(name: str) -> None:
    spec, pattern = WINDOWS[name]
    plan = leaf(spec)
    assert plan.label.pattern is pattern
    assert shown(plan, pattern)


def operators(spec: WindowSpec, other: WindowSpec) -> dict[str, tuple[Plan, Pattern]]:
    left, right = leaf(spec, "a"), leaf(other, "b", STREAMS[1])
    same = call("=", [left.schema.column("a.k"), right.schema.column("b.k")])
    total = AggregateCall("sum", (left.schema.column("a.v"),), BIGINT)
    positive = call(">", [left.schema.column("a.v"), left.schema.column("a.k")])
    return {
        "filter": (Filter(left, call("not", [positive])), left.label.pattern),
        "union of equal windows": (Union((left, leaf(spec, "c"))), left.label.pattern),
        "union of different windows": (Union((left, right)), Pattern.WK),
        "distinct": (Distinct(left), Pattern.WK),
        "join": (Join((left, right), same), Pattern.WK),
        "aggregate": (Aggregate(left, (("k", left.schema.column("a.k")),), (("t", total),)), Pattern.STR),
        "except": (Except(left, right), Pattern.STR),
        "not exists": (Exists(left, right, same, negated=True), Pattern.STR),
        "exists": (Exists(left, right, same), Pattern.WK),
    }


@pytest.mark.parametrize("name", list(operators(RangeWindow(4), RangeWindow(6))))
def test_labels_of_single_operators_over_time_windows_are_tight(name: str) -> None:
    plan, pattern = operators(RangeWindow(4), RangeWindow(6))[name]
    assert plan.label.pattern is pattern
    assert shown(plan, pattern)


@pytest.mark.parametrize("name", ["filter", "union of equal windows", "distinct", "join", "exists"])
def test_operators_over_windows_that_keep_everything_are_monotonic(name: str) -> None:
    plan, _ = operators(UnboundedWindow(), LandmarkWindow(None, None, None))[name]
    assert plan.label.pattern is Pattern.MON


@pytest.mark.parametrize("name", ["filter", "union of different windows", "distinct", "join", "exists"])
def test_a_count_based_window_makes_everything_above_it_strict(name: str) -> None:
    plan, _ = operators(RowsWindow(2), RangeWindow(4))[name]
    assert plan.label.pattern is Pattern.STR
    assert "future arrivals" in plan.label.reason


def test_late_rows_that_are_kept_live_shorter() -> None:
    keeping = Stream("s1", STREAMS[0].schema, "ts", late=Late.KEEP)
    for spec in (RangeWindow(4), RangeWindow(20, 3)):
        label = leaf(spec, stream=keeping).label
        assert (label.pattern, label.fifo) == (Pattern.WK, False)
        assert "late rows" in label.reason


#: everyday SQL over windows of time, and its pattern
EVERYDAY = {
    "SELECT a.k, b.v FROM s1 [RANGE 4] a LEFT JOIN s2 [RANGE 6] b ON a.k = b.k": Pattern.STR,
    "SELECT b.k, a.v FROM s2 [RANGE 6] a RIGHT JOIN s1 [RANGE 4] b ON a.k = b.k": Pattern.STR,
    "SELECT a.k, b.k AS other FROM s1 [RANGE 4] a FULL JOIN s2 [RANGE 6] b ON a.k = b.k": Pattern.STR,
    "SELECT k, v FROM s1 [RANGE 4] WHERE k IN (SELECT k FROM s2 [RANGE 6])": Pattern.WK,
    "SELECT k, v FROM s1 [RANGE 4] WHERE k NOT IN (SELECT k FROM s2 [RANGE 6])": Pattern.STR,
    "SELECT k, v FROM s1 [RANGE 4] INTERSECT SELECT k, v FROM s2 [RANGE 6]": Pattern.WK,
    "SELECT k, v FROM s1 [RANGE 4] INTERSECT ALL SELECT k, v FROM s2 [RANGE 6]": Pattern.STR,
    "SELECT k, v, RANK() OVER (ORDER BY v DESC) AS n FROM s1 [RANGE 4]": Pattern.STR,
    "SELECT k FROM s1 [RANGE 4] QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) = 1": Pattern.STR,
    "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS 2 PRECEDING) AS total FROM s1": Pattern.MON,
    "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS total FROM s1 [RANGE 4]": Pattern.STR,
    "SELECT k, x FROM s1 [RANGE 4] CROSS JOIN UNNEST(array(k, v)) AS t(x)": Pattern.WKS,
    "SELECT k, x FROM s1 [UNBOUNDED] CROSS JOIN UNNEST(array(k, v)) AS t(x)": Pattern.MON,
    "SELECT k, SUM(v) AS total FROM s1 [RANGE 4] GROUP BY ROLLUP (k)": Pattern.STR,
    "SELECT a.k, a.v FROM s1 [RANGE 4] a LEFT SEMI JOIN s2 [RANGE 6] b ON a.k = b.k": Pattern.WK,
    "SELECT a.k, a.v FROM s1 [RANGE 4] a LEFT ANTI JOIN s2 [RANGE 6] b ON a.k = b.k": Pattern.STR,
}


@pytest.mark.parametrize("text", EVERYDAY)
def test_labels_of_everyday_sql_are_tight(text: str) -> None:
    plan = compile_query(text, Catalog(*STREAMS)).input
    assert plan.label.pattern is EVERYDAY[text]
    assert shown(plan, EVERYDAY[text])
