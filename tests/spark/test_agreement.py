"""The engine says what the oracle says: random queries, streams, cuts, and restarts between epochs.

Hundreds run with the engine's tasks in this process, files and commits included; dozens on Spark itself,
where what Spark can aggregate natively is. Both ways of a query's rows are taken, and counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings, strategies as st
from tests.kernels.agreement import assert_same
from tests.kernels.queries import COLUMNS, Measured, Step, histories, policies, sliding_plans, streams
from tests.kernels.test_executor import FAMILIES, SLACK, SPECS, grouped, scripted
from tests.support.partitions import Partitions

from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.operators import Aggregate, AggregateCall, Filter
from windrow.algebra.plan import Emit, Plan, Subquery, Window
from windrow.algebra.types import BIGINT
from windrow.errors import DataError
from windrow.kernels.panes.program import PaneProgram
from windrow.physical.native_sql import native_query
from windrow.reference.executor import ReferenceExecutor
from windrow.testing.spark_executor import SparkExecutor
from windrow.windows.progress import NoPolicy, Ordered, Policy, Slack
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.algebra.values import Change
    from windrow.windows.spec import WindowSpec

pytestmark = pytest.mark.deep


def run(executor: Any, steps: list[Step], restarts: random.Random | None = None) -> list[Change] | None:
    """All changes of a history; None if a row made the query fail. Restarts happen between any two steps."""
    changes: list[Change] = []
    for verb, value in steps:
        if restarts is not None and restarts.random() < 0.3:
            executor.restart()
        match verb:
            case "push":
                executor.push("s", value)
            case "promise":
                executor.punctuate("s", value)
            case "own":
                executor.punctuate("s", value[0], {"k": value[1]})
            case "wait":
                executor.advance(value)
            case "finish":
                executor.finish()
            case "take":
                try:
                    changes += executor.take()
                except DataError:
                    return None
    return changes


def assert_engine_agrees(emit: Emit, steps: list[Step], seed: int, *, spark: bool) -> int:
    expected = run(ReferenceExecutor(emit), steps)
    cut = None if spark else Partitions(seed)
    executor = SparkExecutor(emit, spark=spark, shards=2 if spark else 1 + seed % 3, cut=cut)
    try:
        with nothing_is_small() if seed % 2 else nullcontext():
            found = run(executor, steps, random.Random(seed))
    finally:
        executor.close()
    assert (found is None) == (expected is None)
    if found is None or expected is None:
        return 0
    assert_same(found, expected)
    return len(found)


@contextmanager
def nothing_is_small() -> Iterator[None]:
    """Every close is a job of Spark, and every batch goes through its workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.execution.local.SMALL_STATE", -1)
        patch.setattr("windrow.execution.local.SMALL_FEED", 0)
        yield


@st.composite
def nested_plans(draw: st.DrawFn, stream: Stream) -> Emit:
    """An aggregate over a filtered aggregate, with a window of its own."""
    inner = draw(sliding_plans(stream, most=2, keys=("k",)))
    rows: Plan = Window(Subquery(inner, "q"), draw(st.sampled_from([RangeWindow(6, 3), RangeWindow(5, 2)])))
    first = rows.schema.names[0]
    if draw(st.booleans()):
        from windrow.algebra.functions import call

        rows = Filter(rows, call("is_not_null", [rows.schema.column(first)]))
    key = ((first, rows.schema.column(first)),) if draw(st.booleans()) else ()
    count = AggregateCall("count", (), BIGINT)
    return Emit(Aggregate(rows, key, (("n", count),)))


@st.composite
def cases(draw: st.DrawFn, stream: st.SearchStrategy[Stream] | None = None) -> tuple[Emit, list[Step], int]:
    chosen = draw(stream if stream is not None else streams())
    plan = draw(st.one_of(sliding_plans(chosen), sliding_plans(chosen), nested_plans(chosen)))
    return plan, draw(histories(chosen)), draw(st.integers(0, 1 << 16))


@given(case=cases())
@settings(max_examples=100)
def test_the_engine_in_this_process_agrees_with_the_oracle(case: tuple[Emit, list[Step], int]) -> None:
    assert_engine_agrees(*case, spark=False)


def simple_streams() -> st.SearchStrategy[Stream]:
    """Streams whose progress Spark can compute natively."""
    rules = [ProgressRule(NoPolicy()), ProgressRule(Ordered()), ProgressRule(Slack(3))]
    return st.builds(lambda rule: Stream("s", COLUMNS, "ts", rule), st.sampled_from(rules))


#: what Spark computes as the kernels do
NATIVE = [
    Measured("count", ()),
    Measured("count", ("v", "x")),
    *(Measured(name, (column,)) for name in ("min", "max", "any_value") for column in "vxdsb"),
    *(Measured(name, (column,)) for name in ("sum", "avg") for column in "vx"),
    *(Measured(name, ("x",)) for name in ("var_pop", "stddev_samp")),
    Measured("max", ("ts",)),
]


