"""Every operator over every window, on one dense history, against the oracle; the pairs are counted."""

from __future__ import annotations

import pytest
from tests.kernels.relational.more_plans import COLUMNS, Drawer
from tests.kernels.relational.scripts import Step, assert_agree
from tests.support.plans import TABLES

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import ColumnRef, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Exists,
    Filter,
    Join,
    Limit,
    Project,
    TableJoin,
    Union,
)
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

LEFT, RIGHT = Stream("s1", COLUMNS, "ts"), Stream("s2", COLUMNS, "ts")
WINDOWS: dict[str, WindowSpec] = {
    "sliding": RangeWindow(7),
    "SLIDE divides RANGE": RangeWindow(6, 3),
    "SLIDE does not divide RANGE": RangeWindow(7, 3),
    "tumbling": RangeWindow(4, 4),
    "NOW": NowWindow(),
    "landmark": LandmarkWindow(5, 20, None),
    "landmark with SLIDE": LandmarkWindow(5, None, 4),
    "unbounded": UnboundedWindow(),
    "lifetime": LifetimeWindow(ColumnRef("a.e", BIGINT)),
    "count-based": RowsWindow(4),
    "count-based, SLIDE in rows": RowsWindow(4, 2),
    "count-based, SLIDE in time": RowsWindow(4, slide_time=3),
    "count-based, in arrival order": RowsWindow(4, arrival_order=True),
    "partitioned": RowsWindow(3, partition_by=("k",)),
    "slide-by-tuple, row_num": SlideByTupleWindow(6, 2, None, False),
    "slide-by-tuple, rank": SlideByTupleWindow(6, 2, None, True),
    "session": SessionWindow(3, ("k",)),
}
OPERATORS = (
    "σ",
    "π",
    "∪",
    "δ",
    "γ",
    "γ holistic",
    "⋈",
    "⋈ 3",
    "⋈ <",
    "−",
    "EXISTS",
    "NOT EXISTS",
    "NRR",
    "RELATION",
)
OPERATORS += ("LIMIT", "nested")
#: a join with a table takes no rows that expire unpredictably
REFUSED = {
    (operator, name)
    for operator in ("NRR", "RELATION")
    for name in WINDOWS
    if name.startswith(("count", "part", "slide-by", "session"))
}


def plan_of(operator: str, spec: WindowSpec) -> Plan:
    """The operator over the window, and over a sliding window where it has more inputs."""
    left, right = Window(Scan(LEFT, "a"), spec), Window(Scan(RIGHT, "b"), RangeWindow(5))
    k, v = left.schema.column("a.k"), left.schema.column("a.v")
    same = call("=", [k, right.schema.column("b.k")])
    mine = Project(left, (("k", k), ("v", v)))
    theirs = Project(right, (("k", right.schema.column("b.k")), ("v", right.schema.column("b.v"))))
    match operator:
        case "σ":
            return Filter(left, call(">", [v, Literal(0, BIGINT)]))
        case "π":
            return mine
        case "∪":
            return Union((mine, theirs))
        case "δ":
            return Distinct(mine)
        case "−":
            return Except(mine, theirs)
        case "LIMIT":
            return Limit(mine, ((mine.schema.column("v"), True),), 2)
        case "NRR" | "RELATION":
            table = TableScan(next(t for t in TABLES if t.kind.value == operator), "t")
            return TableJoin(left, table, call("=", [k, table.schema.column("t.k")]))
        case "nested":
            inner = Subquery(Emit(mine, StreamWord.ISTREAM), "n")
            return Window(inner, RowsWindow(3))
        case "⋈" | "⋈ <":
            return Join((left, right), same if operator == "⋈" else call("<", same.args))
        case "⋈ 3":
            third = Window(Scan(RIGHT, "c"), RowsWindow(3))
            return Join((left, right, third), call("and", [same, call("=", [k, third.schema.column("c.k")])]))
        case "EXISTS" | "NOT EXISTS":
            return Exists(left, right, same, negated=operator != "EXISTS")
    names = ("count", "sum", "max", "last") if operator == "γ" else ("median", "mode", "min")
    calls = [(n, AggregateCall(n, (v,), BIGINT if n != "median" else _DOUBLE)) for n in names]
    return Aggregate(left, (("k", k),), tuple(calls))


_DOUBLE = COLUMNS.column("x").type


def history(seed: int) -> list[Step]:
    drawer = Drawer(seed)
    drawer.streams = [LEFT, RIGHT]
    steps = drawer.script(own=False)
    return [*steps[:12], ("promise both", (12,)), *steps[-3:]]


@pytest.mark.part(24)
@pytest.mark.parametrize("name", WINDOWS)
def test_operators_over_a_window(name: str) -> None:
    ran = set()
    for operator in OPERATORS:
        try:
            plan = Emit(plan_of(operator, WINDOWS[name]))
        except QueryError:
            continue
        assert_agree(plan, history(len(name)), GeneralExecutor, instants=range(0, 30, 14))
        ran.add(operator)
    assert ran == {operator for operator in OPERATORS if (operator, name) not in REFUSED}
