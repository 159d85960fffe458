"""How much is on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def size(folder: Path, without: Iterable[str] = ()) -> int:
    """The bytes of all files below a folder, but for those in some of its folders."""
    left_out = set(without)
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(
        path.stat().st_size for path in files if not left_out & set(path.relative_to(folder).parts[:-1])
    )
