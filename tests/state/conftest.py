"""A state directory for each test that asks, and the same in an object store."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from tests.support.object_stores import KINDS, S3Server

from windrow.state.object_store import ObjectStore
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.state.store import Store

_MEMORY = Path("/dev/shm")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory, where there is such a thing: killed processes do not tell it from a disk."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(dir=place, prefix="windrow-") as made:
        yield Path(made)


@pytest.fixture
def local(directory: Path) -> LocalStore:
    """An empty state directory."""
    made = LocalStore(directory / "state")
    made.prepare()
    return made


@pytest.fixture
def objects(directory: Path) -> ObjectStore:
    """An empty object store: the library's own, over files, for which it makes the same promises."""
    (directory / "bucket").mkdir()
    return ObjectStore(f"file://{directory}/bucket?lease=0.5&cache={directory}/cache")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, directory: Path) -> Store:
    """An empty place for state, of each kind."""
    match request.param:
        case "directory":
            found: Store = request.getfixturevalue("local")
        case "objects":
            found = request.getfixturevalue("objects")
        case _:
            server: S3Server = request.getfixturevalue("s3")
            found = ObjectStore(server.new_prefix(lease=0.5, cache=directory / "cache"))
    return found
