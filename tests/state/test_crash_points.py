"""SIGKILL anywhere: what was committed is there, what was not has never been, and life goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from tests.state.processes import run
from tests.state.support import manifests, store_at, values_of
from tests.state.victim import ROUNDS, live, noted
from tests.support.object_stores import KINDS, S3Server

from windrow.errors import StateError
from windrow.state import crash
from windrow.state.history import History, sweep
from windrow.state.log import CommitLog

PASSAGES = (1, 2, 3, 5, 8)
#: an object is there when it is written: no folder has to be made durable
OF_DIRECTORIES = ("before-directory-sync", "after-directory-sync")
REPOSITORY = Path(__file__).parents[2]


def check(root: str) -> None:
    """Every commit that returned is there, whole; at most the one after it, whole too."""
    store = store_at(root)
    for manifest in manifests(store):
        done = manifest.decisions.get("round", 0)
        assert values_of(store, manifest) == list(range(1, done + 1))
    last = History(store).latest()
    assert (last.decisions.get("round", 0) if last else 0) - noted(root) in (0, 1)


@pytest.fixture(params=KINDS)
def new_place(request: pytest.FixtureRequest, directory: Path) -> Callable[[], str]:
    """Makes empty places for state, of each kind."""
    numbers = count()

    def made() -> str:
        number = next(numbers)
        if request.param == "s3":
            server: S3Server = request.getfixturevalue("s3")
            return server.new_prefix(cache=directory / f"cache-{number}")
        root = directory / f"state-{number}"
        root.mkdir()
        return (
            str(root) if request.param == "directory" else f"file://{root}?cache={directory}/cache-{number}"
        )

    return made


@pytest.mark.part(12)
@pytest.mark.parametrize("point", crash.STATE_POINTS)
def test_killed_at_a_crash_point_and_reopened(new_place: Callable[[], str], point: str) -> None:
    killed, root = 0, new_place()
    for passage in PASSAGES if root.startswith("/") else PASSAGES[:3]:
        if run(live, root, f"{point}:{passage}") == -signal.SIGKILL:
            killed += 1
            check(root)
        assert run(live, root) == 0
        check(root)
        check_clean(root)
        root = new_place()
    assert killed >= 2 or (point in OF_DIRECTORIES and "://" in root)


def check_clean(root: str) -> None:
    """Of all the interrupted lives nothing is left over after a sweep."""
    store = store_at(root)
    with CommitLog.open(store) as log:
        sweep(log, keep=1)
        assert values_of(store, log.last) == list(range(1, ROUNDS + 1))
        assert set(store.list("chunks")) == set(log.last.files)
        assert store.list("tmp") == {}


def test_killed_again_and_again(new_place: Callable[[], str]) -> None:
    root = new_place()
    for life, point in enumerate(crash.STATE_POINTS * 2):
        run(live, root, f"{point}:{1 + life % 3}")
        check(root)
    assert run(live, root) == 0
    check_clean(root)


def test_the_environment_variable_is_enough(directory: Path) -> None:
    environment = {**os.environ, crash.VARIABLE: "manifest-linked:3", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "tests.state.victim", str(directory / "state")]
    ended = subprocess.run(command, env=environment, cwd=REPOSITORY, check=False)
    assert ended.returncode == -signal.SIGKILL
    check(str(directory / "state"))


def test_a_crash_point_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(crash.VARIABLE, "manifest-link")
    with pytest.raises(StateError, match="did you mean `manifest-linked`"):
        crash.crash_point("chunk-written")
