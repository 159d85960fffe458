"""SIGKILL at random moments, by seed: what was pushed or read is in the sink once, when a life ends in order.

The engine runs without Spark in a process that is forked before anything of Arrow or polars
has begun threads; so a life costs no start, and many of them can be ended.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from tests.engine.driven import STREAM, Driven
from tests.engine.test_loop import Script
from tests.engine.world import BATCHES, COLUMNS, OPTIONS, SUMS, oracle, rows_of

from windrow.session import Windrow

#: seconds after which a life is ended, at most; what a life needs is about half of it
LONGEST = 0.6
PUSHED = f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM 'push:'"


def live(kind: str, folder: str) -> None:
    """A life that takes everything, and ends in order if nobody ends it."""
    w = Driven(Path(folder) / "state")
    w.sql(STREAM if kind == "read" else PUSHED)
    w.query("q", SUMS, sink=f"files://{folder}/out")
    if kind == "read":
        w._sources["s"] = Script(*BATCHES)
        w.run(once=True)
    else:
        w.start()
        for number, batch in enumerate(BATCHES):
            Windrow.push(w, "s", list(batch), key=f"batch {number}")
        w.stop()
    w.end()
    w.close()


def judge(folder: str) -> None:
    """Ends with 0 if the sink has what the oracle says."""
    import pyarrow.parquet as pq

    rows: Counter[Any] = Counter()
    for file in sorted((Path(folder) / "out").glob("*.parquet")):
        rows += Counter(rows_of(pq.read_table(file)))
    sys.exit(0 if rows == oracle(SUMS) else 1)


def kill_lives(kind: str, folder: Path, seed: int, kills: int) -> int:
    """End lives one after the other at random moments; the last is let be. How many were really ended."""
    chance, fork, ended = random.Random(seed), get_context("forkserver"), 0
    fork.set_forkserver_preload(["tests.engine.test_killed_anywhere", "windrow.session"])
    for _ in range(kills):
        child = fork.Process(target=live, args=(kind, str(folder)), daemon=True)
        child.start()
        child.join(chance.uniform(0.02, LONGEST))
        if child.is_alive():
            os.kill(int(child.pid or 0), signal.SIGKILL)
            ended += 1
        child.join()
        if child.exitcode == 0:
            break
    last = fork.Process(target=live, args=(kind, str(folder)), daemon=True)
    last.start()
    last.join()
    assert last.exitcode in (0, 1)  # one that had come to its end refuses more rows of a sealed stream
    verdict = fork.Process(target=judge, args=(str(folder),), daemon=True)
    verdict.start()
    verdict.join()
    assert verdict.exitcode == 0, f"{kind}, seed {seed}: the sink has other rows than the oracle"
    return ended


@pytest.mark.parametrize("kind", ["read", "push"])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    assert kill_lives(kind, tmp_path, seed=1, kills=6)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["read", "push"])
def test_killed_at_many_random_moments_nothing_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    ended = seed = 0
    while ended < 100:
        (tmp_path / str(seed)).mkdir()
        ended += kill_lives(kind, tmp_path / str(seed), seed, kills=10)
        seed += 1
