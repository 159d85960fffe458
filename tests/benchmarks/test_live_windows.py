"""The simulated window that slides while it is read: what has to come out whatever the figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.live_windows import Workload, simulate
from benchmarks.theory.isolation.policies import FIXED_ORDER, SERIAL, TIME_TO_UPDATE
from windrow.archive.snapshot import SNAPSHOT

BUSY = Workload(
    subwindows=30,
    seconds=1,
    periodic=40,
    per_second=0.0,
    rows_per_second=1000,
    row_us=20.0,
    one_time_row_us=1.0,
    update_row_us=0.5,
    decision_us=20.0,
    seed=3,
)


def test_the_same_seed_gives_the_same_figures() -> None:
    assert simulate(TIME_TO_UPDATE, BUSY) == simulate(TIME_TO_UPDATE, BUSY)
    assert simulate(TIME_TO_UPDATE, BUSY) != simulate(TIME_TO_UPDATE, replace(BUSY, seed=4))


@pytest.mark.parametrize("seed", range(3))
def test_by_time_to_update_answers_are_fresher_and_nothing_is_lost(seed: int) -> None:
    workload = replace(BUSY, seed=seed)
    found = {each.name: simulate(each, workload) for each in (SERIAL, SNAPSHOT, FIXED_ORDER, TIME_TO_UPDATE)}
    ours = found["TTU"]
    assert ours.aborted == found["Serial"].aborted == found["WS"].aborted == 0 < found["LWS"].aborted
    assert ours.staleness < min(found["Serial"].staleness, found["WS"].staleness)
    assert ours.per_second > found["LWS"].per_second
    assert ours.per_second > 0.95 * found["Serial"].per_second


def test_one_after_the_other_urgent_queries_wait() -> None:
    workload = replace(BUSY, per_second=1.0)
    serial, ours = simulate(SERIAL, workload), simulate(TIME_TO_UPDATE, workload)
    assert serial.response is not None
    assert ours.response is not None
    assert ours.response < serial.response / 2


def test_a_quick_query_is_on_average_half_a_slide_behind() -> None:
    idle = replace(BUSY, subwindows=5, periodic=5, row_us=1.0, decision_us=1.0, seconds=2)
    assert simulate(TIME_TO_UPDATE, idle).staleness == pytest.approx(1.0, rel=0.1)
