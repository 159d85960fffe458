"""Files that appear whole or not at all, and are still there after a power cut."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN_BYTES = 8


def make_directory(directory: Path) -> None:
    """Make it, and all above it, durably. OSError if that cannot be."""
    absolute = directory.absolute()
    missing = [path for path in (absolute, *absolute.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


def temporary_prefix(name: str) -> str:
    """How temporary files that become `name` begin. Readers of directories skip names with a dot."""
    return f".{name}."


@contextmanager
def temporary_file(final: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A file beside the final one; it is gone after the block, unless the block gave it another name."""
    path = final.with_name(f"{temporary_prefix(final.name)}{secrets.token_hex(_TOKEN_BYTES)}.tmp")
    try:
        with path.open("xb") as file:
            yield path, file
    finally:
        with suppress(OSError):  # the error that led here says more
            path.unlink(missing_ok=True)


def write_through(file: BinaryIO) -> None:
    """Put what was written on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Put a file's contents, or a directory's entries, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
