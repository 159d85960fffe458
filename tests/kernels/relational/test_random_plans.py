"""Random plans over the whole language on random histories: the general kernels say what the oracle says.

A longer search by hand: make search PATHS=tests/kernels/relational
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.kernels.relational.more_plans import cases
from tests.kernels.relational.scripts import Step, assert_agree, cuts, scripts
from tests.support.plans import plans
from tests.support.stored_states import read, written

from windrow.algebra.plan import Emit
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import Options, Strategy

pytestmark = pytest.mark.deep


def some(part: int) -> settings:
    """A part of the examples of the profile: these cases are large, and the oracle takes its time."""
    return settings(max_examples=max(1, settings.default.max_examples // part))


def agree(plan: Emit, script: list[Step], options: Options | None = None) -> None:
    """Every plan is run: one that is refused fails here."""
    assert_agree(plan, script, lambda emit: GeneralExecutor(emit, options))


@some(2)
@given(plans(), scripts())
def test_histories_with_late_rows_and_changing_tables(plan: Emit, script: list[Step]) -> None:
    assert_agree(plan, script, GeneralExecutor)


@some(2)
@given(plans(), cuts())
def test_histories_cut_into_micro_batches(plan: Emit, script: list[Step]) -> None:
    assert_agree(plan, script, GeneralExecutor)


@some(4)
@given(plans(wholes=True), cuts())
def test_rows_with_values_of_their_groups(plan: Emit, script: list[Step]) -> None:
    assert_agree(plan, script, GeneralExecutor)


@some(4)
@given(cases())
def test_policies_kept_rows_restore_bounds_and_the_rest(case: tuple[Emit, list[Step]]) -> None:
    agree(*case)


@pytest.mark.parametrize("strategy", [Strategy.NT, Strategy.DIRECT])
@some(8)
@given(cases())
def test_strategies_change_the_cost_and_not_the_answer(
    strategy: Strategy, case: tuple[Emit, list[Step]]
) -> None:
    agree(*case, Options(strategy))


def reload_state(executor: GeneralExecutor) -> None:
    """All state written to bytes and read back, as between two epochs."""
    executor.states = read(*written(executor.states))


@some(4)
@given(plans(), scripts())
def test_state_can_be_stored_after_every_step(plan: Emit, script: list[Step]) -> None:
    assert_agree(plan, script, GeneralExecutor, between=reload_state)


@some(8)
@given(cases())
def test_state_of_every_kind_can_be_stored(case: tuple[Emit, list[Step]]) -> None:
    assert_agree(*case, GeneralExecutor, between=reload_state)
