"""Real processes, really killed, one after the other over one state directory: the output is the oracle's."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.engine.spark_world import Files
from tests.engine.victim import EVENT_RATE, ROWS, TOPS, TRAFFIC_COLUMNS, TRAFFIC_OPTIONS
from tests.support.history import rows_in, rows_of
from tests.support.oracle import oracle
from tests.support.patience import PATIENCE, wait_until

from windrow.spark.sources.generators import TRAFFIC, Settings
from windrow.state.crash import VARIABLE

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
#: before a commit, between it and Spark's, and after a delivery; all other points are passed in one process
POINTS = ("manifest-temp-written:4", "before-source-told:2", "sink-delivered:2")
#: eight batches: each moves the clock by ten, and one row of each is before the last of the one before
BATCHES = tuple(((1, n, 10 * n), (2, 2 * n, 10 * n + 4), (3, 1, 10 * n - 2)) for n in range(8))


def start(kind: str, folder: Path, how: str, crash_at: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
    environment |= {VARIABLE: crash_at} if crash_at else {}
    command = [sys.executable, "-m", "tests.engine.victim", kind, str(folder), how]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command, env=environment, cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True
        )


def run(kind: str, folder: Path, crash_at: str = "") -> int:
    return start(kind, folder, "once", crash_at).wait(PATIENCE)


def commits(folder: Path) -> int:
    found = sorted((folder / "now" / "state" / "commits").glob("*.json"))
    return int(found[-1].stem) if found else 0


def wait_for_commits(process: subprocess.Popen[bytes], folder: Path, wanted: int) -> None:
    def ended() -> str | None:
        return None if process.poll() is None else (folder / "log").read_text()

    wait_until(lambda: commits(folder) >= wanted, ended)


@pytest.mark.thorough
def test_killed_at_decisive_points_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    files = Files(tmp_path, BATCHES)
    for point in POINTS:
        assert run("files", tmp_path, point) != 0, f"{point} was not reached"
    assert run("files", tmp_path) == 0, (tmp_path / "log").read_text()
    files.check()


@pytest.mark.thorough
def test_killed_before_spark_knows_of_a_commit_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """Of a stream that Spark itself hands over: it hands the same batch over again, and once is enough."""
    files = Files(tmp_path, BATCHES)
    for point in ("before-spark-commit:2", "before-spark-commit:1", "before-commit:2"):
        assert run("frame", tmp_path, point) != 0, f"{point} was not reached"
    assert run("frame", tmp_path) == 0, (tmp_path / "log").read_text()
    files.check()


@pytest.mark.thorough
def test_killed_and_interrupted_at_any_moment_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """SIGKILL at a random moment; Ctrl-C, which ends in order; then to the end."""
    process = start("generator", tmp_path, "forever")
    wait_for_commits(process, tmp_path, 5)
    time.sleep(random.uniform(0, 1))
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL

    process = start("generator", tmp_path, "forever")
    wait_for_commits(process, tmp_path, commits(tmp_path) + 5)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
    assert sorted((tmp_path / "now" / "state" / "owners").glob("*.released"))

    assert run("generator", tmp_path) == 0, (tmp_path / "log").read_text()
    found = rows_in(tmp_path / "now" / "sums", "sums-*.parquet")
    assert Counter(_plain(row) for row in found.elements()) == generated()


def generated() -> Counter[Any]:
    settings = Settings(keys=3, event_rate=EVENT_RATE, rows=ROWS)
    table = TRAFFIC.rows(settings, 0, ROWS, ["segment", "speed", "ts"])
    return oracle(TOPS, [rows_of(table)], {"s": (TRAFFIC_COLUMNS, TRAFFIC_OPTIONS)})


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Instants as the oracle has them."""
    return (round(row[0].timestamp() * 1_000_000), *row[1:])
