"""Questions about kept windows, for real: whatever the figures, who waits and who begins anew is settled."""

from __future__ import annotations

import pytest

from benchmarks.kept_windows import RealWork, measure
from benchmarks.theory.isolation.policies import FIXED_ORDER, SERIAL, TIME_TO_UPDATE
from windrow.archive.snapshot import SNAPSHOT, UNDOING

WORK = RealWork(subwindows=4, seconds=0.2, periodic=2, per_second=4.0, rows=50, lasting=1.0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "policy", [SERIAL, SNAPSHOT, FIXED_ORDER, TIME_TO_UPDATE, UNDOING], ids=lambda policy: policy.name
)
def test_every_policy_comes_to_answers(policy: object) -> None:
    found = measure(policy, WORK)  # type: ignore[arg-type]
    assert found.per_second > 0
    assert found.staleness > 0
    if policy in (SERIAL, SNAPSHOT, UNDOING):
        assert found.aborted == 0
