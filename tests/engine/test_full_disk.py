"""The disk is full at any write: nothing committed is lost, and with room again everything goes on."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.history import QUERIES
from tests.support.world import World

from windrow.errors import StateError, WindrowError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: two sinks that write files, so that not only the state's writes fail
WRITTEN = {name: QUERIES[name] for name in ("files", "delta")}


@contextmanager
def full_after(writes: int) -> Iterator[list[int]]:
    """From this write on there is no room; gives how many there were."""
    count, real = [0], os.fsync

    def fsync(descriptor: int) -> None:
        count[0] += 1
        if count[0] > writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    os.fsync = fsync
    try:
        yield count
    finally:
        os.fsync = real


def writes_of_a_life(folder: Path) -> int:
    with full_after(10**9) as count:
        World(folder, WRITTEN).live()
    return count[0]


@pytest.mark.part(3)
@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 11, 22])
def test_wherever_the_disk_is_full_a_new_start_with_room_goes_on(tmp_path: Path, first: int) -> None:
    total, codes = writes_of_a_life(tmp_path / "whole"), set()
    for writes in range(first, total, 33):
        world = World(tmp_path / str(writes), WRITTEN)
        life = None
        try:
            with full_after(writes):
                life = world.open()
                world.follow(life)
        except WindrowError as error:
            codes.add(error.code)
        if life is not None:
            codes |= {event.error.code for event in life.engine.events}
            life.vanish()
        world.live()
        world.check()
    assert codes == {"disk-full"}


def test_with_room_again_the_same_engine_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, WRITTEN)
    life = world.open()
    with full_after(3), pytest.raises(StateError) as refused:
        world.follow(life)
    assert refused.value.code == "disk-full"
    assert "make room on the disk" in str(refused.value.hint)
    world.follow(life)
    life.close()
    world.check()


def test_a_sink_without_room_gets_its_rows_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    world = World(tmp_path, WRITTEN)
    life = world.open()
    with monkeypatch.context() as patched:
        patched.setattr("windrow.sinks.files.write_through", full)
        world.follow(life)
    assert {(event.name, event.error.code) for event in life.engine.events} == {("files", "disk-full")}
    life.engine.deliver()
    life.close()
    world.check()
