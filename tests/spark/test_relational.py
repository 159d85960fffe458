"""The engine runs the whole language as the oracle says: random plans, histories, partitions and restarts."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, assume, given, settings, strategies as st
from tests.kernels.agreement import assert_same
from tests.kernels.relational.more_plans import cases
from tests.kernels.relational.scripts import Run, Step, cuts, ordered, scripts
from tests.support.partitions import Partitions
from tests.support.plans import Shape, _with_table, plans, refused_is_redrawn, words

from windrow.algebra.operators import TableJoin
from windrow.algebra.plan import Emit
from windrow.errors import QueryError
from windrow.physical.partitioning import placement_of
from windrow.testing.harness import EXECUTORS
from windrow.testing.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.deep


@st.composite
def with_tables(draw: st.DrawFn) -> Emit:
    """A query whose last step is a join with a table."""
    joined = refused_is_redrawn(_with_table, draw, Shape(), draw(st.integers(1, 2)), "last")
    return refused_is_redrawn(Emit, joined, draw(words))


any_plans = st.one_of(plans(), with_tables())


def assert_engine_agrees(emit: Emit, script: list[Step], seed: int, *, spark: bool) -> int:
    """All changes of a history, and the first error; restarts happen between any two steps. In this process
    there are one to three shards, and each micro-batch lies in some partitions."""
    cut = None if spark else Partitions(seed)
    try:
        executor = SparkExecutor(emit, spark=spark, shards=2 if spark else 1 + seed % 3, cut=cut)
    except QueryError as error:
        assume(error.code != "too-many-answers")  # the oracle is asked about a few instants only
        raise
    return assert_executor_agrees(executor, script, Random(seed))


def assert_executor_agrees(executor: Any, script: list[Step], restarts: Random | None = None) -> int:
    """The same with an executor as it is; it does not restart unless it is told when."""
    oracle, mine = Run(EXECUTORS["reference"](executor.emit)), Run(executor)
    compared = 0
    try:
        for step in script:
            if restarts is not None and restarts.random() < 0.3:
                executor.restart()
            expected, found = oracle.outcome(step), mine.outcome(step)
            if isinstance(expected, list) and isinstance(found, list):
                assert_same(ordered(found), ordered(expected))
                compared += len(found)
            else:
                assert found == expected, step
                if isinstance(found, str):  # the code of an error, after which executors may differ
                    return compared
    finally:
        executor.close()
    return compared


@given(plan=any_plans, script=st.one_of(scripts(), cuts()), seed=st.integers(0, 1 << 16))
@settings(max_examples=80)
def test_the_engine_in_this_process_agrees_with_the_oracle(plan: Emit, script: list[Step], seed: int) -> None:
    assert_engine_agrees(plan, script, seed, spark=False)


@given(case=cases(), seed=st.integers(0, 1 << 16))
@settings(max_examples=40)
def test_policies_kept_rows_and_the_rest_in_this_process(case: tuple[Emit, list[Step]], seed: int) -> None:
    assert_engine_agrees(*case, seed, spark=False)


@given(case=cases(union=True), seed=st.integers(0, 1 << 16))
@settings(max_examples=60)
def test_unions_of_streams_in_this_process(case: tuple[Emit, list[Step]], seed: int) -> None:
    """Branches with policies, kept rows, tables and clocks of their own, on shards in common."""
    assert_engine_agrees(*case, seed, spark=False)


def test_spark_agrees_with_the_oracle(spark: SparkSession) -> None:
    routed, tables = [], []

    @given(plan=any_plans, script=cuts(), seed=st.integers(0, 1 << 16))
    @settings(max_examples=12, derandomize=True, phases=[Phase.generate])
    def check(plan: Emit, script: list[Step], seed: int) -> None:
        assert_engine_agrees(plan, script, seed, spark=True)
        routed.append(bool(placement_of(plan)))
        tables.append(any(isinstance(node, TableJoin) for node in plan.walk()))

    check()
    assert len(set(routed)) == 2, "plans in one shard and in several"
    assert len(set(tables)) == 2, "plans with tables and without"
