"""The random plans have every operator over every window; `pytest -s` shows how many have each pair."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
from tests.kernels.relational.more_plans import Drawer

from windrow.algebra.operators import (
    Aggregate,
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
from windrow.algebra.plan import Emit, Plan, Subquery, Window
from windrow.errors import QueryError
from windrow.kernels.relational.program import RelationalProgram
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

OPERATORS = ("σ", "π", "∪", "δ", "γ", "⋈", "−", "EXISTS", "NOT EXISTS", "NRR", "RELATION", "LIMIT", "nested")
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
EXPECTED = {
    (operator, window)
    for operator in OPERATORS
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
    found = len(EXPECTED & set(counted))
    lines = [f"\n{found} of {len(EXPECTED)} pairs of operator and window; plans with each:"]
    for operator in OPERATORS:
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
        if set(counted) >= EXPECTED:
            break
    sys.stdout.write(report(counted))
    missing = sorted(EXPECTED - set(counted))
    assert not missing, (
        f"{len(EXPECTED) - len(missing)} of {len(EXPECTED)} pairs; fewest: {counted.most_common()[-5:]}"
    )
