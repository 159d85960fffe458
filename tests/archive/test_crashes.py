"""Ended anywhere in an update: the state before or the state after, and nothing left over."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.archive.support import SCHEMA, Row, rows_of, table
from tests.support.crashes import Crash, crashing_at

from windrow.archive.archive import Archive
from windrow.archive.declaration import Declaration, DoublyPartitioned, Upkeep
from windrow.archive.snapshot import read_archive
from windrow.errors import StateError
from windrow.state.crash import STATE_POINTS, VARIABLE

POINTS = [point for point in STATE_POINTS if point != "compaction-written"]
UPDATES = range(10, 70, 10)
UPKEEPS = {"rebuild": Upkeep.rebuilding(), "pieces": Upkeep(reclaim=0.3, most_pieces=2)}


def batch(now: int) -> list[Row]:
    return [(k, f"{now}", now + 6 * k) for k in range(1, 6)]


def live_at(now: int) -> Counter[Row]:
    rows = [row for then in UPDATES if then <= now for row in batch(then)]
    return Counter(row for row in rows if row[2] > now)


def declaration(upkeep: str) -> Declaration:
    return Declaration("k", 40, 10, DoublyPartitioned(2, 2, 4), UPKEEPS[upkeep])


def live(folder: Path, upkeep: str) -> None:
    """Make the archive or go on with it, up to the last update."""
    try:
        archive = Archive.open(folder, keep_commits=1)
    except StateError as error:
        if error.code != "no-archive":
            raise
        archive = Archive.create(folder, SCHEMA, declaration(upkeep), keep_commits=1)
    with archive:
        for now in UPDATES:
            if now > archive.now:
                archive.update(now, table(batch(now)))


def check(folder: Path) -> None:
    """What can be seen is the archive after one of the updates."""
    try:
        seen = read_archive(folder)
    except StateError as error:
        assert error.code in ("no-archive", "directory-missing")  # noqa: PT017
        return
    if seen.files:
        assert rows_of(seen.scan()) == live_at(seen.now)


@pytest.mark.part(2)
@pytest.mark.parametrize("upkeep", UPKEEPS)
@pytest.mark.parametrize("point", POINTS)
def test_ended_at_a_crash_point_and_opened_again(directory: Path, point: str, upkeep: str) -> None:
    crashed = 0
    for passage in (1, 4, 9):
        folder, left = directory / f"{passage}", directory / f"{passage}-left"
        with crashing_at(point, passage, lambda: shutil.copytree(folder, left)) as crash:  # noqa: B023
            try:
                live(folder, upkeep)
            except Crash:
                crashed += 1
        if not crash.happened:
            continue
        check(left)
        live(left, upkeep)
        seen = read_archive(left)
        assert rows_of(seen.scan()) == live_at(UPDATES[-1])
        assert {f"{path}" for path in (left / "chunks").iterdir()} == set(seen.files)
        assert list((left / "tmp").iterdir()) == []
    assert crashed > 0


def test_killed_in_the_midst_of_writing_a_file(directory: Path) -> None:
    code = (
        "from pathlib import Path; from tests.archive.test_crashes import live;"
        f"live(Path({str(directory / 'a')!r}), 'rebuild')"
    )
    environment = {**os.environ, VARIABLE: "chunk-partly-written:7", "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=Path(__file__).parents[2], check=False
    )
    assert ended.returncode == -signal.SIGKILL
    check(directory / "a")
    half = list((directory / "a" / "chunks").iterdir())
    assert len(half) > len(read_archive(directory / "a").files)
    live(directory / "a", "rebuild")
    assert rows_of(read_archive(directory / "a").scan()) == live_at(UPDATES[-1])


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.chmod(0o644)
    path.write_bytes(data)


def test_a_changed_byte_is_noticed_wherever_it_is(directory: Path) -> None:
    live(directory / "a", "rebuild")
    file = Path(read_archive(directory / "a").files[0])
    whole = file.read_bytes()
    unnoticed = []
    for at in range(len(whole)):
        flip(file, at)
        try:
            read_archive(directory / "a").scan()
            unnoticed.append(at)
        except StateError as error:
            assert error.code == "damaged"  # noqa: PT017
        file.write_bytes(whole)
    assert unnoticed == []


def test_a_file_cut_off_is_noticed(directory: Path) -> None:
    live(directory / "a", "rebuild")
    file = Path(read_archive(directory / "a").files[0])
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(StateError, match="damaged"):
        read_archive(directory / "a").scan()
    with pytest.raises(StateError, match="damaged"):
        Archive.open(directory / "a")


def test_a_failed_update_leaves_the_archive_usable(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.archive import archive as module

    real, calls = module.write_piece, Counter[str]()

    def full(*arguments: object) -> object:
        calls["write"] += 1
        if calls["write"] == 2:
            raise StateError("the disk is full", code="disk-full")
        return real(*arguments)  # type: ignore[arg-type]

    with Archive.create(directory / "a", SCHEMA, declaration("rebuild"), keep_commits=1) as archive:
        archive.update(10, table(batch(10)))
        monkeypatch.setattr(module, "write_piece", full)
        with pytest.raises(StateError, match="full"):
            archive.update(20, table(batch(20)))
        assert (archive.now, rows_of(archive.scan())) == (10, live_at(10))
        archive.update(20, table(batch(20)))
        assert rows_of(archive.scan()) == live_at(20)
        for now in (30, 40):
            archive.update(now, table(batch(now)))
        left = {f"{path}" for path in (directory / "a" / "chunks").iterdir()}
        assert left == set(archive.files)
