"""A directory for each archive that a test asks for."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory, where there is such a thing."""
    with TemporaryDirectory(dir=MEMORY, prefix="windrow-") as made:
        yield Path(made)
