"""What operators keep: by strategy, and bounded by the window and not by the history."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kernels.relational.more_plans import COLUMNS

from windrow.algebra.catalog import ProgressRule, Stream
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Except, Exists, Join, Project
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.algebra.types import BIGINT
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import Options, Strategy
from windrow.windows.progress import Ordered
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow

S1, S2 = (Stream(name, COLUMNS, "ts", ProgressRule(Ordered())) for name in ("s1", "s2"))


def window(stream: Stream, alias: str, spec: object = None) -> Window:
    return Window(Scan(stream, alias), spec or RangeWindow(20))


def column(plan: Plan, name: str) -> Project:
    return Project(plan, (("k", plan.schema.column(name)),))


def equal() -> tuple[Window, Window, object]:
    a, b = window(S1, "a"), window(S2, "b")
    return a, b, call("=", [a.schema.column("a.k"), b.schema.column("b.k")])


def grouped(function: str) -> Plan:
    a = window(S1, "a")
    value = AggregateCall(function, (a.schema.column("a.v"),), BIGINT)
    return Aggregate(a, (("k", a.schema.column("a.k")),), (("x", value),))


def joined() -> Plan:
    a, b, same = equal()
    return Join((a, b), same)


def matched() -> Plan:
    a, b, same = equal()
    return Exists(a, b, same, negated=True)


PLANS: dict[str, Callable[[], Plan]] = {
    "⋈": joined,
    "NOT EXISTS": matched,
    "δ": lambda: Distinct(column(window(S1, "a"), "a.k")),
    "−": lambda: Except(column(window(S1, "a"), "a.k"), column(window(S2, "b"), "b.k")),
    "γ sum": lambda: grouped("sum"),
    "γ max": lambda: grouped("max"),
    "γ median": lambda: Aggregate(
        window(S1, "a"), (), (("m", AggregateCall("mode", (window(S1, "a").schema.column("a.v"),), BIGINT)),)
    ),
    "ROWS": lambda: window(S1, "a", RowsWindow(20, partition_by=("b",))),
    "SESSION": lambda: window(S1, "a", SessionWindow(3)),
}


def run(
    executor: GeneralExecutor, batches: range, value: Callable[[int], int] = lambda t: t * 7 % 11
) -> list[int]:
    """Ten rows of each stream per batch, one per instant; the state after each batch."""
    sizes = []
    for batch in batches:
        ts = range(batch * 10, batch * 10 + 10)
        for name in executor.intakes:
            rows = [(t % 5, value(t), None, None, t % 2 == 0, None, None, t) for t in ts if t % 10 < 8]
            executor.push(name, rows)
        executor.take()
        sizes.append(sum(executor.program.state_rows(executor.states).values()))
    return sizes


@pytest.mark.part(12)
@pytest.mark.parametrize("strategy", ["UPA", "NT", "DIRECT"])
@pytest.mark.parametrize("name", PLANS)
def test_state_stays_flat_over_many_windows(name: str, strategy: str) -> None:
    executor = GeneralExecutor(Emit(PLANS[name]()), Options(Strategy(strategy)))
    run(executor, range(4))
    early = max(run(executor, range(4, 10)))
    run(executor, range(10, 20))
    assert max(run(executor, range(20, 26))) <= early * 1.1


def kept(plan: Plan, operator: str, strategy: str = "UPA") -> int:
    executor = GeneralExecutor(Emit(plan), Options(Strategy(strategy)))
    run(executor, range(10))
    return sum(
        rows for name, rows in executor.program.state_rows(executor.states).items() if name.endswith(operator)
    )


def test_delta_star_keeps_a_row_per_value_and_counting_keeps_every_expiry() -> None:
    plan = PLANS["δ"]()
    assert kept(plan, "δ*") <= 5
    assert kept(plan, "δ*", "DIRECT") <= 5
    assert kept(plan, "negative rows", "NT") >= 14


def test_max_keeps_only_rows_that_no_younger_row_outdoes() -> None:
    falling, rising = GeneralExecutor(Emit(grouped("max"))), GeneralExecutor(Emit(grouped("max")))
    run(falling, range(10), lambda t: -t)
    run(rising, range(10), lambda t: t)
    groups = 5
    candidates = [e.program.state_rows(e.states)["0.0 γ, running"] - groups for e in (rising, falling)]
    assert candidates[0] == groups
    assert candidates[1] > 2 * groups


def test_only_negative_rows_need_the_window_itself() -> None:
    assert kept(joined(), "negative rows", "NT") >= 2 * 14
    assert kept(joined(), "negative rows") == 0
