"""What pieces of a batch tell together, some of which may have no rows at all."""

from __future__ import annotations

from itertools import permutations

import polars as pl

from windrow.kernels.intake import Intake, Observed
from windrow.language.compile import declare_stream
from windrow.windows.progress import Batch


def test_a_task_without_rows_tells_nothing() -> None:
    intake = Intake(declare_stream("s", "a BIGINT, ts BIGINT", "WATTR ts ORDERED"))
    known = intake.start()
    rows = [intake.judge(known, pl.DataFrame({"a": [1, 2], "ts": ts}), 0).observed for ts in ([3, 5], [4, 9])]
    nothing = Observed.all([])
    for pieces in permutations([*rows, nothing]):
        seen = intake.learn(known, [Observed.all(pieces)], 0)
        assert (seen.accepted, seen.progress.progress) == (4, 9)
    assert nothing.batch == Batch()
    assert intake.learn(known, [nothing, nothing], 0).progress == known.progress
