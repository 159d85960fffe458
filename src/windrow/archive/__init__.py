"""Windows that are kept to be asked: rows with lifetimes on disk, found by a key."""

from windrow.archive.archive import Archive, Updated
from windrow.archive.declaration import Declaration
from windrow.archive.snapshot import Snapshot, read_archive

__all__ = ["Archive", "Declaration", "Snapshot", "Updated", "read_archive"]
