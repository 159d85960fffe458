"""Every plan that the planner considers gives the oracle's changes, on kernels and on the engine."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st
from tests.kernels.relational.scripts import Step, assert_agree, scripts
from tests.support.effort import count_inside, examples
from tests.support.plans import plans

from windrow.algebra.plan import Emit
from windrow.engine.engine import Engine
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.optimizer.flows import Statistics
from windrow.optimizer.optimizer import candidates
from windrow.physical import PhysicalPlan, plan_query
from windrow.testing.spark_executor import SparkExecutor

#: by which other plans are tried on the way to the cheapest
rates = st.sampled_from([0.01, 1.0, 50.0])
values = st.sampled_from([1.0, 10.0, 10_000.0])
statistics = st.builds(
    lambda rates, values: Statistics(
        rates=dict(zip(("s1", "s2"), rates, strict=True)),
        distinct=dict(zip(("s1.k", "s1.v", "s2.k", "s2.v"), values, strict=True)),
    ),
    st.tuples(rates, rates),
    st.tuples(values, values, values, values),
)


@pytest.mark.thorough
def test_every_alternative_gives_the_oracles_changes_on_kernels() -> None:
    tried = []

    @settings(max_examples=examples(30, deep=True), suppress_health_check=list(HealthCheck), deadline=None)
    @given(plans(), statistics, scripts())
    def run(emit: Emit, known: Statistics, script: list[Step]) -> None:
        others = candidates(emit, known)[1:]
        assume(others)
        for each in others:
            try:
                GeneralExecutor(each.plan)
            except QueryError:
                continue
            tried.append(each.name)
            assert_agree(emit, script, lambda _, plan=each.plan: GeneralExecutor(plan), instants=range(0))

    try:
        run()
    finally:
        count_inside(len(tried))
    assert tried


@settings(max_examples=examples(5, deep=True), suppress_health_check=list(HealthCheck), deadline=None)
@given(plans(), statistics, scripts(most=5))
def test_the_plan_that_is_chosen_gives_the_oracles_changes_on_the_engine(
    emit: Emit, known: Statistics, script: list[Step]
) -> None:
    def planner(
        plan: Emit, statistics: Statistics | None = None, *, by_group: bool | None = None
    ) -> PhysicalPlan:
        return plan_query(plan, known, by_group=by_group)

    try:
        assume(plan_query(emit, known).chosen is not None)
    except QueryError:
        assume(False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("windrow.engine.engine.Engine", partial(Engine, planner=planner))
        assert_agree(emit, script, partial(SparkExecutor, spark=False), instants=range(0))
