"""Oracle tests: kernels answer as the reference does, change by change, whatever comes in whatever order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.kernels.agreement import assert_agree, run
from tests.kernels.queries import (
    COLUMNS,
    FIRST,
    LAST,
    MEASURES,
    VALUES,
    WINDOW_KINDS,
    Measured,
    histories,
    policies,
    row_of,
    sliding_plans,
    streams,
)

from windrow.algebra import aggregates
from windrow.algebra.aggregates.approx_count import Waved
from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.expressions import Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, Distinct, Filter, Project
from windrow.algebra.plan import Emit, Scan, StreamWord, Window
from windrow.algebra.types import BIGINT
from windrow.errors import DataError, QueryError
from windrow.kernels.executor import KernelExecutor
from windrow.reference.executor import ReferenceExecutor
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.progress import Slack
from windrow.windows.ranges import RangeWindow, UnboundedWindow
from windrow.windows.spec import WindowSpec

pytestmark = pytest.mark.deep

SPECS: dict[str, WindowSpec] = {
    "tumbling": RangeWindow(4, 4, 1),
    "sliding": RangeWindow(6, 2),
    "uneven": RangeWindow(7, 3),
    "gaps": RangeWindow(2, 5, 1),
    "landmark": LandmarkWindow(-2, 18, 3),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    stream = draw(streams())
    keys = ("k",) if draw(st.booleans()) else ()
    return draw(sliding_plans(stream, keys=keys)), draw(histories(stream))


@pytest.mark.parametrize("persisted", [True, False, None])
@given(case=cases())
def test_kernels_agree_with_the_oracle(persisted: bool | None, case: tuple[Any, Any]) -> None:
    assert_agree(*case, persisted=persisted)


def scripted(seed: int, batches: int = 5, size: int = 8, calm: bool = False) -> list[tuple[str, Any]]:
    """Rows around a moving front: disorder, ties, duplicates, a burst, a gap; a take after each batch.

    In `calm` ones no sum of BIGINTs overflows.
    """
    chance = random.Random(seed)
    steps: list[tuple[str, Any]] = []
    front = FIRST
    for _ in range(batches):
        front += chance.choice([0, 2, 5, 9])
        moments = [min(LAST, front + chance.randint(-3, 3)) for _ in range(size)]
        rows = [row_of(chance.randrange(10**6), t) for t in moments]
        rows = [row for row in rows if not calm or abs(row[1] or 0) < 1 << 50]
        steps += [("push", rows + rows[:1]), ("take", None)]
    return [*steps, ("finish", None), ("take", None)]


def grouped(stream: Stream, spec: WindowSpec, measured: list[Measured], *keys: str) -> Emit:
    rows = Window(Scan(stream, "s"), spec)
    by = tuple((key, rows.schema.column(f"s.{key}")) for key in keys)
    return Emit(Aggregate(rows, by, tuple((f"a{n}", m.call(rows)) for n, m in enumerate(measured))))


SLACK = Stream("s", COLUMNS, "ts", ProgressRule(Slack(2)))


def _families() -> dict[str, list[Measured]]:
    """The measures by function; a sum that may overflow would hide the others, so it stands alone."""
    found: dict[str, list[Measured]] = {}
    for measured in MEASURES:
        distinct = "distinct " if measured.distinct else ""
        alone = " v" if measured.function == "sum" and measured.columns == ("v",) else ""
        found.setdefault(distinct + measured.function + alone, []).append(measured)
    return found


FAMILIES = _families()


@pytest.mark.part(13)
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_aggregate_over_every_window_kind(kind: str, family: str) -> None:
    seed = sum(map(ord, kind + family))
    keys = [("k",), ("x",), ("k", "s"), ()][seed % 4]
    emit = grouped(SLACK, SPECS[kind], FAMILIES[family], *keys)
    steps = scripted(seed, calm=family == "sum v")
    assert assert_agree(emit, steps, persisted=[False, None, True][seed % 3]), "nothing was compared"


def test_the_matrix_has_every_aggregate_and_every_window_kind() -> None:
    classes = {type(aggregates.lookup(name)(*_params(name))) for name in aggregates.names()}
    classes = {kind for kind in classes if not issubclass(kind, Waved)}
    tested = {type(aggregates.lookup(measured.function)(*measured.params)) for measured in MEASURES}
    assert tested == classes
    assert set(SPECS) == set(WINDOW_KINDS)
    assert len(MEASURES) * len(SPECS) == sum(map(len, FAMILIES.values())) * 5 >= 400


def _params(name: str) -> tuple[Any, ...]:
    return tuple(
        {"fraction": 0.5, "k": 1, "value": 1, "separator": ","}[param]
        for param in aggregates.lookup(name).parameters
    )


@pytest.mark.part(4)
@pytest.mark.parametrize("rule", policies(), ids=lambda rule: type(rule.policy).__name__)
@pytest.mark.parametrize("late", list(Late))
def test_every_policy_with_every_kind_of_late_row(rule: ProgressRule, late: Late) -> None:
    stream = Stream("s", COLUMNS, "ts", rule, late)
    many = [Measured(*each) for each in (("count", ()), ("last", ("s",)), ("sum", ("d",)), ("mode", ("v",)))]
    kind = "landmark" if late is Late.TO else "uneven"
    emit = grouped(stream, SPECS[kind], many, "k")
    promises = [("own", (2, None)), ("promise", 1), ("own", (9, 1))]
    steps = scripted(len(kind))
    assert assert_agree(emit, [*steps[:4], *promises, *steps[4:]], persisted=late is not Late.DROP)


@pytest.mark.parametrize("kind", SPECS)
def test_promises_about_sources_make_their_groups_final(kind: str) -> None:
    stream = Stream("s", COLUMNS, "ts")
    emit = grouped(stream, SPECS[kind], [Measured("count", ()), Measured("median", ("v",))], "k", "b")
    steps = scripted(3)
    promises = [("own", (5, 0)), ("own", (9, None)), ("take", None), ("promise", 3), ("own", (20, 1))]
    assert assert_agree(emit, [*steps[:4], *promises, *steps[4:]], persisted=True)


@pytest.mark.parametrize("kind", SPECS)
def test_the_relation_at_any_instant_is_that_of_the_oracle(kind: str) -> None:
    emit = grouped(SLACK, SPECS[kind], [Measured("count", ()), Measured("max", ("s",))], "k")
    kernels, oracle = KernelExecutor(emit), ReferenceExecutor(emit)
    for executor in (kernels, oracle):
        run(executor, scripted(1))
    for at in range(FIRST - 8, LAST + 20):
        assert kernels.relation(at) == oracle.relation(at), at


@pytest.mark.parametrize("attribute", ["row_num", "v", "arrival_ts"])
def test_windows_on_other_attributes_and_pseudo_columns(attribute: str) -> None:
    scan = Scan(SLACK, "s", ("row_num", "arrival_ts"))
    v = scan.schema.column("s.v")
    small = call("and", [call("<", [v, Literal(99, BIGINT)]), call(">", [v, Literal(-99, BIGINT)])])
    rows = Window(Filter(scan, small), RangeWindow(4, 2, wattr=attribute))
    emit = Emit(Aggregate(rows, (), (("a0", Measured("sum", ("row_num",)).call(rows)),)))
    # of values that are instants, those beyond 2^60 are refused
    steps = [step for each in scripted(5, calm=attribute == "v") for step in (each, ("wait", 1))]
    assert assert_agree(emit, steps, persisted=True)


def test_a_sum_overflows_only_if_the_window_does() -> None:
    most = VALUES["v"][-2]
    rows = [(0, most, None, None, None, None, None, 0), (0, most, None, None, None, None, None, 1)]
    rows.append((0, -most, None, None, None, None, None, 2))
    total = [Measured("sum", ("v",))]
    fine = KernelExecutor(grouped(SLACK, RangeWindow(9, 9), total))
    run(fine, [("push", rows), ("finish", None)])
    assert [change.row for change in fine.take()] == [(most,)]
    over = KernelExecutor(grouped(SLACK, RangeWindow(2, 1), total))
    run(over, [("push", rows), ("finish", None)])
    with pytest.raises(DataError, match="does not fit BIGINT"):
        over.take()


@pytest.mark.part(4)
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf"), 2.0**1000])
@pytest.mark.parametrize("persisted", [True, False])
def test_a_poisonous_value_leaves_nothing_behind(poison: float, persisted: bool) -> None:
    many = [Measured(name, ("x",)) for name in ("sum", "avg", "var_pop", "max", "median")]
    values = [0.5, poison, *[0.5] * 12]
    rows = [(0, None, x, None, None, None, None, t) for t, x in enumerate(values)]
    executor = KernelExecutor(grouped(SLACK, RangeWindow(4, 1), many), stacked=persisted)
    for row in rows:
        executor.push("s", [row])
    executor.finish()
    after = [change.row for change in executor.take() if 6 <= change.at <= 14]
    assert after == [(2.0, 0.5, 0.0, 0.5, 0.5)] * 9


def test_other_plans_are_refused_by_name() -> None:
    rows = Window(Scan(SLACK, "s"), RangeWindow(4, 2))
    total = (("n", Measured("count", ()).call(rows)),)
    with pytest.raises(QueryError, match="Distinct"):
        KernelExecutor(Emit(Distinct(Aggregate(rows, (), total))))
    with pytest.raises(QueryError, match="Window"):
        KernelExecutor(Emit(rows))
    with pytest.raises(QueryError, match="ISTREAM"):
        KernelExecutor(Emit(Aggregate(rows, (), total), StreamWord.ISTREAM))
    with pytest.raises(QueryError, match=r"as .* rows|as ISTREAM"):
        KernelExecutor(Emit(Aggregate(Window(Scan(SLACK, "s"), UnboundedWindow()), (), total)))


def test_a_sealed_stream_and_strange_names_are_refused() -> None:
    executor = KernelExecutor(grouped(SLACK, RangeWindow(4, 2), [Measured("count", ())]))
    with pytest.raises(DataError, match="no stream `t`"):
        executor.push("t", [])
    with pytest.raises(DataError, match="no table"):
        executor.update("t", 0, [], [])
    with pytest.raises(DataError, match="not final"):
        executor.relation(5)
    with pytest.raises(DataError, match="has no `ts`"):
        executor.push("s", [(None,) * 8])
    executor.finish()
    with pytest.raises(DataError, match="sealed"):
        executor.push("s", [])


def test_the_select_list_is_computed_on_answers() -> None:
    rows = Window(Scan(SLACK, "s"), RangeWindow(4, 2))
    grouping = Aggregate(rows, (), (("n", Measured("count", ()).call(rows)),))
    n = grouping.schema.column("n")
    some = Filter(grouping, call(">", [n, Literal(2, BIGINT)]))
    emit = Emit(Project(some, (("twice", call("*", [n, Literal(2, BIGINT)])),)))
    assert assert_agree(emit, scripted(4), persisted=True)
