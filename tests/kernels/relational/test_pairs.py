"""Every operator over every window: on one dense history against the oracle, and among the random plans.

`pytest -s` shows how many random plans have each pair.
"""

from __future__ import annotations

import sys
from collections import Counter

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
from windrow.kernels.relational.program import RelationalProgram
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
def test_operators_over_a_window_say_what_the_oracle_says(name: str) -> None:
    ran = set()
    for operator in OPERATORS:
        try:
            plan = Emit(plan_of(operator, WINDOWS[name]))
        except QueryError:
            continue
        assert_agree(plan, history(len(name)), GeneralExecutor, instants=range(0, 30, 14))
        ran.add(operator)
    assert ran == {operator for operator in OPERATORS if (operator, name) not in REFUSED}


# ------------------------------------------------------------ in random plans

#: operators as plans tell them apart
TOLD = tuple(name for name in OPERATORS if name not in ("γ holistic", "⋈ 3", "⋈ <"))
OWN = ("sliding", "sliding, SLIDE", "NOW", "landmark", "landmark, SLIDE", "unbounded", "lifetime")
COUNTED = (
    "rows",
    "rows, SLIDE in rows",
    "rows, SLIDE in time",
    "partitioned",
    "by tuple",
    "by rank",
    "session",
)
#: a join with a table takes no rows that expire unpredictably
PAIRS = {
    (operator, window)
    for operator in TOLD
    for window in OWN + COUNTED
    if operator not in ("NRR", "RELATION") or window in OWN
}


def kind_of(spec: WindowSpec) -> str:
    match spec:
        case RangeWindow():
            return "sliding" if spec.grid is None else "sliding, SLIDE"
        case NowWindow():
            return "NOW"
        case LandmarkWindow():
            return "landmark" if spec.grid is None else "landmark, SLIDE"
        case UnboundedWindow():
            return "unbounded"
        case LifetimeWindow():
            return "lifetime"
        case RowsWindow(slide_rows=None) if spec.grid is None:
            return "partitioned" if spec.partition_by else "rows"
        case RowsWindow():
            return "rows, SLIDE in rows" if spec.slide_rows else "rows, SLIDE in time"
        case SlideByTupleWindow():
            return "by rank" if spec.by_rank else "by tuple"
    assert isinstance(spec, SessionWindow)
    return "session"


def operator_of(node: Plan) -> str | None:
    match node:
        case Exists():
            return "NOT EXISTS" if node.negated else "EXISTS"
        case TableJoin():
            return node.table.table.kind.value
        case Subquery():
            return "nested"
    names = {Filter: "σ", Project: "π", Union: "∪", Distinct: "δ", Aggregate: "γ", Join: "⋈", Except: "−"}
    return {**names, Limit: "LIMIT"}.get(type(node))  # type: ignore[arg-type]


def pairs(emit: Emit) -> set[tuple[str, str]]:
    """Each operator with the windows below it."""
    found = set()
    for node in emit.walk():
        operator = operator_of(node)
        inner = node.query if isinstance(node, Subquery) else node
        if operator is not None:
            windows = [below.spec for below in inner.walk() if isinstance(below, Window)]
            found |= {(operator, kind_of(spec)) for spec in windows}
    return found


def report(counted: Counter[tuple[str, str]]) -> str:
    """How many plans have each pair."""
    found = len(PAIRS & set(counted))
    lines = [f"\n{found} of {len(PAIRS)} pairs of operator and window; plans with each:"]
    for operator in TOLD:
        shown = [f"{window} {counted[operator, window]}" for window in OWN + COUNTED]
        lines.append(f"  {operator:<11}{'; '.join(shown)}")
    return "\n".join([*lines, ""])


@pytest.mark.thorough
def test_random_plans_have_every_operator_over_every_window() -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for seed in range(3000):
        try:
            plan = Drawer(seed).query()
            RelationalProgram(plan)
        except QueryError:
            continue
        counted.update(pairs(plan))
        if set(counted) >= PAIRS:
            break
    sys.stdout.write(report(counted))
    missing = sorted(PAIRS - set(counted))
    assert not missing, (
        f"{len(PAIRS) - len(missing)} of {len(PAIRS)} pairs; fewest: {counted.most_common()[-5:]}"
    )
