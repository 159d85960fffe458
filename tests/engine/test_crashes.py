"""A crash at any point of an engine's life: nothing is lost, nothing is doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.support import life as lives
from tests.support.world import World

from windrow.engine import engine as core, epoch as draft
from windrow.execution.local import HereJobs
from windrow.state import shard
from windrow.state.crash import POINTS

if TYPE_CHECKING:
    from pathlib import Path

#: reached only where Spark itself hands batches over
ELSEWHERE = {"before-spark-commit", "before-source-told"}
HERE = [point for point in POINTS if point not in ELSEWHERE]
PASSAGES = (1, 2, 5)


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps and compactions happen all the time."""
    monkeypatch.setattr(core, "SWEEP_EVERY", 2)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 2)
    monkeypatch.setattr(draft, "MOST_WAITING", 3)
    monkeypatch.setattr(shard, "MOST_FILES", 1)


def test_without_a_crash_every_sink_has_what_the_oracle_says(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.live()
    world.check()


class Attempts(HereJobs):
    """Tasks that run thrice, as speculative ones do: one attempt tells what it has made, all write files."""

    def ingest(self, *batches: Any) -> Any:
        return [super(Attempts, self).ingest(*batches) for _ in range(3)][1]

    def close(self, tasks: Any) -> Any:
        return [super(Attempts, self).close(tasks) for _ in range(3)][1]


def test_of_several_attempts_of_a_task_one_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lives, "HereJobs", Attempts)
    world = World(tmp_path)
    world.live()
    world.check()


@pytest.mark.part(24)
@pytest.mark.parametrize("passage", PASSAGES)
@pytest.mark.parametrize("point", HERE)
def test_after_a_crash_every_sink_has_what_the_oracle_says(tmp_path: Path, point: str, passage: int) -> None:
    world = World(tmp_path)
    died = world.die(point, passage)
    assert died or passage > 1
    world.live()
    world.check()
