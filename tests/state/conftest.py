"""A state directory for each test that asks."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory, where there is such a thing: killed processes do not tell it from a disk."""
    place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with TemporaryDirectory(dir=place, prefix="windrow-") as made:
        yield Path(made)


@pytest.fixture
def store(directory: Path) -> LocalStore:
    """An empty state directory."""
    made = LocalStore(directory / "state")
    made.prepare()
    return made