@st.composite
def native_cases(draw: st.DrawFn) -> tuple[Emit, list[Step], int]:
    stream = draw(simple_streams())
    plan = draw(sliding_plans(stream, measures=NATIVE))
    return plan, draw(histories(stream)), draw(st.integers(0, 1 << 16))


def on_spark(strategy: st.SearchStrategy[tuple[Emit, list[Step], int]], examples: int) -> int:
    """Compare some cases on Spark; how many of them were native. A failure is not shrunk: that takes long."""
    native = 0

    @given(case=strategy)
    @settings(max_examples=examples, derandomize=True, phases=[Phase.generate])
    def check(case: tuple[Emit, list[Step], int]) -> None:
        nonlocal native
        emit, steps, seed = case
        native += native_query(PaneProgram(emit)) is not None
        assert_engine_agrees(emit, steps, seed, spark=True)

    check()
    return native


@pytest.mark.part(2)
@pytest.mark.parametrize("examples", [4, 12])
def test_spark_agrees_with_the_oracle_on_native_aggregations(spark: SparkSession, examples: int) -> None:
    assert on_spark(native_cases(), examples) > examples // 2, "few of the queries were native"


@pytest.mark.part(2)
@pytest.mark.parametrize("examples", [4, 12])
def test_spark_agrees_with_the_oracle_on_anything(spark: SparkSession, examples: int) -> None:
    assert on_spark(cases(), examples) < examples, "no query was computed from rows"


@pytest.mark.part(3)
@pytest.mark.parametrize("keys", [("k",), ()], ids=repr)
@pytest.mark.parametrize("rule", [NoPolicy(), Slack(9)], ids=repr)
def test_promises_about_single_sources_of_a_simple_stream(
    spark: SparkSession, rule: Policy, keys: tuple[str, ...]
) -> None:
    """Rows that Spark could aggregate are judged one by one, once a source has a progress of its own."""
    stream = Stream("s", COLUMNS, "ts", ProgressRule(rule))
    emit = grouped(stream, RangeWindow(6, 3), [Measured("count", ()), Measured("sum", ("v",))], *keys)
    assert native_query(PaneProgram(emit)) is not None

    def row(k: int, ts: int) -> tuple[Any, ...]:
        known = {"k": k, "v": 1, "ts": ts}
        return tuple(known.get(name) for name in COLUMNS.names)

    steps: list[Step] = [
        ("push", [row(1, 1), row(2, 1)]),
        ("own", (7, 1)),
        ("take", None),
        ("push", [row(1, 2), row(2, 2), row(1, 8)]),  # the first is late, the second is not
        ("take", None),
        ("promise", 12),
        ("take", None),
    ]
    assert assert_engine_agrees(emit, steps, 2, spark=True) > 3


@pytest.mark.thorough
@pytest.mark.parametrize("rule", policies(), ids=lambda rule: type(rule.policy).__name__)
def test_every_policy_on_spark(spark: SparkSession, rule: ProgressRule) -> None:
    late = [Late.DROP, Late.KEEP, Late.TO][len(repr(rule)) % 3]
    stream = Stream("s", COLUMNS, "ts", rule, late, "memory:" if late is Late.TO else None)
    many = [
        Measured("count", ()),
        Measured("last", ("s",)),
        Measured("sum", ("d",)),
        Measured("mode", ("v",)),
    ]
    steps = scripted(len(repr(rule)), batches=4)
    promises = [("own", (2, None)), ("promise", 1), ("own", (9, 1))]
    emit = grouped(stream, RangeWindow(7, 3), many, "k")
    assert assert_engine_agrees(emit, [*steps[:4], *promises, *steps[4:]], 3, spark=True) > 5


@pytest.mark.thorough
@pytest.mark.parametrize("spec", [RangeWindow(6, 2), RangeWindow(7, 3), RowsWindow(6, 2)], ids=repr)
def test_frequent_values_on_spark(spark: SparkSession, spec: WindowSpec) -> None:
    many = [
        *(Measured("frequent", (column,), (k,)) for column, k in (("v", 1), ("s", 2))),
        Measured("heavy_hitters", ("s",), (0.3,)),
        Measured("top_k", ("s",), (2,)),
        *(Measured(name, ("v",)) for name in ("mode", "median")),
        Measured("count", ("s",), distinct=True),
    ]
    emit = grouped(SLACK, spec, many, "k")
    assert assert_engine_agrees(emit, scripted(5, batches=4, size=12), 1, spark=True) > 5


@pytest.mark.part(40)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_aggregate_over_many_kinds_of_windows(family: str) -> None:
    """Through files and restarts, in this process; each kind of window with every second aggregate."""
    for number, kind in list(enumerate(SPECS))[list(FAMILIES).index(family) % 2 :: 2]:
        emit = grouped(SLACK, SPECS[kind], FAMILIES[family], *[("k",), ("k", "s"), ()][number % 3])
        steps = scripted(number, batches=3, calm=family.endswith("sum v"))
        assert assert_engine_agrees(emit, steps, number, spark=False)
